// Residuals of the toy scan moved between HBM and pinned host memory, from every form to the other.
#include "sim/rewrite/place_residuals.h"

#include <doctest/doctest.h>

#include <random>

#include "model/memory/memory_report.h"
#include "model/program/host_transfer.h"
#include "model/program/validate.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/rewrite/check_sound.h"
#include "tests/sim/rewrite/run_toy.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::kFetches;
using testing::kSaves;
using testing::Save;
using testing::scan;
using testing::Scanned;
using testing::ToyScan;

constexpr ResidualId kA(0), kB(1);
/// Layers of 256 KiB: what copies need beside them, some hundred bytes each, does not weigh.
constexpr int kWidth = 65536;
constexpr Bytes kSlice(4 * kWidth), kStack(4 * 4 * kWidth);

Scanned place(const Scanned& from, const std::vector<PlacementChange>& changes) {
  return scan(place_residuals(from.program, from.memory, from.table, changes));
}
Scanned place_both(const Scanned& from, Placement placement) {
  return place(from, {{kA, placement}, {kB, placement}});
}

/// A sound program, in the opinion of those that did not make it.
void check_sound(const Program& program) {
  testing::check_sound(program);
  CHECK(testing::find_overlap(program, assign_memory(program, testing::toy_schedule(program))) ==
        "");
}

/// The stacks lie where they are wanted, and so does every shape that shows them; each slice on the
/// host is moved once there and once back.
void check_places(const Scanned& found, std::initializer_list<Placement> wanted) {
  REQUIRE(found.table.residuals.size() == wanted.size());
  Bytes host;
  for (const ResidualId id : ids(found.table.residuals)) {
    const Residual& residual = found.table.residuals[id];
    CHECK(residual.placement == wanted.begin()[id.index]);
    CHECK(residual.total_bytes == kStack);
    if (residual.placement == Placement::kPinnedHost) host += kStack;
  }
  CHECK(sum_totals(found.memory).host_temp == host);
  const HostTraffic traffic = sum_traffic(found.program);
  CHECK(traffic.device_to_host == host);
  CHECK(traffic.host_to_device == host);
  CHECK(traffic.offloads == ratio(host, kSlice));
  CHECK(traffic.reloads == ratio(host, kSlice));
  // validate has compared the shapes of callers and called.
  for (const InstructionId id : found.memory.schedule.order) {
    const Shape shape = found.program[id].shape;
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      if (shape.at(node).is_tuple() || shape.at(node).bytes() != kStack) continue;
      const BufferId buffer = found.memory.liveness.buffer_of[found.memory.values.at(id, node)];
      INFO(found.program[id].name);
      for (const Residual& residual : found.table.residuals)
        if (residual.stack == buffer)
          CHECK(is_host(shape.at(node).space()) == (residual.placement == Placement::kPinnedHost));
    }
  }
}

/// How the memory of two programs may differ when one has async pairs of its own where the other
/// updates and slices in place. Such a pair takes two tables of pointers and a word, which the heap
/// rounds up to 256 bytes each; and a slice may be held up to the end of the body, instead of until
/// it is written. Here are at most two pairs and one such slice for each of two stacks.
constexpr Bytes kPairs = 2 * (2 * 3 * Bytes(256) + kSlice);

void check_close(const Scanned& a, const Scanned& b) {
  const MemoryTotals x = sum_totals(a.memory), y = sum_totals(b.memory);
  CHECK(x.total_device - y.total_device <= kPairs);
  CHECK(y.total_device - x.total_device <= kPairs);
  CHECK(x.host_temp == y.host_temp);
  CHECK(x.argument == y.argument);
  CHECK(x.output == y.output);
  CHECK(x.alias == y.alias);
}

void check_equal(const Scanned& a, const Scanned& b) {
  const MemoryTotals x = sum_totals(a.memory), y = sum_totals(b.memory);
  CHECK(x.total_device == y.total_device);
  CHECK(x.no_fragmentation == y.no_fragmentation);
  CHECK(x.host_temp == y.host_temp);
}

bool is_async(const testing::ToyStack& stack) {
  return (stack.save == Save::kAsync || stack.save == Save::kAsyncFused) &&
         (stack.fetch == Fetch::kAsync || stack.fetch == Fetch::kAsyncFused ||
          stack.fetch == Fetch::kAsyncCopied);
}

