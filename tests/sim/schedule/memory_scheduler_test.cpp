#include "sim/schedule/memory_scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "model/memory/memory_report.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/memory/random_step.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::toy_program;
using testing::toy_schedule;

constexpr MemoryScheduler kAll[] = {MemoryScheduler::kList, MemoryScheduler::kDepthFirst,
                                    MemoryScheduler::kPostOrder, MemoryScheduler::kRelaxed};

MemoryAssignment assign_as_given(const Program& program) {
  return assign_memory(program, toy_schedule(program));
}

/// "a b c": the order of a computation.
std::string order_text(const Computation& computation, const std::vector<InstructionIndex>& order) {
  std::string text;
  for (const InstructionIndex i : order)
    text += (text.empty() ? "" : " ") + std::string(computation[i].name);
  return text;
}

std::string order_of(const Program& program, MemoryScheduler scheduler) {
  const Schedule schedule = schedule_for_memory(program, assign_as_given(program), scheduler);
  return order_text(program.entry_computation(), schedule.order[program.entry]);
}

Bytes total_in(const Program& program, const Schedule& schedule) {
  return sum_totals(assign_memory(program, schedule)).total_device;
}

TEST_CASE("what each scheduler runs first") {
  struct Row {
    const char* name;
    const char* entry;
    const char* list;
    const char* depth_first;
    const char* post_order;
    const char* relaxed;
  };
  const Row rows[] = {
      {"list frees large before small, whatever the operands' order", R"(
  %a = f32[64]{0} parameter(0)
  %big = f32[640]{0} custom-call(%a), custom_call_target="f"
  %small = f32[128]{0} custom-call(%a), custom_call_target="f"
  %from_small = f32[64]{0} custom-call(%small), custom_call_target="f"
  %from_big = f32[64]{0} custom-call(%big), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%from_small, %from_big), custom_call_target="f"
)",
       "a small from_small big from_big out", "a big from_big small from_small out",
       "a small from_small big from_big out", "a big from_big small from_small out"},
      {"what fans out comes first where depth decides", R"(
  %a = f32[64]{0} parameter(0)
  %once = f32[640]{0} custom-call(%a), custom_call_target="f"
  %twice = f32[64]{0} custom-call(%a), custom_call_target="f"
  %x = f32[64]{0} custom-call(%twice), custom_call_target="f"
  %y = f32[64]{0} custom-call(%twice), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%once, %x, %y), custom_call_target="f"
)",
       "a twice y x once out", "a twice x y once out", "a once twice x y out",
       "a once twice x y out"},
      {"a scalar is taken as soon as it is there", R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  %one = f32[] custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%y, %one), custom_call_target="f"
)",
       "a one x y out", "a x y one out", "a x y one out", "a x y one out"},
      {"a copy is done as soon as it is started", R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%x)
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  %done = f32[64]{0:S(5)} copy-done(%start)
  ROOT %out = f32[64]{0} custom-call(%y, %done), custom_call_target="f"
)",
       "a x start done y out", "a x y start done out", "a x y start done out",
       "a x start done y out"},
      {"who reads what is written over goes before", R"(
  %a = f32[64]{0} parameter(0)
  %at = s32[] parameter(1)
  %stack = f32[64]{0} custom-call(%a), custom_call_target="f"
  %row = f32[1]{0} custom-call(%a), custom_call_target="f"
  %old = f32[64]{0} custom-call(%stack), custom_call_target="f"
  %new = f32[64]{0} dynamic-update-slice(%stack, %row, %at)
  ROOT %out = f32[64]{0} custom-call(%new, %old), custom_call_target="f"
)",
       "at a row stack old new out", "a stack old row at new out", "a stack row at old new out",
       "a at stack row old new out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = testing::read_entry(row.entry);
    CHECK(order_of(program, MemoryScheduler::kList) == row.list);
    CHECK(order_of(program, MemoryScheduler::kDepthFirst) == row.depth_first);
    CHECK(order_of(program, MemoryScheduler::kPostOrder) == row.post_order);
    CHECK(order_of(program, MemoryScheduler::kRelaxed) == row.relaxed);
  }
}

