#include "model/memory/assignment.h"

#include <doctest/doctest.h>

#include "model/memory/memory_report.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/model/memory/random_step.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;
using testing::toy_schedule;

/// "parameter 0 donated out 256": an allocation in words.
std::string describe(const Allocation& allocation) {
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (allocation.parameter) add("parameter " + std::to_string(*allocation.parameter));
  if (allocation.aliased) add("donated");
  if (allocation.constant) add("constant");
  if (allocation.thread_local_scalar) add("scalar");
  if (allocation.live_out) add("out");
  if (allocation.is_temp()) add("temp");
  if (allocation.space != MemorySpace::kDevice)
    add("S(" + std::to_string(static_cast<int>(allocation.space)) + ")");
  add(std::to_string(allocation.size.value()));
  return text;
}

struct Assigned {
  Program program;
  MemoryAssignment memory;

  std::string allocations() const {
    std::string text;
    for (const Allocation& allocation : memory.allocations)
      text += (text.empty() ? "" : ", ") + describe(allocation);
    return text;
  }
  /// "parameter 0 donated out 256 @0": where a value lies.
  std::string place(const char* name, ShapeNodeIndex node = 0) const {
    const auto cell = memory.cell_of[memory.values.at(find_instruction(program, name), node)];
    if (!cell) return "nowhere";
    return describe(memory.allocations[memory.cells[*cell].allocation]) + " @" +
           std::to_string(memory.cells[*cell].offset.value());
  }
};

Assigned assign(const std::string& text, const std::string& header = "") {
  Program program = toy_program(text, header);
  MemoryAssignment memory = assign_memory(program, toy_schedule(program));
  CHECK(testing::find_overlap(program, memory) == "");
  return {std::move(program), std::move(memory)};
}

constexpr const char* kChain = R"(
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} negate(%a)
  %y = f32[64]{0} negate(%x)
  %z = f32[64]{0} negate(%y)
  ROOT %out = f32[64]{0} negate(%z)
}
)";

TEST_CASE("a donated parameter houses others once it is dead, until the output comes") {
  const Assigned a = assign(kChain, ", input_output_alias={ {}: (0, {}, may-alias) }");
  CHECK(a.allocations() == "parameter 0 donated out 256");
  for (const char* name : {"a", "x", "y", "z", "out"}) {
    CAPTURE(name);
    CHECK(a.place(name) == "parameter 0 donated out 256 @0");
  }
}

TEST_CASE("a parameter that is not donated houses nobody; a result's allocation does") {
  const Assigned a = assign(kChain);
  CHECK(a.allocations() == "out 256, parameter 0 256");
  CHECK(a.place("a") == "parameter 0 256 @0");
  for (const char* name : {"x", "y", "z", "out"}) {
    CAPTURE(name);
    CHECK(a.place(name) == "out 256 @0");
  }
}

TEST_CASE("results take allocations of their own size only; temporaries also larger ones") {
  const Assigned a = assign(R"(
ENTRY %main (a: f32[128]) -> (f32[64], f32[128]) {
  %a = f32[128]{0} parameter(0)
  %x = f32[32]{0} slice(%a), slice={[0:32]}
  %result = f32[64]{0} concatenate(%x, %x), dimensions={0}
  %last = f32[128]{0} concatenate(%result, %result), dimensions={0}
  ROOT %out = (f32[64]{0}, f32[128]{0}) tuple(%result, %last)
}
)",
                            ", input_output_alias={ {1}: (0, {}, may-alias) }");
  CHECK(a.place("last") == "parameter 0 donated out 512 @0");
  CHECK(a.place("result") == "out 256 @0");  // does not fit in the donated one's gap exactly
  CHECK(a.place("x") == "temp 128 @0");      // meets `a` and `result` at their ends, no way over
  CHECK(a.place("out", 0) == "out 16 @0");   // the table of the tuple
}

TEST_CASE("an allocation takes nobody whose life overlaps more than a moment") {
  const std::string entry = R"(
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} negate(%a)
  READ
  %y = f32[64]{0} add(%x, %x)
  ROOT %out = f32[64]{0} negate(%y)
}
)";
  const auto with = [&entry](const char* read) {
    std::string text = entry;
    return text.replace(text.find("READ"), 4, read);
  };
  const std::string alias = ", input_output_alias={ {}: (0, {}, may-alias) }";
  // `a` dies under x: x lies over it. One step later it does not.
  CHECK(assign(with("%late = f32[64]{0} negate(%x)"), alias).place("x") ==
        "parameter 0 donated out 256 @0");
  CHECK(assign(with("%late = f32[64]{0} negate(%a)"), alias).place("x") == "temp 256 @0");
}

