#include "model/cost/traffic.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

/// Operands of `fusion`s below: a stack of 8 layers of 16 floats (512 B), one layer (64 B), an
/// index.
constexpr const char* kEntry = R"(
ENTRY %main (stack: f32[8,16], layer: f32[1,16], i: s32[], wide: f32[16,16], picks: s32[3]) -> f32[] {
  %stack = f32[8,16]{1,0} parameter(0)
  %layer = f32[1,16]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %wide = f32[16,16]{1,0} parameter(3)
  %picks = s32[3]{0} parameter(4)
  %host = f32[8,16]{1,0:S(5)} copy(%stack)
  %zero = s32[] constant(0)
  %x = LINE
  ROOT %end = f32[] constant(0)
}
)";

Traffic traffic_of(const std::string& fused, const std::string& line) {
  std::string entry = kEntry;
  entry.replace(entry.find("LINE"), 4, line);
  const Program program = toy_program(fused + entry);
  return count_traffic(program, find_instruction(program, "x"));
}

void check_traffic(const Traffic& found, std::int64_t read, std::int64_t written,
                   std::int64_t host_read = 0, std::int64_t host_written = 0) {
  CHECK(found.hbm_read == Bytes(read));
  CHECK(found.hbm_written == Bytes(written));
  CHECK(found.host_read == Bytes(host_read));
  CHECK(found.host_written == Bytes(host_written));
}

constexpr std::int64_t kStack = 512, kLayer = 64, kIndex = 4;

