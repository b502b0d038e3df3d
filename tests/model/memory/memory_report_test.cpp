#include "model/memory/memory_report.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::toy_program;
using testing::toy_schedule;

MemoryReport report_of(const Program& program) {
  return make_memory_report(program, assign_memory(program, toy_schedule(program)));
}

std::string curve_of(const MemoryReport& report) {
  std::string text;
  for (const CurvePoint& point : report.curve)
    text += (text.empty() ? "" : ", ") + std::to_string(point.position.value()) + ": " +
            std::to_string(point.bytes.value());
  return text;
}

std::string peak_of(const MemoryReport& report) {
  std::string text;
  for (const LiveBuffer& buffer : report.live_at_peak)
    text += (text.empty() ? "" : ", ") + buffer.name + " " + buffer.shape + " " +
            std::string(name_of(buffer.kind)) + " " + std::to_string(buffer.bytes.value());
  return text;
}

TEST_CASE("totals by class; a parameter that an output takes over is argument, output and alias") {
  const Program program = toy_program(R"(
ENTRY %main (a: f32[64], b: f32[128], c: f32[256]) -> (f32[64], f32[32], f32[128]) {
  %a = f32[64]{0} parameter(0)
  %b = f32[128]{0} parameter(1)
  %c = f32[256]{0:S(5)} parameter(2)
  %x = f32[64]{0} negate(%a)
  %y = f32[32]{0} slice(%b), slice={[0:32]}
  %start = (f32[128]{0:S(5)}, f32[128]{0}, u32[]) copy-start(%b)
  %done = f32[128]{0:S(5)} copy-done(%start)
  ROOT %out = (f32[64]{0}, f32[32]{0}, f32[128]{0:S(5)}) tuple(%x, %y, %done)
}
)",
                                      ", input_output_alias={ {0}: (0, {}, may-alias) }");
  const MemoryTotals totals = report_of(program).totals;
  CHECK(totals.argument == Bytes(256 + 512));
  CHECK(totals.output == Bytes(256 + 128 + 24));  // with the table of three pointers
  CHECK(totals.alias == Bytes(256));
  CHECK(totals.temp == Bytes(256 + 4));  // the start's table, then its context
  CHECK(totals.total_device == Bytes(256 + 512 + 128 + 24 + 260));
  CHECK(totals.largest_allocation == Bytes(512));
  CHECK(totals.host_argument == Bytes(1024));
  CHECK(totals.host_output == Bytes(512));
  CHECK(totals.host_alias == Bytes(0));
  CHECK(totals.host_temp == Bytes(0));
}

TEST_CASE("where two values meet in one place at the peak, the later one is there") {
  // The entry's values have larger numbers than those of what it calls: x than n.
  const MemoryReport report = report_of(toy_program(R"(
%fused {
  %fp = f32[64]{0} parameter(0)
  %fn = f32[64]{0} negate(%fp)
  %fs = f32[64]{0} sine(%fp)
  ROOT %ft = (f32[64]{0}, f32[64]{0}) tuple(%fn, %fs)
}
%called {
  %cp = f32[64]{0} parameter(0)
  %n = (f32[64]{0}, f32[64]{0}) fusion(%cp), kind=kLoop, calls=%fused
  ROOT %r = f32[64]{0} add(%n#0, %n#1)
}
ENTRY %main {
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} cosine(%a)
  ROOT %y = f32[64]{0} call(%x), to_apply=%called
}
)"));
  CHECK(report.live_peak_instruction == "n");
  CHECK(peak_of(report) ==
        "n{0} f32[64] output 256, a f32[64] parameter 256, n{1} f32[64] temporary 256, "
        "n{} (f32[64], f32[64]) temporary 16");
}

constexpr const char* kPeak = R"(
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %x = f32[128]{0} concatenate(%a, %a), dimensions={0}
  %y = f32[64]{0} slice(%x), slice={[0:64]}
  %z = f32[64]{0} slice(%x), slice={[64:128]}, metadata={op_name="jit(step)/layers_7/slice"}
  ROOT %out = f32[64]{0} add(%y, %z)
}
)";

TEST_CASE("the curve, its peak and who is there") {
  const MemoryReport report = report_of(toy_program(kPeak));
  // y lies where the result will; z beside it, until the addition is done.
  CHECK(curve_of(report) == "0: 256, 1: 768, 2: 1024, 3: 1280, 4: 768, 5: 512");
  CHECK(report.live_peak == Bytes(1280));
  CHECK(report.live_peak_at == LogicalTime(3));
  CHECK(report.live_peak_instruction == "z");
  CHECK(peak_of(report) ==
        "x f32[128] temporary 512, y f32[64] output 256, a f32[64] parameter 256, "
        "z f32[64] temporary 256");
  CHECK(report.live_at_peak[3].op_name == "jit(step)/layers_7/slice");
  CHECK(report.live_at_peak[3].layer == 7);
  CHECK(!report.live_at_peak[0].layer);
}