TEST_CASE("a start and a done that something must come between stay apart") {
  const Program program = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)
  %between = f32[64]{0} custom-call(%a), custom_call_target="f", control-predecessors={%start}
  %done = f32[64]{0:S(5)} copy-done(%start), control-predecessors={%between}
  ROOT %out = f32[64]{0} custom-call(%between, %done), custom_call_target="f"
)");
  for (const MemoryScheduler scheduler : kAll)
    CHECK(order_of(program, scheduler) == "a start between done out");
}

TEST_CASE("the best order, or the given one where none is better") {
  // The schedule keeps all three of 2560 bytes; one at a time is enough.
  const Program wasteful = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[640]{0} custom-call(%a), custom_call_target="f"
  %y = f32[640]{0} custom-call(%a), custom_call_target="f"
  %z = f32[640]{0} custom-call(%a), custom_call_target="f"
  %u = f32[64]{0} custom-call(%x), custom_call_target="f"
  %v = f32[64]{0} custom-call(%y), custom_call_target="f"
  %w = f32[64]{0} custom-call(%z), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%u, %v, %w), custom_call_target="f"
)");
  const MemoryAssignment given = assign_as_given(wasteful);
  CHECK(sum_totals(given).total_device == Bytes(256 + 256 + 3 * 2560 + 256));
  const MinimalOrder order = find_minimal_order(wasteful, given);
  CHECK(order.scheduler == MemoryScheduler::kList);
  CHECK(order.total_device == Bytes(256 + 256 + 2560 + 3 * 256));
  const Program best = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  ROOT %x = f32[640]{0} custom-call(%a), custom_call_target="f"
)");
  CHECK(!find_minimal_order(best, assign_as_given(best)).scheduler);
  CHECK(find_minimal_order(best, assign_as_given(best)).total_device == Bytes(256 + 2560));
}

/// A program of a parameter and up to seven instructions, some of them in place.
std::string small_program(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  struct Array {
    std::string name, shape;
  };
  std::vector<Array> readable = {{"a", "f32[64]{0}"}};
  std::string text = "  %a = f32[64]{0} parameter(0)\n";
  const std::size_t count = 3 + below(4);
  for (std::size_t k = 0; k < count; ++k) {
    const Array x = readable[below(readable.size())];
    const Array y = readable[below(readable.size())];
    Array made{"x" + std::to_string(k), "f32[" + std::to_string(64 * (1 + below(8))) + "]{0}"};
    std::string what = "custom-call(%" + x.name + ", %" + y.name + "), custom_call_target=\"f\"";
    if (below(4) == 0 && x.name != "a" && x.name != y.name) {  // what it updates is gone then
      made.shape = x.shape;
      what = "scatter(%" + x.name + ", %" + y.name + ", %" + y.name + "), to_apply=%sum";
      std::erase_if(readable, [&](const Array& array) { return array.name == x.name; });
    } else if (below(3) == 0) {
      made.shape = x.shape;
      what = "negate(%" + x.name + ")";
    }
    text += "  %" + made.name + " = " + made.shape + " " + what + "\n";
    readable.push_back(made);
  }
  const Array& x = readable.back();
  const Array& y = readable[below(readable.size())];
  return "%sum (l: f32[], r: f32[]) -> f32[] {\n  %l = f32[] parameter(0)\n"
         "  %r = f32[] parameter(1)\n  ROOT %plus = f32[] add(%l, %r)\n}\n"
         "ENTRY %main {\n" +
         text + "  ROOT %out = f32[64]{0} custom-call(%" + x.name + ", %" + y.name +
         "), custom_call_target=\"f\"\n}\n";
}

/// The least device total of all orders in which every instruction finds what it reads.
Bytes least_of_all(const Program& program) {
  const Computation& entry = program.entry_computation();
  std::vector<InstructionIndex> order;
  for (const InstructionIndex i : entry.instructions()) order.push_back(i);
  std::optional<Bytes> least;
  do {
    std::vector<std::size_t> place(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) place[order[k].index] = k;
    const bool runs = std::ranges::all_of(order, [&](InstructionIndex i) {
      return std::ranges::all_of(entry.operands(i), [&](const Operand& operand) {
        return place[operand.instruction.index] < place[i.index];
      });
    });
    if (!runs) continue;
    Schedule schedule = toy_schedule(program);
    schedule.order[program.entry] = order;
    const MemoryAssignment memory = assign_memory(program, schedule);
    if (testing::find_lost_read(program, memory) != "") continue;
    const Bytes total = sum_totals(memory).total_device;
    least = least ? std::min(*least, total) : total;
  } while (std::ranges::next_permutation(order).found);
  REQUIRE(least);
  return *least;
}