TEST_CASE("constants and the scalars of applied functions have allocations of their own") {
  const Assigned a = assign(R"(
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  %bits = f32[] bitcast(%r)
  %two = f32[] constant(2)
  %twice = f32[] multiply(%l, %two)
  ROOT %plus = f32[] add(%twice, %bits)
}
%fused (p: f32[64]) -> f32[] {
  %p = f32[64]{0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %reduce = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%sum
}
ENTRY %main (a: f32[64]) -> f32[] {
  %a = f32[64]{0} parameter(0)
  %one = f32[64]{0} constant({...})
  %x = f32[64]{0} add(%a, %one)
  ROOT %out = f32[] fusion(%x), kind=kInput, calls=%fused
}
)");
  // l, r, twice and plus, not the bitcast; the constant inside counts as one. The block of
  // temporaries changes places with the last of them.
  CHECK(a.allocations() ==
        "parameter 0 256, constant 256, out 4, scalar 4, scalar 4, scalar 4, constant 4, "
        "scalar 4, temp 256");
  CHECK(a.place("one") == "constant 256 @0");
}

TEST_CASE("tuple tables lie beside the heap, each from an aligned place, the last not padded") {
  const std::string wrapped = R"(
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %plus = f32[] add(%l, %r)
}
%wrapped (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  ROOT %inner = f32[64]{0} negate(%p)
}
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %start = ((f32[64]{0}), f32[64]{0}, u32[]) async-start(%a), calls=%wrapped
  %done = f32[64]{0} async-done(%start)
  ROOT %out = f32[64]{0} )";
  // The heap holds the context of 4 bytes; the tables of {} and {0} have 24 and 8.
  const Assigned plain = assign(wrapped + "negate(%done)\n}\n");
  CHECK(plain.place("start", 0) == "temp 516 @0");
  CHECK(plain.place("start", 1) == "temp 516 @256");
  CHECK(plain.place("start", 4) == "temp 516 @512");
  CHECK(plain.memory.heaps.size() == 1);
  CHECK(plain.memory.heaps[0].size == Bytes(4));
  // Scalars of a reduction's function come behind the temporaries, and turn their order round.
  const Assigned swapped = assign(wrapped + "all-reduce(%done), to_apply=%sum\n}\n");
  CHECK(swapped.place("start", 4) == "temp 536 @0");
  CHECK(swapped.place("start", 1) == "temp 536 @256");
  CHECK(swapped.place("start", 0) == "temp 536 @512");
}

TEST_CASE("each memory space has a heap of its own; all but 5 count as device memory") {
  const Assigned a = assign(R"(
ENTRY %main (a: f32[64]) -> f32[] {
  %a = f32[64]{0} parameter(0)
  %device = f32[64]{0} negate(%a)
  %collective = f32[128]{0:S(1)} concatenate(%device, %device), dimensions={0}
  %temp = f32[192]{0:S(2)} concatenate(%device, %collective), dimensions={0}
  %unpinned = f32[320]{0:S(6)} concatenate(%collective, %temp), dimensions={0}
  %host = f32[256]{0:S(5)} concatenate(%collective, %collective), dimensions={0}
  %back = f32[64]{0} slice(%host), slice={[0:64]}
  %more = f32[64]{0} slice(%unpinned), slice={[0:64]}
  ROOT %out = f32[] dot(%back, %more), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
)");
  CHECK(a.place("collective") == "temp S(1) 512 @0");
  CHECK(a.place("temp") == "temp S(2) 768 @0");
  CHECK(a.place("host") == "temp S(5) 1024 @0");
  CHECK(a.place("unpinned") == "temp S(6) 1280 @0");
  CHECK(a.place("device") == "temp 512 @0");
  CHECK(a.place("back") == "temp 512 @0");
  CHECK(a.place("more") == "temp 512 @256");
  const MemoryTotals totals = sum_totals(a.memory);
  CHECK(totals.total_device == Bytes(256 + 4 + 512 + 512 + 768 + 1280));
  CHECK(totals.temp == Bytes(512 + 512 + 768 + 1280));  // XLA's statistics, too, count 6 in
  CHECK(totals.host_temp == Bytes(1024));
}

TEST_CASE("a copy goes beside what it copies, even where both would fit") {
  const Assigned a = assign(R"(
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} negate(%a)
  %c = f32[64]{0} copy(%x)
  ROOT %out = f32[64]{0} negate(%c)
}
)");
  CHECK(a.place("x") == "out 256 @0");
  CHECK(a.place("c") == "temp 256 @0");
}

