// Residuals of the toy scan computed again in the backward loop instead of saved.
#include "sim/rewrite/recompute.h"

#include <doctest/doctest.h>

#include "model/memory/memory_report.h"
#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/rewrite/check_sound.h"
#include "tests/sim/rewrite/run_toy.h"

namespace spillway {
namespace {

using testing::check_sound;
using testing::Fetch;
using testing::kFetches;
using testing::kOffloaded;
using testing::kSaves;
using testing::Save;
using testing::scan;
using testing::Scanned;
using testing::ToyScan;

/// a: the layer's input x; b: h = tanh(x).
constexpr ResidualId kA(0), kB(1);

Program recompute(const Scanned& from, const std::vector<ResidualId>& which) {
  return RecomputeRewrite(from.program, from.memory, from.table).run(which);
}

std::string why_not(const Scanned& from, ResidualId residual) {
  return RecomputeRewrite(from.program, from.memory, from.table).why_not(residual);
}

/// How often a computation, with what it calls, applies tanh.
int count_tanh(const Program& program, ComputationId id) {
  int count = 0;
  for (const InstructionIndex i : program[id].instructions()) {
    count += program[id][i].opcode == Opcode::kTanh;
    for (const ComputationId called : program[id].called(i)) count += count_tanh(program, called);
  }
  return count;
}

TEST_CASE("what is recomputed is the same, needs no stack, and is saved no more") {
  for (const Save save : kSaves)
    for (const Fetch fetch : kFetches)
      for (const Fetch input : {Fetch::kFused, Fetch::kAsync, Fetch::kAlone})
        for (const int outer_trips : {0, 2}) {
          CAPTURE(static_cast<int>(save));
          CAPTURE(static_cast<int>(fetch));
          CAPTURE(static_cast<int>(input));
          CAPTURE(outer_trips);
          ToyScan toy{.a = {Save::kFused, input, false}, .b = {save, fetch, false}};
          toy.counted = true;
          toy.width = 3;
          toy.outer_trips = outer_trips;
          const Scanned start = scan(toy);
          REQUIRE(start.table.residuals.size() == 2);
          REQUIRE(why_not(start, kB) == "");
          const Program program = recompute(start, {kB});
          check_sound(program);
          CHECK(testing::run_toy(program) == testing::run_toy(start.program));
          const Scanned found = scan(program);
          REQUIRE(found.table.residuals.size() == 1);
          CHECK(found.table.residuals[kA].is_layer_input);
          const auto bodies = [&](const Residual& residual) {
            return std::pair(count_tanh(program, body_of(program, residual.forward_loop)),
                             count_tanh(program, body_of(program, residual.backward_loop)));
          };
          CHECK(bodies(found.table.residuals[kA]) == std::pair(1, 1));
        }
}

TEST_CASE("a stack less is that much less memory") {
  ToyScan toy;
  toy.counted = true;
  toy.width = 65536;
  const Scanned start = scan(toy);
  const Bytes stack = start.table.residuals[kB].total_bytes;
  const MemoryTotals before = sum_totals(start.memory);
  const MemoryTotals after = sum_totals(scan(recompute(start, {kB})).memory);
  // Of the four layers' slices one is made again for a moment.
  CHECK(before.total_device - after.total_device <= stack);
  CHECK(before.total_device - after.total_device >= stack - stack / 4 - Bytes(4096));
}

TEST_CASE("recomputation starts from an input on the host as well") {
  ToyScan toy{.a = kOffloaded, .b = {Save::kAsync, Fetch::kFused, false}};
  toy.counted = true;
  toy.width = 3;
  const Scanned start = scan(toy);
  const Program program = recompute(start, {kB});
  check_sound(program);
  CHECK(testing::run_toy(program) == testing::run_toy(start.program));
  const HostTraffic before = sum_traffic(start.program), after = sum_traffic(program);
  CHECK(after.host_to_device == before.host_to_device);
  CHECK(after.device_to_host == before.device_to_host);
}

TEST_CASE("nothing asked, nothing changed") {
  ToyScan toy;
  toy.counted = true;
  const Scanned start = scan(toy);
  const Program program = recompute(start, {});
  for (const ComputationId id : ids(program.computations))
    CHECK(program.computations[id] == start.program.computations[id]);
}

TEST_CASE("what cannot be recomputed says why, and stays saved") {
  struct Row {
    ToyScan toy;
    ResidualId residual;
    std::string why;
  };
  ToyScan counted, uncounted, third, library;
  counted.counted = third.counted = library.counted = true;
  third.third_loop = true;
  library.a.fetch = Fetch::kTwoPlaces;
  const Row rows[] = {
      {counted, kA,
       "it is the layer's input, which recomputation starts from and jax.checkpoint always saves"},
      {uncounted, kB, "which layer its loops are at is not known"},
      {third, kA, "several loops read it"},
      {library, kA, "it is read by something other than slices of it"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const Scanned start = scan(row.toy);
    CHECK(why_not(start, row.residual) == row.why);
    const Program program = recompute(start, {row.residual});
    CHECK(scan(program).table.residuals.size() == start.table.residuals.size());
  }
}

}  // namespace
}  // namespace spillway
