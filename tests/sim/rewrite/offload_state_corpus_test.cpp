// State of the corpus's programs moved between HBM and pinned host memory, against what XLA made of
// the same step with it there.
#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "model/program/validate.h"
#include "sim/rewrite/offload_state.h"
#include "sim/schedule/reorder.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/loaded_dump.h"

namespace spillway {
namespace {

struct Outcome {
  MemoryTotals totals;
  HostTraffic traffic;
  Seconds step;
};

TEST_CASE("probe") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const auto outcome = [&](const Program& program) {
    const Schedule schedule = text_schedule(program).value();
    const MemoryAssignment memory = assign_memory(program, schedule);
    const Topology topology = make_topology(program.device_count(), profile);
    return Outcome{sum_totals(memory), sum_traffic(program),
                   simulate(program, schedule, memory, profile, topology).value().step};
  };
  const auto print = [](const char* what, const Outcome& o) {
    MESSAGE(std::string(what)
            << ": device " << o.totals.total_device.value() << " temp " << o.totals.temp.value()
            << " host " << o.totals.host_temp.value() << "+" << o.totals.host_argument.value()
            << " d2h " << o.traffic.device_to_host.value() << " h2d "
            << o.traffic.host_to_device.value() << " step " << o.step.value());
  };
  struct Row {
    const char* from;
    const char* to;
    StateClass kind;
    Placement placement;
  };
  for (const Row& row : {Row{"host_a_device", "host_b_opt", StateClass::kOptimizer, Placement::kPinnedHost},
                         Row{"host_b_opt", "host_a_device", StateClass::kOptimizer, Placement::kDevice},
                         Row{"host_a_device", "host_c_params", StateClass::kParameters, Placement::kPinnedHost},
                         Row{"host_c_params", "host_a_device", StateClass::kParameters, Placement::kDevice}}) {
    const Program from = read_program((*corpus / row.from).string()).value();
    const Program to = read_program((*corpus / row.to).string()).value();
    const MemoryAssignment memory = assign_memory(from, text_schedule(from).value());
    const TrainingState state = find_training_state(from);
    MESSAGE(std::string(row.from) << " " << std::string(name_of(state.evidence(row.kind))) << " "
                     << bytes_of(state, row.kind).value() << " "
                     << why_state_not_movable(from, memory, state, row.kind));
    const Program moved = move_state(from, memory, state, {{row.kind, row.placement}});
    if (const auto error = validate(moved)) FAIL(to_text(*error));
    print("from", outcome(from));
    print("xla", outcome(to));
    print("moved", outcome(moved));
    const Program ordered = reorder_changed(moved, from, profile);
    if (const auto error = validate(ordered)) FAIL(to_text(*error));
    print("ordered", outcome(ordered));
  }
}

}  // namespace
}  // namespace spillway
TEST_SUITE("dump") {
TEST_CASE("dumpc" * doctest::skip()) {
  using namespace spillway;
  const auto corpus = testing::shared_folder("corpus");
  const HardwareProfile profile =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const Program from = read_program((*corpus / "host_a_device").string()).value();
  const MemoryAssignment memory = assign_memory(from, text_schedule(from).value());
  const TrainingState state = find_training_state(from);
  const Program moved = move_state(from, memory, state, {{StateClass::kParameters, Placement::kPinnedHost}});
  const Program ordered = reorder_changed(moved, from, profile);
  const Computation& e = ordered.entry_computation();
  for (const InstructionIndex i : e.instructions()) {
    std::string line(e[i].name);
    line += " = " + to_string(e[i].shape).substr(0, 60) + " " + std::string(e[i].opcode_text) + "(";
    for (const Operand& o : e.operands(i)) line += std::string(e[o.instruction].name) + "#" + std::to_string(o.node) + " ";
    std::puts(line.substr(0, 200).c_str());
  }
}
}