TEST_CASE("nothing that is live together shares memory; everything read is still there") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    testing::RandomStep step(seed);
    const std::string text = step.text();
    const Program program = toy_program(text, step.header());
    const MemoryAssignment memory = assign_memory(program, toy_schedule(program));
    REQUIRE(testing::find_overlap(program, memory) == "");
    for (const Cell& cell : memory.cells) {
      REQUIRE(cell.offset.value() % 256 == 0);
      REQUIRE(cell.offset + cell.size <= memory.allocations[cell.allocation].size);
    }
    REQUIRE(testing::find_lost_read(program, memory) == "");
    const MemoryReport report = make_memory_report(program, memory);
    REQUIRE(report.live_peak <= report.totals.total_device);
    REQUIRE(report.totals.no_fragmentation <= report.totals.total_device);
  }
}

TEST_CASE("the second opinion does see an overlap") {
  Assigned a = assign(R"(
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} negate(%a)
  %y = f32[64]{0} negate(%a)
  ROOT %out = f32[64]{0} dot(%x, %y), lhs_contracting_dims={}, rhs_contracting_dims={}
}
)");
  const auto cell = [&](const char* name) {
    return *a.memory.cell_of[a.memory.values.at(find_instruction(a.program, name), 0)];
  };
  a.memory.cells[cell("y")] = a.memory.cells[cell("x")];
  CHECK(testing::find_overlap(a.program, a.memory) == "x and y");
}

TEST_CASE("the same program gives the same assignment") {
  testing::RandomStep step(7);
  const std::string text = step.text();
  const Program program = toy_program(text);
  const MemoryAssignment first = assign_memory(program, toy_schedule(program));
  const MemoryAssignment second = assign_memory(program, toy_schedule(program));
  REQUIRE(first.cells.size() == second.cells.size());
  for (const CellId cell : ids(first.cells)) {
    CHECK(first.cells[cell].offset == second.cells[cell].offset);
    CHECK(first.cells[cell].allocation == second.cells[cell].allocation);
  }
}

TEST_CASE("below a limit: the same assignment, or none where it needs as much") {
  int refused = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    testing::RandomStep step(seed);
    const std::string text = step.text();
    const Program program = toy_program(text, step.header());
    const Schedule schedule = toy_schedule(program);
    const Bytes total = sum_totals(assign_memory(program, schedule)).total_device;
    const auto below = assign_memory_below(program, schedule, total + Bytes(1));
    REQUIRE(below.has_value());
    CHECK(sum_totals(*below).total_device == total);
    refused += assign_memory_below(program, schedule, total) ? 0 : 1;
    CHECK(!assign_memory_below(program, schedule, Bytes(1)));
  }
  CHECK(refused > 50);  // most heaps have no gap
}

/// Loops around loops: each hands one array through and changes the other.
std::string nested_loops(int depth) {
  std::string text;
  for (int k = 0; k < depth; ++k) {
    const std::string n = std::to_string(k);
    const std::string carry = "(f32[64]{0}, f32[64]{0})";
    const std::string inside = k == 0 ? "  %k0 = f32[64]{0} get-tuple-element(%p0), index=0\n"
                                        "  %o0 = f32[64]{0} get-tuple-element(%p0), index=1\n"
                                        "  %n0 = f32[64]{0} add(%k0, %o0)\n"
                                        "  ROOT %r0 = (f32[64]{0}, f32[64]{0}) tuple(%k0, %n0)\n"
                                      : "  ROOT %r" + n + " = " + carry + " while(%p" + n +
                                            "), condition=%c" + std::to_string(k - 1) +
                                            ", body=%b" + std::to_string(k - 1) + "\n";
    text += "%b" + n + " (p: f32[]) -> f32[] {\n  %p" + n + " = " + carry + " parameter(0)\n" +
            inside + "}\n%c" + n + " (q: f32[]) -> pred[] {\n  %q" + n + " = " + carry +
            " parameter(0)\n  ROOT %t" + n + " = pred[] constant(true)\n}\n";
  }
  return text + R"(ENTRY %main (a: f32[64], b: f32[64]) -> f32[] {
  %a = f32[64]{0} parameter(0)
  %b = f32[64]{0} parameter(1)
  %from = f32[64]{0} negate(%b)
  %start = (f32[64]{0}, f32[64]{0}) tuple(%a, %from)
  ROOT %loop = (f32[64]{0}, f32[64]{0}) while(%start), condition=%c)" +
         std::to_string(depth - 1) + ", body=%b" + std::to_string(depth - 1) + "\n}\n";
}

TEST_CASE("loops nested deeper than the machine's stack") {
  const Assigned a = assign(nested_loops(10'000));
  CHECK(a.memory.schedule.end() == LogicalTime(10'000 * 4 + 1 + 5));
  CHECK(a.place("p0", 1) == "parameter 0 out 256 @0");  // handed through all of them
  CHECK(a.place("n0") == a.place("loop", 2));
}

}  // namespace
}  // namespace spillway