TEST_CASE("an element of a tuple is named by its place; constants are a class") {
  const MemoryReport report = report_of(toy_program(R"(
%fused (p: f32[64]) -> (f32[64], f32[64]) {
  %p = f32[64]{0} parameter(0)
  %n = f32[64]{0} negate(%p)
  ROOT %t = (f32[64]{0}, f32[64]{0}) tuple(%n, %n)
}
ENTRY %main () -> f32[4096] {
  %one = f32[64]{0} constant({...})
  %x = (f32[64]{0}, f32[64]{0}) fusion(%one), kind=kLoop, calls=%fused
  %first = f32[64]{0} get-tuple-element(%x), index=0
  %second = f32[64]{0} get-tuple-element(%x), index=1
  ROOT %out = f32[64,64]{1,0} custom-call(%first, %second, %one), custom_call_target="f"
}
)"));
  CHECK(peak_of(report) ==
        "out f32[64,64] output 16384, one f32[64] constant 256, x{0} f32[64] temporary 256, "
        "x{1} f32[64] temporary 256");
}

TEST_CASE("a device total without gaps leaves out what alignment and packing lose") {
  const MemoryReport report = report_of(toy_program(R"(
ENTRY %main (a: f32[25]) -> f32[] {
  %a = f32[25]{0} parameter(0)
  %x = f32[25]{0} negate(%a)
  %y = f32[25]{0} negate(%a)
  ROOT %out = f32[] dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
)"));
  CHECK(report.totals.temp == Bytes(256 + 100));
  CHECK(report.totals.total_device - report.totals.no_fragmentation == Bytes(156));
}

/// A loop of 3 around a loop of 2, each of which moves one slice of 256 bytes out; and one whole
/// stack of 2048 bytes back at the end.
constexpr const char* kTraffic = R"(
%wrapped (w0: f32[8,64], w1: f32[1,64], w2: s32[]) -> f32[8,64] {
  %w0 = f32[8,64]{1,0:S(5)} parameter(0)
  %w1 = f32[1,64]{1,0} parameter(1)
  %w2 = s32[] parameter(2)
  ROOT %wu = f32[8,64]{1,0:S(5)} dynamic-update-slice(%w0, %w1, %w2, %w2)
}
%inner (r: (s32[], f32[1,64], f32[8,64])) -> (s32[], f32[1,64], f32[8,64]) {
  %r = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) parameter(0)
  %ri = s32[] get-tuple-element(%r), index=0
  %rx = f32[1,64]{1,0} get-tuple-element(%r), index=1
  %rs = f32[8,64]{1,0:S(5)} get-tuple-element(%r), index=2
  %ru = f32[8,64]{1,0:S(5)} dynamic-update-slice(%rs, %rx, %ri, %ri)
  ROOT %rt = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) tuple(%ri, %rx, %ru)
}
%inner_less (s: (s32[], f32[1,64], f32[8,64])) -> pred[] {
  %s = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) parameter(0)
  ROOT %sl = pred[] constant(true)
}
%outer (p: (s32[], f32[1,64], f32[8,64])) -> (s32[], f32[1,64], f32[8,64]) {
  %p = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) parameter(0)
  %pi = s32[] get-tuple-element(%p), index=0
  %px = f32[1,64]{1,0} get-tuple-element(%p), index=1
  %ps = f32[8,64]{1,0:S(5)} get-tuple-element(%p), index=2
  %start = ((f32[8,64]{1,0:S(5)}, f32[1,64]{1,0}, s32[]), f32[8,64]{1,0:S(5)}, u32[]) async-start(%ps, %px, %pi), calls=%wrapped
  %done = f32[8,64]{1,0:S(5)} async-done(%start)
  %pt = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) tuple(%pi, %px, %done)
  ROOT %in = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) while(%pt), condition=%inner_less, body=%inner, backend_config={"known_trip_count":{"n":"2"}}
}
%outer_less (q: (s32[], f32[1,64], f32[8,64])) -> pred[] {
  %q = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) parameter(0)
  ROOT %ql = pred[] constant(true)
}
ENTRY %main (i: s32[], x: f32[1,64]) -> f32[8,64] {
  %i = s32[] parameter(0)
  %x = f32[1,64]{1,0} parameter(1)
  %none = f32[8,64]{1,0:S(5)} custom-call(), custom_call_target="AllocateBuffer"
  %t = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) tuple(%i, %x, %none)
  %loop = (s32[], f32[1,64]{1,0}, f32[8,64]{1,0:S(5)}) while(%t), condition=%outer_less, body=%outer, backend_config={"known_trip_count":{"n":"3"}}
  %stack = f32[8,64]{1,0:S(5)} get-tuple-element(%loop), index=2
  %back = (f32[8,64]{1,0}, f32[8,64]{1,0:S(5)}, u32[]) copy-start(%stack)
  ROOT %whole = f32[8,64]{1,0} copy-done(%back)
}
)";

TEST_CASE("slices cross the link, not stacks; loops in loops multiply") {
  const HostTraffic traffic = sum_traffic(toy_program(kTraffic));
  CHECK(traffic.device_to_host == Bytes((3 + 3 * 2) * 256));
  CHECK(traffic.offloads == 9);
  CHECK(traffic.host_to_device == Bytes(2048));
  CHECK(traffic.reloads == 1);
}

TEST_CASE("a layer's number comes from the name of its operation") {
  struct Row {
    const char* op_name;
    std::optional<std::int64_t> layer;
  };
  const Row rows[] = {
      {"jit(step)/layers_12/dot_general", 12},
      {"layer_0/add", 0},
      {"transpose(jvp(layers_3))/mul", 3},
      {"jit(step)/layers/dot_general", {}},
      {"player_one", {}},
      {"", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.op_name);
    CHECK(layer_of(row.op_name) == row.layer);
  }
}

}  // namespace
}  // namespace spillway
