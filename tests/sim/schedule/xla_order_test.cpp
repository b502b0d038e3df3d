// Programs ordered anew from their graphs alone, as XLA would, against XLA's own order. Runs only
// where the corpus is.
#include "sim/schedule/xla_order.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/support/csv_rows.h"
#include "tests/support/schedule_dump.h"

namespace spillway {
namespace {

HardwareProfile gb200() {
  return read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
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

TEST_CASE("peak and step of programs ordered from their graph alone") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile = gb200();
  for (const char* name : {"l8b_b2_oorr", "l8b_fl_pho1", "l405b_qkvoff", "ds671_qvoff", "mx7_full",
                           "l8b4_unr_off", "l70b_qkvoff", "l8b_ga4_full"}) {
    CAPTURE(name);
    const testing::ScheduleDump dump =
        testing::read_schedule_dump((*corpus / name / "jit_train_step.schedule.txt.gz").string());
    const Schedule theirs = chosen_order(dump);
    const XlaOrder ours = find_xla_order(
        dump.program, assign_memory(dump.program, text_schedule(dump.program).value()), profile);
    CHECK(ours.estimator.fell_back);
    const Outcome a = outcome(dump.program, ours.schedule, profile);
    const Outcome b = outcome(dump.program, theirs, profile);
    CHECK(ratio(a.device, b.device) == doctest::Approx(1).epsilon(0.02));
    CHECK(ratio(a.step, b.step) == doctest::Approx(1).epsilon(0.02));
  }
}

TEST_CASE("memory fencing takes an unrolled program from 25.8 to 21.0 GB, as in XLA") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile profile = gb200();
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
  CHECK(static_cast<double>(total({}).value()) == doctest::Approx(kPlain).epsilon(0.01));
  CHECK(static_cast<double>(total(fenced).value()) == doctest::Approx(kFenced).epsilon(0.01));
}

}  // namespace
}  // namespace spillway
