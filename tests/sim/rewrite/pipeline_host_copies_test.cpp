#include "sim/rewrite/pipeline_host_copies.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "model/memory/memory_report.h"
#include "model/program/host_transfer.h"
#include "model/program/validate.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/rewrite/run_toy.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::Save;
using testing::ToyScan;

constexpr Save kAsyncSaves[] = {Save::kAsync, Save::kAsyncFused};
constexpr Fetch kAsyncFetches[] = {Fetch::kAsync, Fetch::kAsyncFused, Fetch::kAsyncCopied};

MemoryAssignment memory_of(const Program& program) {
  return assign_memory(program, text_schedule(program).value());
}

/// How often the loops of the entry run, in order.
std::vector<std::int64_t> trips_of(const Program& program) {
  std::vector<std::int64_t> trips;
  const Computation& entry = program.entry_computation();
  for (const InstructionIndex i : entry.instructions())
    if (entry[i].opcode == Opcode::kWhile) trips.push_back(known_trip_count(entry, i).value());
  return trips;
}

TEST_CASE("the same is computed and moved, a loop runs once less") {
  for (const Save save : kAsyncSaves)
    for (const Fetch fetch : kAsyncFetches) {
      CAPTURE(static_cast<int>(save));
      CAPTURE(static_cast<int>(fetch));
      ToyScan toy{.a = {save, fetch, true}, .b = {save, fetch, true}};
      toy.width = 3;
      const Program before = testing::scan(toy).program;
      const Program after = pipeline_host_copies(before);
      const auto error = validate(after);
      CHECK_MESSAGE(!error.has_value(), (error ? to_text(*error) : ""));
      CHECK(testing::find_overlap(after, memory_of(after)) == "");
      CHECK(testing::find_lost_read(after, memory_of(after)) == "");
      CHECK(testing::run_toy(after) == testing::run_toy(before));
      CHECK(trips_of(before) == std::vector<std::int64_t>{4, 4});
      CHECK(trips_of(after) == std::vector<std::int64_t>{3, 3});
      const HostTraffic was = sum_traffic(before), is = sum_traffic(after);
      CHECK(is.device_to_host == was.device_to_host);
      CHECK(is.host_to_device == was.host_to_device);
      CHECK(is.offloads == was.offloads);
      CHECK(is.reloads == was.reloads);
    }
}

TEST_CASE("an offload starts at the top with what the last iteration left, a reload for the next") {
  ToyScan toy{.a = {Save::kAsync, Fetch::kAsync, true}, .b = {Save::kAsync, Fetch::kAsync, true}};
  const Program after = pipeline_host_copies(testing::scan(toy).program);
  int checked = 0;
  for (const TransferSite& site : find_transfers(after)) {
    const Computation& computation = after[site.id.computation];
    if (site.id.computation == after.entry) continue;
    if (computation[site.id.instruction].opcode != Opcode::kAsyncStart) continue;
    if (site.transfer.direction == TransferDirection::kDeviceToHost) {
      const Operand update = computation.operands(site.id.instruction)[1];
      CHECK(computation[update.instruction].opcode == Opcode::kCopy);
      CHECK(computation.operands(update.instruction)[0].instruction == computation.parameters()[0]);
    } else {
      const auto done = find_done(computation, site.id.instruction);
      REQUIRE(done);
      for (const Use& use : computation.uses(*done))
        CHECK(use.user == computation.root().instruction);
    }
    ++checked;
  }
  CHECK(checked == 4);
}

TEST_CASE("what moves nothing across the host link is left alone") {
  ToyScan toy{.a = {Save::kAsync, Fetch::kAsync, false}, .b = {Save::kAsync, Fetch::kAsync, false}};
  const Program before = testing::scan(toy).program;
  const Program after = pipeline_host_copies(before);
  for (const ComputationId id : ids(before.computations))
    if (id != before.entry) CHECK(after.computations[id] == before.computations[id]);
  CHECK(trips_of(after) == trips_of(before));
}

TEST_CASE("against the programs that XLA compiled with pipelined host offloading") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const HardwareProfile gb200 =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const auto step_of = [&](const Program& program) {
    return simulate(program, text_schedule(program).value(), memory_of(program), gb200,
                    make_topology(program.device_count(), gb200))
        .value()
        .step;
  };
  struct Row {
    const char* plain;
    const char* pipelined;
  };
  for (const Row& row :
       {Row{"l8b_b2_oorr", "l8b_fl_pho1"}, Row{"l405b_qkvoff", "l405b_qkvoff_pho1"}}) {
    CAPTURE(row.plain);
    const Program plain = read_program((*corpus / row.plain).string()).value();
    const Program theirs = read_program((*corpus / row.pipelined).string()).value();
    const Program ours = pipeline_host_copies(plain);
    const MemoryTotals a = sum_totals(memory_of(ours)), b = sum_totals(memory_of(theirs));
    CHECK(std::abs(ratio(a.total_device, b.total_device) - 1) < 0.01);
    CHECK(a.host_temp == b.host_temp);
    const HostTraffic x = sum_traffic(ours), y = sum_traffic(theirs);
    CHECK(x.device_to_host == y.device_to_host);
    CHECK(x.host_to_device == y.host_to_device);
    CHECK(step_of(ours) < step_of(plain));
    CHECK(step_of(theirs) < step_of(plain));
  }
}

}  // namespace
}  // namespace spillway