TEST_CASE("there and back again: every form of saving and fetching") {
  for (const Save save : kSaves)
    for (const Fetch fetch : kFetches)
      for (const bool on_host : {false, true})
        for (const bool one_initial_fusion : {false, true}) {
          CAPTURE(static_cast<int>(save));
          CAPTURE(static_cast<int>(fetch));
          CAPTURE(on_host);
          CAPTURE(one_initial_fusion);
          ToyScan toy{.a = {save, fetch, on_host}, .b = {save, fetch, on_host}};
          if (on_host && !is_async(toy.a)) continue;  // XLA moves by async pairs alone
          if (is_maker(save)) toy.a.save = Save::kFused;
          toy.one_initial_fusion = one_initial_fusion;
          toy.width = kWidth;
          const Placement here = on_host ? Placement::kPinnedHost : Placement::kDevice;
          const Placement there = on_host ? Placement::kDevice : Placement::kPinnedHost;
          const Scanned start = scan(toy);
          check_sound(start.program);
          check_places(start, {here, here});
          const Scanned moved = place_both(start, there);
          check_sound(moved.program);
          check_places(moved, {there, there});
          const Scanned back = place_both(moved, here);
          check_sound(back.program);
          check_places(back, {here, here});
          check_close(back, start);
          // From now on copies stand as the rewrite puts them: nothing differs any more.
          const Scanned again = place_both(back, there);
          if (!on_host) check_equal(again, moved);
          check_equal(place_both(again, here), back);
          const std::int64_t there_less =
              (sum_totals(start.memory).total_device - sum_totals(moved.memory).total_device)
                  .value();
          CHECK((there_less > 0) != on_host);
        }
}

TEST_CASE("where a stack lies changes nothing of what is computed") {
  for (const Save save : kSaves)
    for (const Fetch fetch : kFetches)
      for (const bool one_initial_fusion : {false, true})
        for (const int outer_trips : {0, 2}) {
          CAPTURE(static_cast<int>(save));
          CAPTURE(static_cast<int>(fetch));
          CAPTURE(one_initial_fusion);
          CAPTURE(outer_trips);
          ToyScan toy{.a = {save, fetch, false}, .b = {save, fetch, false}};
          if (is_maker(save)) toy.a.save = Save::kFused;
          toy.one_initial_fusion = one_initial_fusion;
          toy.outer_trips = outer_trips;
          toy.width = 3;
          const Scanned start = scan(toy);
          const std::vector<double> wanted = testing::run_toy(start.program);
          const Scanned moved = place_both(start, Placement::kPinnedHost);
          CHECK(testing::run_toy(moved.program) == wanted);
          CHECK(testing::run_toy(place(moved, {{kA, Placement::kDevice}}).program) == wanted);
          CHECK(testing::run_toy(place_both(moved, Placement::kDevice).program) == wanted);
        }
}

TEST_CASE("one stack moves, the other one stays") {
  ToyScan toy{.a = {Save::kAsync, Fetch::kAsync, true}, .b = {Save::kMaker, Fetch::kTwice, false}};
  toy.width = kWidth;
  const Scanned start = scan(toy);
  check_sound(place(start, {{kA, Placement::kDevice}}).program);
  check_places(place(start, {{kA, Placement::kDevice}}), {Placement::kDevice, Placement::kDevice});
  check_sound(place(start, {{kB, Placement::kPinnedHost}}).program);
  check_places(place(start, {{kB, Placement::kPinnedHost}}),
               {Placement::kPinnedHost, Placement::kPinnedHost});
  const Scanned both = place(start, {{kA, Placement::kDevice}, {kB, Placement::kPinnedHost}});
  check_sound(both.program);
  check_places(both, {Placement::kDevice, Placement::kPinnedHost});
}

TEST_CASE("one fill begins two stacks: the one that stays keeps it in HBM") {
  ToyScan toy;
  toy.copied_initial = true;
  toy.width = 3;
  const Scanned start = scan(toy);
  const std::vector<double> wanted = testing::run_toy(start.program);
  const std::int64_t stack = std::int64_t{4} * 3 * 4;  // layers x floats x bytes
  for (const ResidualId moved_one : {kA, kB}) {
    CAPTURE(moved_one.index);
    const Scanned moved = place(start, {{moved_one, Placement::kPinnedHost}});
    check_sound(moved.program);
    CHECK(sum_totals(moved.memory).host_temp == Bytes(stack));
    CHECK(sum_traffic(moved.program).device_to_host == Bytes(stack));
    CHECK(sum_traffic(moved.program).host_to_device == Bytes(stack));
    CHECK(testing::run_toy(moved.program) == wanted);
  }
}

