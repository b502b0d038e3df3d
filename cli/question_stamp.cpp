#include "cli/question_stamp.h"

#include <filesystem>

#include "model/base/read_file.h"
#include "model/hardware/write_profile.h"
#include "model/hlo/read_program.h"

namespace spillway {

QuestionStamp::QuestionStamp(std::string_view command) { add(SPILLWAY_VERSION, command); }

void QuestionStamp::add(std::string_view option, std::string_view value) {
  print_.add(option);
  print_.add(value);
}

void QuestionStamp::add_file(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return add("", path);
  const auto content = read_file(path);
  add("file", content.ok() ? std::string_view(**content) : std::string_view());
}

void QuestionStamp::add(const HardwareProfile& profile) { add("--hw", to_yaml(profile)); }

void QuestionStamp::add(const BudgetOptions& budget) {
  add("--hbm-limit", budget.hbm_limit);
  add("--largest-block", budget.block_limit);
  add("--host-limit", budget.host_limit);
  add("--node-host-limit", budget.node_host_limit);
  add("--fragmentation", budget.margin);
  if (budget.fraction) add("--mem-fraction", fmt::format("{}", *budget.fraction));
}

void QuestionStamp::add(const SizeOptions& sizes) {
  if (!sizes.second.empty())
    if (const auto second = read_program(sizes.second); second.ok()) add_file(second->path);
  add("--batch-of-dumps", sizes.batch_of_dumps);
  add("--batch", sizes.batches);
  add("--seq-of-dumps", sizes.seq_of_dumps);
  add("--seq", sizes.sequences);
  add("--accumulation", sizes.accumulations);
}

void QuestionStamp::add(const StepOptions& options, const LoadedStep& loaded) {
  add_file(loaded.spec ? options.program : loaded.program.path);
  add_file(options.names);
  add_file(options.settings);
  add(loaded.machine.profile);
  add("--topology", options.machine.topology);
  add(options.budget);
  add("--jaxlib", options.jaxlib);
  add("--devices", fmt::format("{}", options.devices));
  add("--pageable-copies", options.pageable_copies);
}

std::string QuestionStamp::text() const { return fmt::format("{:016x}", print_.value()); }

}  // namespace spillway