TEST_CASE("never above the given order, never below the least of all orders") {
  int improved = 0, least = 0;
  constexpr int kPrograms = 200;
  for (std::uint32_t seed = 0; seed < kPrograms; ++seed) {
    CAPTURE(seed);
    const Program program = toy_program(small_program(seed));
    const MemoryAssignment given = assign_as_given(program);
    REQUIRE(testing::find_lost_read(program, given) == "");
    const MinimalOrder found = find_minimal_order(program, given);
    const Bytes true_least = least_of_all(program);
    REQUIRE(found.total_device <= sum_totals(given).total_device);
    REQUIRE(true_least <= found.total_device);
    if (found.scheduler)
      REQUIRE(found.total_device ==
              total_in(program, schedule_for_memory(program, given, *found.scheduler)));
    improved += found.scheduler ? 1 : 0;
    least += found.total_device == true_least ? 1 : 0;
  }
  // Both happen, and so the limits above are met from either side.
  CHECK(improved > kPrograms / 10);
  CHECK(least > kPrograms / 2);
  MESSAGE(improved << " of " << kPrograms << " orders improved, " << least
                   << " the least possible");
}

TEST_CASE("every order the schedulers make runs: loops, copies, in-place updates, donation") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    testing::RandomStep step(seed);
    const std::string text = step.text();
    const Program program = toy_program(text, step.header());
    const MemoryAssignment given = assign_as_given(program);
    for (const MemoryScheduler scheduler : kAll) {
      CAPTURE(name_of(scheduler));
      const Schedule schedule = schedule_for_memory(program, given, scheduler);
      for (const ComputationId id : ids(program.computations)) {
        std::vector<bool> ran(program[id].size());
        for (const InstructionIndex i : schedule.order[id]) {
          for (const Operand& operand : program[id].operands(i))
            REQUIRE(ran[operand.instruction.index]);
          REQUIRE(!ran[i.index]);
          ran[i.index] = true;
        }
        REQUIRE((schedule.order[id].empty() || std::ranges::count(ran, false) == 0));
      }
      const MemoryAssignment memory = assign_memory(program, schedule);
      REQUIRE(testing::find_overlap(program, memory) == "");
      REQUIRE(testing::find_lost_read(program, memory) == "");
    }
  }
}

TEST_CASE("the corpus: no order is worse than the given one; what hiding copies costs, unrolled") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t improved = 0, programs = 0;
  std::map<std::string, double> price;  // the part of the given total that the order costs
  for (const testing::CsvRow& row : testing::corpus_rows(*corpus)) {
    const std::string& id = row.at("id");
    CAPTURE(id);
    const testing::LoadedDump dump = testing::load_dump(*corpus / id);
    const MinimalOrder found = find_minimal_order(dump.program, dump.memory);
    const Bytes given = sum_totals(dump.memory).total_device;
    CHECK(found.total_device <= given);
    ++programs;
    price[id] = static_cast<double>((given - found.total_device).value()) /
                static_cast<double>(given.value());
    if (!found.scheduler) continue;
    improved += price[id] > 0.001 ? 1 : 0;
    const MemoryAssignment memory = assign_memory(
        dump.program, schedule_for_memory(dump.program, dump.memory, *found.scheduler));
    CHECK(testing::find_overlap(dump.program, memory) == "");
    CHECK(testing::find_lost_read(dump.program, memory) == "");
  }
  CHECK(price.at("l8b_unr32_off") > 0.25);
  CHECK(price.at("l8b4_unr_off") > 0.18);  // and so no more than its twins take
  for (const char* twin : {"l8b4_unr_off_lhs0", "l8b4_unr_off_fence"}) {
    CAPTURE(twin);
    CHECK(price.at(twin) < 0.001);
  }
  MESSAGE(improved << " of " << programs << " orders cost more than a thousandth");
}

}  // namespace
}  // namespace spillway