TEST_CASE("inside an outer loop every trip moves the slices") {
  ToyScan toy;
  toy.width = kWidth;
  toy.outer_trips = 3;
  const Scanned moved = place_both(scan(toy), Placement::kPinnedHost);
  check_sound(moved.program);
  CHECK(sum_totals(moved.memory).host_temp == 2 * kStack);
  CHECK(sum_traffic(moved.program).device_to_host == 3 * 2 * kStack);
  CHECK(sum_traffic(moved.program).host_to_device == 3 * 2 * kStack);
}

/// What runs in a computation, in order.
std::string order(const Scanned& found, std::string_view computation) {
  std::string names;
  for (const InstructionId id : found.memory.schedule.order)
    if (found.program[id.computation].name() == computation && !is_free(found.program[id]))
      names += (names.empty() ? "" : " ") + std::string(found.program[id].name);
  return names;
}

TEST_CASE("an offload starts where its slice is made, a reload at the top of the body") {
  const Scanned start = scan(ToyScan{.a = {}, .b = {.fetch = Fetch::kLibrary}});
  CHECK(order(start, "forward") == "new_a h new_b y j");
  CHECK(order(start, "backward") == "k g_a call_b g_b j2");
  const Scanned moved = place_both(start, Placement::kPinnedHost);
  CHECK(order(moved, "forward") ==
        "offload.r0-start h offload.r1-start y j offload.r0-done offload.r1-done");
  CHECK(order(moved, "backward") ==
        "k reload.r0-start reload.r1-start reload.r0-done g_a reload.r1-done call_b g_b j2");
  // Back in HBM a loop fusion slices the stack itself; for a library call it is done right before.
  const Scanned back = place_both(moved, Placement::kDevice);
  CHECK(order(back, "backward") == "k g_a reload.r1-start reload.r1-done call_b g_b j2");
}

TEST_CASE("a fusion that makes what it saves gives it once, where others read it or not") {
  for (const Save save : {Save::kMaker, Save::kOnlyMaker}) {
    const Scanned start = scan(ToyScan{.a = {}, .b = {.save = save}});
    const InstructionId writer = start.table.residuals[kB].write.instruction;
    const Scanned moved = place(start, {{kB, Placement::kPinnedHost}});
    const Instruction& maker =
        moved.program[testing::find_instruction(moved.program, start.program[writer].name)];
    CHECK(to_string(maker.shape) == (save == Save::kMaker ? "f32[64]" : "f32[1,64]"));
  }
}

TEST_CASE("changes that ask for what is so, or for what cannot be, do nothing") {
  struct Row {
    const char* what;
    ToyScan toy;
    std::vector<PlacementChange> changes;
  };
  const Row rows[] = {{"none", {}, {}},
                      {"in HBM already", {}, {{kA, Placement::kDevice}, {kB, Placement::kDevice}}},
                      {"on the host already",
                       {.a = {Save::kAsync, Fetch::kAsync, true}, .b = {}},
                       {{kA, Placement::kPinnedHost}, {kB, Placement::kDevice}}},
                      {"copied between the loops",
                       {.a = {}, .b = {.copied = true}},
                       {{kB, Placement::kPinnedHost}}},
                      {"read by several loops",
                       {.a = {}, .b = {}, .third_loop = true},
                       {{kA, Placement::kPinnedHost}}}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Scanned start = scan(row.toy);
    const Program same = place_residuals(start.program, start.memory, start.table, row.changes);
    REQUIRE(same.computations.size() == start.program.computations.size());
    for (const ComputationId id : ids(same.computations))
      CHECK(same.computations[id] == start.program.computations[id]);
  }
}

TEST_CASE("of two changes to one residual the first counts") {
  const Scanned start = scan(ToyScan{.a = {Save::kAsync, Fetch::kAsync, true}, .b = {}});
  const Scanned moved = place(start, {{kB, Placement::kPinnedHost}, {kB, Placement::kDevice}});
  CHECK(moved.table.residuals[kB].placement == Placement::kPinnedHost);
}