TEST_CASE("an instruction by itself moves its operands and its result, slices at their size") {
  struct Row {
    std::string line;
    std::int64_t read, written, host_read, host_written;
  };
  const Row rows[] = {
      {"f32[8,16]{1,0} add(%stack, %stack)", kStack, kStack, 0, 0},  // read once
      {"f32[1,16]{1,0} dynamic-slice(%stack, %i, %zero), dynamic_slice_sizes={1,16}",
       kLayer + 2 * kIndex, kLayer, 0, 0},
      {"f32[2,16]{1,0} slice(%stack), slice={[0:2], [0:16]}", 2 * kLayer, 2 * kLayer, 0, 0},
      {"f32[8,16]{1,0} dynamic-update-slice(%stack, %layer, %i, %zero)", kLayer + 2 * kIndex,
       kLayer, 0, 0},
      {"f32[3,16]{1,0} gather(%stack, %picks), offset_dims={1}, collapsed_slice_dims={0}, "
       "start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}",
       3 * kLayer + 12, 3 * kLayer, 0, 0},
      {"f32[8,16]{1,0} copy(%host)", 0, kStack, kStack, 0},
      {"f32[8,16]{1,0:S(5)} copy(%stack)", kStack, 0, 0, kStack},
      {"f32[1,16]{1,0} dynamic-slice(%host, %i, %zero), dynamic_slice_sizes={1,16}", 2 * kIndex,
       kLayer, kLayer, 0},
      {"f32[8,16]{1,0:S(5)} dynamic-update-slice(%host, %layer, %i, %zero)", kLayer + 2 * kIndex, 0,
       0, kLayer},
      {"(f32[8,16]{1,0:S(5)}, f32[8,16]{1,0}, u32[]) copy-start(%stack)", kStack, 0, 0, kStack},
      {"((f32[8,16]{1,0}), f32[32,16]{1,0}) all-gather-start(%stack), replica_groups={{0,1,2,3}}, "
       "dimensions={0}",
       kStack, 4 * kStack, 0, 0},
      {"(f32[8,16]{1,0}, f32[1,16]{1,0}) tuple(%stack, %layer)", 0, 0, 0, 0},
      {"f32[128]{0} bitcast(%stack)", 0, 0, 0, 0},
      {"f32[8,16]{1,0} broadcast(%layer), dimensions={0,1}", kLayer, kStack, 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    check_traffic(traffic_of("", row.line), row.read, row.written, row.host_read, row.host_written);
  }
}

TEST_CASE("a fusion reads what it uses of its operands") {
  struct Row {
    std::string name;
    const char* body;
    std::string line;
    std::int64_t read, written;
  };
  const Row rows[] = {
      {"a slice of a stack, then arithmetic", R"(
%f (a: f32[8,16], b: s32[]) -> f32[1,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = s32[] parameter(1)
  %none = s32[] constant(0)
  %slice = f32[1,16]{1,0} dynamic-slice(%a, %b, %none), dynamic_slice_sizes={1,16}
  ROOT %twice = f32[1,16]{1,0} add(%slice, %slice)
}
)",
       "f32[1,16]{1,0} fusion(%stack, %i), kind=kLoop, calls=%f", kLayer + kIndex, kLayer},
      {"arithmetic, then a slice", R"(
%f (a: f32[8,16]) -> bf16[2,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %half = bf16[8,16]{1,0} convert(%a)
  ROOT %slice = bf16[2,16]{1,0} slice(%half), slice={[0:2], [0:16]}
}
)",
       "bf16[2,16]{1,0} fusion(%stack), kind=kLoop, calls=%f", 2 * kLayer, kLayer},
      {"three slices of one value add up", R"(
%f (a: f32[8,16]) -> (f32[2,16], f32[2,16], f32[1,16]) {
  %a = f32[8,16]{1,0} parameter(0)
  %minus = f32[8,16]{1,0} negate(%a)
  %s = f32[2,16]{1,0} slice(%minus), slice={[0:2], [0:16]}
  %t = f32[2,16]{1,0} slice(%minus), slice={[2:4], [0:16]}
  %u = f32[1,16]{1,0} slice(%minus), slice={[4:5], [0:16]}
  ROOT %all = (f32[2,16]{1,0}, f32[2,16]{1,0}, f32[1,16]{1,0}) tuple(%s, %t, %u)
}
)",
       "(f32[2,16]{1,0}, f32[2,16]{1,0}, f32[1,16]{1,0}) fusion(%stack), kind=kLoop, calls=%f",
       5 * kLayer, 5 * kLayer},
      {"a slice beside the whole is the whole", R"(
%f (a: f32[8,16]) -> (f32[2,16], f32[8,16]) {
  %a = f32[8,16]{1,0} parameter(0)
  %s = f32[2,16]{1,0} slice(%a), slice={[0:2], [0:16]}
  %minus = f32[8,16]{1,0} negate(%a)
  ROOT %both = (f32[2,16]{1,0}, f32[8,16]{1,0}) tuple(%s, %minus)
}
)",
       "(f32[2,16]{1,0}, f32[8,16]{1,0}) fusion(%stack), kind=kLoop, calls=%f", kStack,
       kStack + 2 * kLayer},
      {"an update in place", R"(
%f (a: f32[8,16], b: f32[1,16], c: s32[]) -> f32[8,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  %c = s32[] parameter(2)
  %none = s32[] constant(0)
  %twice = f32[1,16]{1,0} add(%b, %b)
  ROOT %put = f32[8,16]{1,0} dynamic-update-slice(%a, %twice, %c, %none)
}
)",
       "f32[8,16]{1,0} fusion(%stack, %layer, %i), kind=kLoop, calls=%f", kLayer + kIndex, kLayer},
      {"an update in place that adds to what is there", R"(
%f (a: f32[8,16], b: f32[1,16], c: s32[]) -> f32[8,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  %c = s32[] parameter(2)
  %none = s32[] constant(0)
  %old = f32[1,16]{1,0} dynamic-slice(%a, %c, %none), dynamic_slice_sizes={1,16}
  %sum = f32[1,16]{1,0} add(%old, %b)
  %put = f32[8,16]{1,0} dynamic-update-slice(%a, %sum, %c, %none)
  ROOT %flat = f32[128]{0} bitcast(%put)
}
)",
       "f32[128]{0} fusion(%stack, %layer, %i), kind=kLoop, calls=%f", 2 * kLayer + kIndex, kLayer},
      {"an update of a fresh array writes all of it", R"(
%f (b: f32[1,16], c: s32[]) -> f32[8,16] {
  %b = f32[1,16]{1,0} parameter(0)
  %c = s32[] parameter(1)
  %none = s32[] constant(0)
  %nought = f32[] constant(0)
  %fresh = f32[8,16]{1,0} broadcast(%nought), dimensions={}
  ROOT %put = f32[8,16]{1,0} dynamic-update-slice(%fresh, %b, %c, %none)
}
)",
       "f32[8,16]{1,0} fusion(%layer, %i), kind=kLoop, calls=%f", kLayer + kIndex, kStack},
      {"rows gathered", R"(
%f (a: f32[8,16], b: s32[3]) -> f32[3,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = s32[3]{0} parameter(1)
  %rows = f32[3,16]{1,0} gather(%a, %b), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
  ROOT %minus = f32[3,16]{1,0} negate(%rows)
}
)",
       "f32[3,16]{1,0} fusion(%stack, %picks), kind=kLoop, calls=%f", 3 * kLayer + 12, 3 * kLayer},
      {"a parameter that nobody reads", R"(
%f (a: f32[8,16], b: f32[1,16]) -> f32[1,16] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  ROOT %minus = f32[1,16]{1,0} negate(%b)
}
)",
       "f32[1,16]{1,0} fusion(%stack, %layer), kind=kLoop, calls=%f", kLayer, kLayer},
      {"one operand at two parameters", R"(
%f (a: f32[1,16], b: f32[1,16]) -> f32[1,16] {
  %a = f32[1,16]{1,0} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  ROOT %sum = f32[1,16]{1,0} add(%a, %b)
}
)",
       "f32[1,16]{1,0} fusion(%layer, %layer), kind=kLoop, calls=%f", kLayer, kLayer},
      {"a slice in a nested fusion", R"(
%inner (a: f32[8,16]) -> f32[2,16] {
  %a = f32[8,16]{1,0} parameter(0)
  ROOT %s = f32[2,16]{1,0} slice(%a), slice={[0:2], [0:16]}
}

%f (b: f32[8,16], c: f32[16,16]) -> f32[2,16] {
  %b = f32[8,16]{1,0} parameter(0)
  %c = f32[16,16]{1,0} parameter(1)
  %left = f32[2,16]{1,0} fusion(%b), kind=kLoop, calls=%inner
  ROOT %dot = f32[2,16]{1,0} dot(%left, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)",
       "f32[2,16]{1,0} fusion(%stack, %wide), kind=kCustom, calls=%f", 2 * kLayer + 1024,
       2 * kLayer},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    check_traffic(traffic_of(row.body, row.line), row.read, row.written);
  }
}

TEST_CASE("an async start moves what it wraps") {
  const char* const wrapped = R"(
%put (a: f32[8,16], b: f32[1,16], c: s32[], d: s32[]) -> f32[8,16] {
  %a = f32[8,16]{1,0:S(5)} parameter(0)
  %b = f32[1,16]{1,0} parameter(1)
  %c = s32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %update = f32[8,16]{1,0:S(5)} dynamic-update-slice(%a, %b, %c, %d)
}
)";
  const char* const start =
      "((f32[8,16]{1,0:S(5)}, f32[1,16]{1,0}, s32[], s32[]), f32[8,16]{1,0:S(5)}, u32[]) "
      "async-start(%host, %layer, %i, %zero), calls=%put";
  check_traffic(traffic_of(wrapped, start), kLayer + 2 * kIndex, 0, 0, kLayer);
}

}  // namespace
}  // namespace spillway
