// Programs ordered anew from their graphs alone, as XLA would, against XLA's own order where the
// corpus is.
#include "sim/schedule/xla_order.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/support/csv_rows.h"
#include "tests/support/schedule_dump.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

HardwareProfile machine(const std::string& id) {
  return read_profile(testing::source_path("hw_profiles/" + id + ".yaml")).value();
}

/// XLA's order: that of the text, and what latency hiding made of it.
Schedule chosen_order(const testing::ScheduleDump& dump) {
  Schedule schedule = text_schedule(dump.program).value();
  for (const auto& chosen : dump.chosen) {
    schedule.order[chosen.computation].clear();
    for (const auto& row : chosen.rows)
      schedule.order[chosen.computation].push_back(row.instruction);
  }
  return schedule;
}

struct Outcome {
  Bytes device;
  Seconds step;
};

Outcome outcome(const Program& program, const Schedule& schedule, const HardwareProfile& profile) {
  const MemoryAssignment memory = assign_memory(program, schedule);
  const Topology topology = make_topology(program.device_count(), profile);
  return {sum_totals(memory).total_device,
          simulate(program, schedule, memory, profile, topology).value().step};
}

TEST_CASE("latency hiding holds a copy's start and done apart; off, they stand back to back") {
  const Program program = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %out = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%x)
  %outdone = f32[64]{0:S(5)} copy-done(%out)
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  %z = f32[64]{0} custom-call(%y), custom_call_target="f"
  ROOT %end = (f32[64]{0}, f32[64]{0:S(5)}) tuple(%z, %outdone)
)");
  const MemoryAssignment given = assign_memory(program, testing::toy_schedule(program));
  const auto order_on = [&](const char* id) {
    const XlaOrder order = find_xla_order(program, given, machine(id));
    std::string text;
    for (const InstructionIndex i : order.schedule.order[program.entry])
      text += std::string(program.entry_computation()[i].name) + " ";
    return text;
  };
  CHECK(order_on("a100").find("out outdone") != std::string::npos);
  CHECK(order_on("gb200") == "a x out y z outdone end ");
}

TEST_CASE("peak and step of programs ordered from their graph alone") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile = machine("gb200");
  for (const char* name : {"l8b_b2_oorr", "l8b_fl_pho1", "l405b_qkvoff", "ds671_qvoff", "mx7_full",
                           "l8b4_unr_off", "l70b_qkvoff", "l8b_unr32_full"}) {
    CAPTURE(name);
    const testing::ScheduleDump dump =
        testing::read_schedule_dump((*corpus / name / "jit_train_step.schedule.txt.gz").string());
    const Schedule theirs = chosen_order(dump);
    const XlaOrder ours = find_xla_order(
        dump.program, assign_memory(dump.program, text_schedule(dump.program).value()), profile);
    CHECK(ours.scheduler.lacks_table);
    const Outcome a = outcome(dump.program, ours.schedule, profile);
    const Outcome b = outcome(dump.program, theirs, profile);
    CHECK(std::abs(ratio(a.device, b.device) - 1) < 0.001);
    CHECK(std::abs(ratio(a.step, b.step) - 1) < 0.001);
  }
}

TEST_CASE("memory fencing takes an unrolled program from 25.8 to 21.0 GB, as in XLA") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile = machine("gb200");
  const auto dump = testing::read_schedule_dump(
      (*corpus / "l8b4_unr_off/jit_train_step.schedule.txt.gz").string());
  const MemoryAssignment given = assign_memory(dump.program, text_schedule(dump.program).value());
  const auto total = [&](const XlaOrderOptions& options) {
    const XlaOrder order = find_xla_order(dump.program, given, profile, options);
    return sum_totals(assign_memory(dump.program, order.schedule)).total_device;
  };
  XlaOrderOptions fenced;
  fenced.fencing_threshold = 1 << 20;
  constexpr double kPlain = 25'813'409'982.0, kFenced = 21'048'680'126.0;  // corpus.csv
  const auto off = [](Bytes bytes, double xla) {
    return std::abs(static_cast<double>(bytes.value()) / xla - 1);
  };
  CHECK(off(total({}), kPlain) < 0.01);
  CHECK(off(total(fenced), kFenced) < 0.01);
}

}  // namespace
}  // namespace spillway
