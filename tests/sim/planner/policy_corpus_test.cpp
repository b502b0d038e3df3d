// One program compiled with everything saved, under other policies, against what XLA compiled for
// each: bytes on the host and moved, products, memory and the simulated step.
#include <doctest/doctest.h>

#include <cmath>

#include "model/flags/known_flags.h"
#include "model/hardware/read_profile.h"
#include "sim/planner/evaluate.h"
#include "sim/planner/policy_choices.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/sim/planner/example.h"
#include "tests/support/csv_rows.h"
#include "tests/support/relative_error.h"

namespace spillway {
namespace {

TEST_CASE("every policy from one program, against the programs that XLA compiled for them") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const FlagContext context{newest_probed(), gpu_model(profile.device)};
  const ScheduleSettings settings = schedule_settings({}, context).value();
  struct Row {
    std::string base, target;
    std::vector<std::string> saved;  ///< name=choice; everything else is recomputed
    double peak, step;               ///< bars
  };
  const std::string input = "decoder_layer_input=keep", away = "decoder_layer_input=offload";
  const Row rows[] = {
      {"l8b_b2", "drrr", {input}, 0.001, 0.01},
      {"l8b_b2",
       "oooo",
       {away, "query_proj=offload", "key_proj=offload", "value_proj=offload", "context=offload",
        "mlpwi_0=offload", "mlpwi_1=offload"},
       0.001,
       0.01},
      {"l8b_b2",
       "odor",
       {away, "query_proj=keep", "key_proj=keep", "value_proj=keep", "context=offload"},
       0.001,
       0.01},
      {"l70b", "full", {input}, 0.005, 0.01},
      {"l70b",
       "qkvoff",
       {input, "query_proj=offload", "key_proj=offload", "value_proj=offload"},
       0.005,
       0.01},
      {"l405b", "full", {input}, 0.005, 0.01},
      {"mx7", "full", {input}, 0.005, 0.01},
      {"ds671", "full", {input}, 0.02, 0.04},
  };
  for (const Row& row : rows) {
    CAPTURE(row.base);
    CAPTURE(row.target);
    const auto folder = *corpus / (row.base + "_allsaved");
    const testing::LoadedDump base = testing::load_dump(folder);
    const testing::LoadedDump real = testing::load_dump(*corpus / (row.base + "_" + row.target));
    const NameList names = read_names((folder / "names.json").string()).value();
    const Topology topology = make_topology(base.program.device_count(), profile);
    const Evaluator evaluator(base.program, text_schedule(base.program).value(), profile, topology,
                              names, make_budget(profile, topology, {}).value());
    std::vector<NameChoice> wishes;
    const auto wish = [&](const std::string& text) {
      const NameChoice choice = testing::value_or_fail(parse_name_choice(text));
      if (std::ranges::find(wishes, choice.name, &NameChoice::name) == wishes.end())
        wishes.push_back(choice);
    };
    for (const std::string& text : row.saved) wish(text);
    for (const CheckpointName& name : names.names) wish(name.name + "=recompute");
    const PolicyCases cases =
        testing::value_or_fail(combine(wishes, evaluator.handles(), names, 1));
    const PolicyCase ours = evaluator.evaluate(cases.policies[0], settings).value();
    const SimResult theirs =
        simulate(real.program, text_schedule(real.program).value(), real.memory, profile, topology)
            .value();
    CHECK(ours.host == host_bytes(theirs.memory));
    CHECK(ours.device_to_host == theirs.traffic.device_to_host);
    CHECK(ours.host_to_device == theirs.traffic.host_to_device);
    CHECK(std::abs(ours.dot_flops / theirs.flops.dot_per_step.value() - 1) < 0.001);
    CHECK(testing::relative_error(ours.peak_device, theirs.memory.total_device) < row.peak);
    CHECK(testing::relative_error(ours.step, theirs.step) < row.step);
  }
}

}  // namespace
}  // namespace spillway
