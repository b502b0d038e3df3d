#include "sim/rewrite/pipeline_host_copies.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "model/memory/memory_report.h"
#include "model/program/host_transfer.h"
#include "model/program/validate.h"
#include "sim/rewrite/place_residuals.h"
#include "sim/simulate.h"
#include "tests/golden.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/rewrite/check_sound.h"
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
      const Program after = pipeline_host_copies(before).value();
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
  const Program after = pipeline_host_copies(testing::scan(toy).program).value();
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
  const Program after = pipeline_host_copies(before).value();
  for (const ComputationId id : ids(before.computations))
    if (id != before.entry) CHECK(after.computations[id] == before.computations[id]);
  CHECK(trips_of(after) == trips_of(before));
}

TEST_CASE("what a plan moved is pipelined too") {
  for (const Save save : testing::kSaves)
    for (const Fetch fetch : testing::kFetches) {
      CAPTURE(static_cast<int>(save));
      CAPTURE(static_cast<int>(fetch));
      ToyScan toy{.a = {is_maker(save) ? Save::kFused : save, fetch, false},
                  .b = {save, fetch, false}};
      toy.width = 3;
      const auto from = testing::scan(toy);
      const Program planned = place_residuals(
          from.program, from.memory, from.table,
          {{ResidualId(0), Placement::kPinnedHost}, {ResidualId(1), Placement::kPinnedHost}});
      const Program after = pipeline_host_copies(planned).value();
      testing::check_valid(after);
      CHECK(testing::find_lost_read(after, memory_of(after)) == "");
      CHECK(testing::run_toy(after) == testing::run_toy(from.program));
      CHECK(trips_of(after) == std::vector<std::int64_t>{3, 3});
      CHECK(sum_traffic(after).reloads == sum_traffic(planned).reloads);
    }
}

TEST_CASE("what a plan moved in compiled programs is pipelined too") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  for (const char* name : {"l405b_allsaved", "ds671_allsaved", "mx7_allsaved"}) {
    CAPTURE(name);
    const Program plain = read_program((*corpus / name).string()).value();
    const MemoryAssignment memory = memory_of(plain);
    const ResidualTable table = find_residuals(plain, memory, {});
    std::vector<PlacementChange> all;
    for (const ResidualId residual : ids(table.residuals))
      all.push_back({residual, Placement::kPinnedHost});
    const Program planned = place_residuals(plain, memory, table, all);
    const Program after = pipeline_host_copies(planned).value();
    testing::check_valid(after);
    CHECK(trips_of(after) != trips_of(planned));
    const HostTraffic was = sum_traffic(planned), is = sum_traffic(after);
    CHECK(is.device_to_host == was.device_to_host);
    CHECK(is.host_to_device == was.host_to_device);
  }
}

/// A loop that saves a slice an iteration. `in_body` stands in front of its root, `behind` the
/// loop.
Program saving_loop(const std::string& in_body, const std::string& behind) {
  const std::string state = "(s32[], f32[64]{0}, f32[4,64]{1,0:S(5)})";
  return testing::toy_program(
      "%update {\n  %w0 = f32[4,64]{1,0:S(5)} parameter(0)\n  %w1 = f32[1,64]{1,0} parameter(1)\n"
      "  %w2 = s32[] parameter(2)\n  %w3 = s32[] parameter(3)\n  ROOT %w = f32[4,64]{1,0:S(5)} "
      "dynamic-update-slice(%w0, %w1, %w2, %w3)\n}\n%body {\n  %p = " +
      state +
      " parameter(0)\n  %zero = s32[] constant(0)\n  %one = s32[] constant(1)\n"
      "  %y = f32[64]{0} tanh(%p#1)\n  %layer = f32[1,64]{1,0} bitcast(%y)\n"
      "  %save = ((f32[4,64]{1,0:S(5)}, f32[1,64]{1,0}, s32[], s32[]), f32[4,64]{1,0:S(5)}, u32[]) "
      "async-start(%p#2, %layer, %p#0, %zero), calls=%update\n"
      "  %saved = f32[4,64]{1,0:S(5)} async-done(%save)\n  %j = s32[] add(%p#0, %one)\n" +
      in_body + "  ROOT %next = " + state +
      " tuple(%j, %y, %saved)\n}\n%condition {\n  %c = " + state +
      " parameter(0)\n  %n = s32[] constant(4)\n  ROOT %lt = pred[] compare(%c#0, %n), "
      "direction=LT\n}\nENTRY %main {\n  %x = f32[64]{0} parameter(0)\n  %i = s32[] constant(0)\n"
      "  %stack = f32[4,64]{1,0:S(5)} custom-call(), custom_call_target=\"AllocateBuffer\"\n"
      "  %begin = " +
      state + " tuple(%i, %x, %stack)\n  %loop = " + state +
      " while(%begin), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n" +
      behind + "}\n");
}