TEST_CASE("computations that show no moved stack are shared") {
  const Scanned start = scan(ToyScan{.a = {Save::kAlone, Fetch::kFused, false},
                                     .b = {Save::kAlone, Fetch::kFused, false}});
  const Program moved =
      place_residuals(start.program, start.memory, start.table, {{kB, Placement::kPinnedHost}});
  std::string changed;
  for (const ComputationId id : ids(start.program.computations))
    if (moved.computations[id] != start.program.computations[id])
      changed += std::string(start.program[id].name()) + " ";
  // Loops carry both stacks. What fusions call is not changed but replaced by another.
  CHECK(changed == "forward backward f_less b_less main ");
  CHECK(start.table.residuals[kB].placement == Placement::kDevice);
  CHECK_FALSE(validate(start.program).has_value());
}

TEST_CASE("what cannot be moved says why") {
  struct Row {
    const char* what;
    ToyScan toy;
    const char* a;
    const char* b;
  };
  const char* const saved = "it is saved by something other than a slice update";
  const char* const read = "it is read by something other than slices of it";
  const Row rows[] = {
      {"copied",
       {.a = {}, .b = {.copied = true}},
       "",
       "XLA copies the whole stack between the loops"},
      {"pipelined",
       {.a = {}, .b = {Save::kAsync, Fetch::kAsync, true}, .pipelined = true},
       "",
       "its copies are pipelined across iterations"},
      {"negated after the update", {.a = {Save::kNegated}, .b = {}}, saved, ""},
      {"slices of two places", {.a = {}, .b = {Save::kFused, Fetch::kTwoPlaces}}, "", read},
      {"another loop", {.a = {}, .b = {}, .third_loop = true}, "several loops read it", ""}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Scanned found = scan(row.toy);
    REQUIRE(found.table.residuals.size() == 2);
    const auto why = [&found](ResidualId id) {
      return why_not_movable(found.program, found.memory, found.table.residuals[id]);
    };
    CHECK(why(kA) == row.a);
    CHECK(why(kB) == row.b);
  }
}

TEST_CASE("a loop that begins with part of another tuple is left alone") {
  // The outer tuple's elements are not those of the loop, though there are as many.
  std::string text = ToyScan{}.text();
  const std::size_t state = text.find("%f0 = ") + 6;
  const std::string shape = text.substr(state, text.find(" tuple(", state) - state);
  const std::string loop = "  %fw = ";
  text.insert(text.find(loop), "  %outer = (" + shape +
                                   ", f32[4,64]{1,0}, s32[]) tuple(%f0, "
                                   "%init_a, %c0)\n");
  text.replace(text.find("while(%f0)"), 10, "while(%outer#0)");
  const Program program = testing::toy_program(text);
  REQUIRE(!validate(program).has_value());
  const MemoryAssignment memory = assign_memory(program, testing::toy_schedule(program));
  const ResidualTable table = find_residuals(program, memory, NameList{});
  REQUIRE(!table.residuals.empty());
  for (const ResidualId id : ids(table.residuals))
    CHECK(why_not_movable(program, memory, table.residuals[id]) ==
          "what its loop begins with is not put together right in front of it");
  const Program same = place_residuals(program, memory, table, {{kA, Placement::kPinnedHost}});
  for (const ComputationId id : ids(same.computations))
    CHECK(same.computations[id] == program.computations[id]);
}

TEST_CASE("any stack may go anywhere, in any order, as often as one likes") {
  constexpr std::uint32_t kPrograms = 300;
  for (std::uint32_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    const auto roll = [&dice](std::size_t sides) { return dice() % sides; };
    ToyScan toy;
    for (testing::ToyStack* stack : {&toy.a, &toy.b}) {
      stack->save = kSaves[roll(std::size(kSaves))];
      stack->fetch = kFetches[roll(std::size(kFetches))];
      stack->on_host = is_async(*stack) && roll(2) == 0;
    }
    if (is_maker(toy.a.save)) toy.a.save = Save::kAlone;
    toy.one_initial_fusion = roll(2) == 0;
    toy.width = kWidth;
    Scanned now = scan(toy);
    for (std::size_t moves = 1 + roll(4); moves > 0; --moves) {
      Placement wanted[2];
      std::vector<PlacementChange> changes;
      for (const ResidualId id : {kA, kB}) {
        wanted[id.index] = now.table.residuals[id].placement;
        if (roll(3) == 0) continue;
        wanted[id.index] = roll(2) == 0 ? Placement::kDevice : Placement::kPinnedHost;
        changes.push_back({id, wanted[id.index]});
      }
      if (roll(2) == 0) std::ranges::reverse(changes);
      now = place(now, changes);
      check_sound(now.program);
      check_places(now, {wanted[0], wanted[1]});
    }
  }
}

}  // namespace
}  // namespace spillway
