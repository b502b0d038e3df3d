// The order that XLA's latency-hiding scheduler chose, made again from what it was given.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "model/hardware/read_profile.h"
#include "model/memory/memory_report.h"
#include "model/plan/compiler_limit.h"
#include "sim/schedule/latency/make_estimator.h"
#include "sim/schedule/latency_hiding.h"
#include "tests/golden.h"
#include "tests/sim/schedule/fixed_estimator.h"
#include "tests/support/csv_rows.h"
#include "tests/support/schedule_dump.h"

namespace spillway {
namespace {

constexpr Bytes kGb200(197'897'748'480);

/// Pairs of instructions that stand the other way round, of all pairs.
double kendall_distance(const std::vector<InstructionIndex>& ours,
                        const std::vector<testing::ScheduleDump::Row>& theirs) {
  std::vector<std::size_t> place(theirs.size());
  for (std::size_t k = 0; k < theirs.size(); ++k) place[theirs[k].instruction.index] = k;
  std::size_t swapped = 0;
  for (std::size_t a = 0; a < ours.size(); ++a)
    for (std::size_t b = a + 1; b < ours.size(); ++b)
      if (place[ours[a].index] > place[ours[b].index]) ++swapped;
  const auto n = static_cast<double>(ours.size());
  return n < 2 ? 0 : static_cast<double>(swapped) / (n * (n - 1) / 2);
}

LatencyHidingLimits limits_of(const MemoryAssignment& given, const std::string& flags,
                              Bytes hbm = kGb200) {
  LatencyHidingLimits limits;
  if (flags.find("parallel_async_compute_limit=8") != std::string::npos) limits.async_computes = 8;
  limits.memory = scheduler_limit(sum_totals(given), ahead_of_time_base(hbm));
  return limits;
}

TEST_CASE("the order of every computation of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::map<std::string, std::string> flags;
  std::map<std::string, std::string> target;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    flags[row.at("id")] = row.at("xla_flags");
    target[row.at("id")] = row.at("target");
  }
  std::size_t computations = 0;
  const testing::FixedEstimator estimator;
  for (const auto& path : testing::find_schedule_dumps(*corpus)) {
    const std::string name = path.parent_path().filename().string();
    if (target[name] != "gb200") continue;  // others believe other costs
    CAPTURE(name);
    const testing::ScheduleDump dump = testing::read_schedule_dump(path);
    const auto text = text_schedule(dump.program);
    REQUIRE(text.ok());
    const MemoryAssignment given = assign_memory(dump.program, *text);
    const Schedule schedule =
        hide_latencies(dump.program, given, dump.given, estimator, limits_of(given, flags[name]));
    for (const testing::ScheduleDump::Chosen& chosen : dump.chosen) {
      CAPTURE(dump.program[chosen.computation].name());
      CHECK(kendall_distance(schedule.order[chosen.computation], chosen.rows) == 0);
      ++computations;
    }
  }
  MESSAGE(computations << " computations ordered as XLA did");
  CHECK(computations > 0);
}

TEST_CASE("orders for H100, by fits of the tables that XLA believes") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile h100 = read_profile(testing::source_path("hw_profiles/h100.yaml")).value();
  for (const char* name : {"l8b_h100_full", "l8b_h100_qkv_proj_offloaded"}) {
    CAPTURE(name);
    const testing::ScheduleDump dump =
        testing::read_schedule_dump(*corpus / name / "jit_train_step.schedule.txt.gz");
    const MemoryAssignment given = assign_memory(dump.program, text_schedule(dump.program).value());
    const SchedulerChoice choice = choose_scheduler({}, h100.device, dump.program);
    REQUIRE(choice.hides_latencies);
    const auto estimator = make_estimator(choice, h100);
    constexpr Bytes kH100(84'942'979'072);
    const Schedule schedule =
        hide_latencies(dump.program, given, dump.given, *estimator, limits_of(given, "", kH100));
    for (const testing::ScheduleDump::Chosen& chosen : dump.chosen) {
      CAPTURE(dump.program[chosen.computation].name());
      CHECK(kendall_distance(schedule.order[chosen.computation], chosen.rows) < 0.015);
    }
  }
}

}  // namespace
}  // namespace spillway
