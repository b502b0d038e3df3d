// A policy for an unrolled program against the program that XLA made of that policy.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "model/flags/known_flags.h"
#include "model/hardware/read_profile.h"
#include "sim/planner/evaluate.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/support/csv_rows.h"
#include "tests/support/relative_error.h"

namespace spillway {
namespace {

using Choices = std::map<std::string, Choice>;

TEST_CASE("unrolled programs under another policy, against the compiled ones") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const NameList names =
      read_names((*corpus / "l8b4_unr_allsaved" / "names.json").string()).value();
  const Choices none = {{"query_proj", Choice::kRecompute}, {"key_proj", Choice::kRecompute},
                        {"value_proj", Choice::kRecompute}, {"mlpwi_0", Choice::kRecompute},
                        {"mlpwi_1", Choice::kRecompute},    {"context", Choice::kRecompute},
                        {"out_proj", Choice::kRecompute},   {"decoder_layer_input", Choice::kKeep}};
  const Choices all = {{"query_proj", Choice::kOffload}, {"key_proj", Choice::kOffload},
                       {"value_proj", Choice::kOffload}, {"mlpwi_0", Choice::kOffload},
                       {"mlpwi_1", Choice::kOffload},    {"context", Choice::kRecompute},
                       {"out_proj", Choice::kRecompute}, {"decoder_layer_input", Choice::kOffload}};
  struct Row {
    std::string from, to;
    Choices choices;
    ScheduleSettings settings;
    double peak, step;  ///< bars
  };
  const FlagContext context{newest_probed(), gpu_model(profile.device)};
  const ScheduleSettings hidden = schedule_settings({}, context).value();
  const ScheduleSettings fenced =
      schedule_settings(
          {{"xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes", "1048576"}}, context)
          .value();
  const ScheduleSettings plain =
      schedule_settings({{"xla_gpu_enable_latency_hiding_scheduler", "false"},
                         {"xla_gpu_enable_analytical_sol_latency_estimator", "false"}},
                        context)
          .value();
  // With fences the order of a finished program is 6 % off the step: docs/schedule.md.
  const Row rows[] = {{"l8b4_unr_allsaved", "l8b4_unr_full", none, hidden, 0.001, 0.005},
                      {"l8b4_unr_allsaved", "l8b4_unr_off", all, hidden, 0.001, 0.005},
                      {"l8b4_unr_allsaved", "l8b4_unr_off_lhs0", all, plain, 0.001, 0.01},
                      {"l8b4_unr_allsaved", "l8b4_unr_off_fence", all, fenced, 0.03, 0.06},
                      {"l8b4_unr_off", "l8b4_unr_full", none, hidden, 0.001, 0.01}};
  for (const Row& row : rows) {
    CAPTURE(row.from);
    CAPTURE(row.to);
    const testing::LoadedDump from = testing::load_dump(*corpus / row.from);
    const testing::LoadedDump to = testing::load_dump(*corpus / row.to);
    const Topology topology = make_topology(from.program.device_count(), profile);
    const Evaluator evaluator(from.program, text_schedule(from.program).value(), profile, topology,
                              names, make_budget(profile, topology, {}).value());
    Policy policy = compiled_policy(evaluator.handles());
    for (std::size_t k = 0; k < policy.size(); ++k)
      if (!evaluator.handles()[k].state) policy[k] = row.choices.at(evaluator.handles()[k].name);
    const PolicyCase ours = evaluator.evaluate(policy, row.settings).value();
    const SimResult theirs =
        simulate(to.program, text_schedule(to.program).value(), to.memory, profile, topology)
            .value();
    MESSAGE(row.from << " -> " << row.to << ": peak "
                     << testing::relative_error(ours.peak_device, theirs.memory.total_device)
                     << ", step " << testing::relative_error(ours.step, theirs.step));
    CHECK(testing::relative_error(ours.peak_device, theirs.memory.total_device) < row.peak);
    CHECK(testing::relative_error(ours.step, theirs.step) < row.step);
    CHECK(ours.host == host_bytes(theirs.memory));
    CHECK(ours.device_to_host == theirs.traffic.device_to_host);
    CHECK(ours.host_to_device == theirs.traffic.host_to_device);
    CHECK(ours.dot_flops == doctest::Approx(theirs.flops.dot_per_step.value()));
  }
}

}  // namespace
}  // namespace spillway
