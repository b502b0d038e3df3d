// spillway merge FILE… [--html F] [--csv F] [--sqlite F] [--markdown F]
#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/capacity_outputs.h"
#include "cli/command.h"
#include "model/base/read_file.h"
#include "sim/report/merge_shards.h"

namespace spillway {
namespace {

struct MergeOptions {
  std::vector<std::string> files;
  CapacityOutputs outputs;
};

/// What a grid says as a whole no part could say.
int answer_capacity(const std::string& merged, const std::vector<ShardText>& shards,
                    const MergeOptions& options) {
  const Result<CapacityReport> whole = read_capacity_json(merged, options.files.front());
  if (!whole.ok()) {
    for (const ShardText& shard : shards)  // whose fault it is
      if (const auto part = read_capacity_json(shard.json, shard.path); !part.ok())
        return report(part.error());
    return report(whole.error());
  }
  if (const ExitCode code = write_capacity(*whole, options.outputs); code != kDone) return code;
  return answer(render_json(*whole), fits_anywhere(*whole) ? kDone : kAnswerIsNo);
}

int run_merge(const MergeOptions& options) {
  if (const ExitCode code = check_outputs(options.outputs, options.files); code != kDone)
    return code;
  std::vector<ShardText> shards;
  for (const std::string& path : options.files) {
    const auto text = read_file(path);
    if (!text.ok()) return report(text.error());
    shards.push_back({path, **text});
  }
  const Result<std::string> merged = merge_shards(shards);
  if (!merged.ok()) return report(merged.error());
  if (is_capacity_json(*merged)) return answer_capacity(*merged, shards, options);
  if (options.outputs.any())
    return report(usage_error("--html, --csv, --sqlite and --markdown are for parts of capacity",
                              "leave them out"));
  return answer(*merged);
}

}  // namespace

Runner add_merge(CLI::App& subcommand, const Surroundings&) {
  auto options = std::make_shared<MergeOptions>();
  subcommand.add_option("FILE", options->files, "the JSON answers of all parts, in any order")
      ->required();
  add_capacity_outputs(subcommand, options->outputs);
  return [options] { return run_merge(*options); };
}

}  // namespace spillway