TEST_CASE("loops that cannot be taken apart stay whole") {
  const std::string end = "  ROOT %end = f32[4,64]{1,0:S(5)} bitcast(%loop#2)\n";
  const std::string state = "(s32[], f32[64]{0}, f32[4,64]{1,0:S(5)})";
  const std::string other = "  %other = " + state + " tuple(%i, %x, %loop#2)\n  %again = " + state;
  const std::string counted = ", backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n";
  struct Row {
    const char* name;
    Program program;
    std::vector<std::int64_t> trips;
  };
  const Row rows[] = {
      {"one that can", saving_loop("", end), {3}},
      {"its result is returned whole",
       saving_loop("", "  ROOT %end = " + state + " copy(%loop)\n"),
       {4}},
      {"its carry is read whole",
       saving_loop("  %all = f32[] custom-call(%p), custom_call_target=\"f\"\n", end),
       {4}},
      {"what it begins with is read whole",
       saving_loop("", "  %all = f32[] custom-call(%begin), custom_call_target=\"f\"\n" + end),
       {4}},
      {"another loop runs its body",
       saving_loop("", other + " while(%other), condition=%condition, body=%body" + counted +
                           "  ROOT %end = f32[4,64]{1,0:S(5)} bitcast(%again#2)\n"),
       {4, 4}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program after = pipeline_host_copies(row.program).value();
    testing::check_valid(after);
    CHECK(trips_of(after) == row.trips);
  }
}

TEST_CASE("an order that would read what is not there yet is refused") {
  // The index of the next slice is what this one brings, so none can be fetched ahead.
  const std::string state = "(s32[], s32[4]{0:S(5)})";
  const Program chain = testing::toy_program(
      "%pick {\n  %d0 = s32[4]{0:S(5)} parameter(0)\n  %d1 = s32[] parameter(1)\n"
      "  %ds = s32[1]{0} dynamic-slice(%d0, %d1), dynamic_slice_sizes={1}\n"
      "  ROOT %db = s32[] bitcast(%ds)\n}\n%pick_call {\n  %e0 = s32[4]{0:S(5)} parameter(0)\n"
      "  %e1 = s32[] parameter(1)\n  ROOT %es = s32[] fusion(%e0, %e1), kind=kLoop, "
      "calls=%pick\n}\n%body {\n  %p = " +
      state +
      " parameter(0)\n  %fetch = ((s32[4]{0:S(5)}, s32[]), s32[], u32[]) async-start(%p#1, "
      "%p#0), calls=%pick_call\n  %fetched = s32[] async-done(%fetch)\n  ROOT %next = " +
      state + " tuple(%fetched, %p#1)\n}\n%condition {\n  %c = " + state +
      " parameter(0)\n  %n = s32[] constant(4)\n  ROOT %lt = pred[] compare(%c#0, %n), "
      "direction=LT\n}\nENTRY %main {\n  %stack = s32[4]{0:S(5)} parameter(0)\n"
      "  %i = s32[] constant(0)\n  %begin = " +
      state + " tuple(%i, %stack)\n  %loop = " + state +
      " while(%begin), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n"
      "  ROOT %end = s32[] bitcast(%loop#0)\n}\n");
  REQUIRE(sum_traffic(chain).reloads == 4);
  const Result<Program> refused = pipeline_host_copies(chain);
  REQUIRE_FALSE(refused.ok());
  CHECK(
      to_text(refused.error()) ==
      "toy.hlo: error: its host copies cannot be pipelined: then fetch reads fetched before it is "
      "defined");
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
    const Program ours = pipeline_host_copies(plain).value();
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
