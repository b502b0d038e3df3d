#include "model/cost/kernel_class.h"

#include <doctest/doctest.h>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

/// The class of a fusion of `kind` whose body has parameters a (f32[8,16]), b (f32[8,16]) and
/// i (s32[]), and ends in `root`.
KernelKind kind_of_fusion(const std::string& kind, const std::string& body,
                          const std::string& result) {
  const Program program = toy_program(R"(
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%f (a: f32[8,16], b: f32[8,16], i: s32[]) -> )" +
                                      result + R"( {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[8,16]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %zero = f32[] constant(0)
  %none = s32[] constant(0)
)" + body + R"(}

ENTRY %main (p: f32[8,16], q: f32[8,16], k: s32[]) -> )" +
                                      result + R"( {
  %p = f32[8,16]{1,0} parameter(0)
  %q = f32[8,16]{1,0} parameter(1)
  %k = s32[] parameter(2)
  ROOT %fusion = )" + result +
                                      " fusion(%p, %q, %k), kind=" + kind + ", calls=%f\n}\n");
  return kernel_kind(program, find_instruction(program, "fusion"));
}

TEST_CASE("the class of a fusion is found inside it") {
  struct Row {
    std::string name;
    const char* kind;
    const char* body;
    const char* result;
    KernelClass kernel;
    bool is_memcpy;
  };
  const Row rows[] = {
      {"arithmetic", "kLoop", "  ROOT %r = f32[8,16]{1,0} add(%a, %b)\n", "f32[8,16]{1,0}",
       KernelClass::kElementwise, false},
      {"a fill", "kLoop", "  ROOT %r = f32[8,16]{1,0} broadcast(%zero), dimensions={}\n",
       "f32[8,16]{1,0}", KernelClass::kElementwise, false},
      {"a counter", "kLoop", "  ROOT %r = s32[] add(%i, %i)\n", "s32[]", KernelClass::kElementwise,
       false},
      {"over the contiguous dimension", "kInput",
       "  ROOT %r = f32[8]{0} reduce(%a, %zero), dimensions={1}, to_apply=%add\n", "f32[8]{0}",
       KernelClass::kRowReduce, false},
      {"over everything", "kInput",
       "  ROOT %r = f32[] reduce(%a, %zero), dimensions={0,1}, to_apply=%add\n", "f32[]",
       KernelClass::kRowReduce, false},
      {"over another dimension", "kInput",
       "  ROOT %r = f32[16]{0} reduce(%a, %zero), dimensions={0}, to_apply=%add\n", "f32[16]{0}",
       KernelClass::kColumnReduce, false},
      {"the layout decides what is contiguous", "kInput",
       "  %t = f32[16,8]{0,1} bitcast(%a)\n"
       "  ROOT %r = f32[8]{0} reduce(%t, %zero), dimensions={0}, to_apply=%add\n",
       "f32[8]{0}", KernelClass::kRowReduce, false},
      {"a small reduction on the way", "kLoop",
       "  %s = f32[1,4]{1,0} slice(%a), slice={[0:1], [0:4]}\n"
       "  %m = f32[] reduce(%s, %zero), dimensions={0,1}, to_apply=%add\n"
       "  %w = f32[8,16]{1,0} broadcast(%m), dimensions={}\n"
       "  ROOT %r = f32[8,16]{1,0} add(%w, %b)\n",
       "f32[8,16]{1,0}", KernelClass::kElementwise, false},
      {"a transpose through shared memory", "kInput",
       "  %m = f32[8,16]{1,0} negate(%a)\n"
       "  ROOT %r = f32[16,8]{1,0} transpose(%m), dimensions={1,0}\n",
       "f32[16,8]{1,0}", KernelClass::kTiledTranspose, false},
      {"a transpose in a loop", "kLoop",
       "  ROOT %r = f32[16,8]{1,0} transpose(%a), dimensions={1,0}\n", "f32[16,8]{1,0}",
       KernelClass::kTranspose, false},
      {"a transpose beside a reduction", "kInput",
       "  %t = f32[16,8]{1,0} transpose(%a), dimensions={1,0}\n"
       "  %s = f32[8]{0} reduce(%a, %zero), dimensions={1}, to_apply=%add\n"
       "  ROOT %r = (f32[16,8]{1,0}, f32[8]{0}) tuple(%t, %s)\n",
       "(f32[16,8]{1,0}, f32[8]{0})", KernelClass::kTranspose, false},
      {"a transpose that moves nothing", "kLoop",
       "  %v = f32[8,16,1]{2,1,0} bitcast(%a)\n"
       "  %t = f32[1,8,16]{2,1,0} transpose(%v), dimensions={2,0,1}\n"
       "  ROOT %r = f32[1,8,16]{2,1,0} negate(%t)\n",
       "f32[1,8,16]{2,1,0}", KernelClass::kElementwise, false},
      {"a change of layout", "kLoop", "  ROOT %r = f32[8,16]{0,1} copy(%a)\n", "f32[8,16]{0,1}",
       KernelClass::kTranspose, false},
      {"a matrix product, whatever is around it", "kCustom",
       "  %t = f32[16,8]{1,0} transpose(%b), dimensions={1,0}\n"
       "  ROOT %r = f32[8,8]{1,0} dot(%a, %t), lhs_contracting_dims={1}, "
       "rhs_contracting_dims={0}\n",
       "f32[8,8]{1,0}", KernelClass::kGemm, false},
      {"a collective in a fusion", "kCustom",
       "  ROOT %r = f32[8,16]{1,0} all-reduce(%a), replica_groups={}, to_apply=%add\n",
       "f32[8,16]{1,0}", KernelClass::kCollective, false},
      {"a copy", "kLoop", "  ROOT %r = f32[8,16]{1,0} copy(%a)\n", "f32[8,16]{1,0}",
       KernelClass::kCopy, true},
      {"a slice in one piece", "kLoop",
       "  ROOT %r = f32[2,16]{1,0} slice(%a), slice={[2:4], [0:16]}\n", "f32[2,16]{1,0}",
       KernelClass::kSliceCopy, true},
      {"a slice in many pieces", "kLoop",
       "  ROOT %r = f32[8,4]{1,0} slice(%a), slice={[0:8], [0:4]}\n", "f32[8,4]{1,0}",
       KernelClass::kSliceCopy, false},
      {"a slice where only the device knows where", "kLoop",
       "  ROOT %r = f32[1,16]{1,0} dynamic-slice(%a, %i, %none), dynamic_slice_sizes={1,16}\n",
       "f32[1,16]{1,0}", KernelClass::kSliceCopy, false},
      {"a slice at a loop counter", "kLoop",
       "  %start = s32[] add(%i, %i)\n"
       "  ROOT %r = f32[1,16]{1,0} dynamic-slice(%a, %start, %none), dynamic_slice_sizes={1,16}, "
       "backend_config={\"dynamic_slice_config\":{\"byte_offset\":\"0\"}}\n",
       "f32[1,16]{1,0}", KernelClass::kSliceCopy, true},
      {"a slice with arithmetic", "kLoop",
       "  %s = f32[1,16]{1,0} dynamic-slice(%a, %i, %none), dynamic_slice_sizes={1,16}\n"
       "  ROOT %r = bf16[1,16]{1,0} convert(%s)\n",
       "bf16[1,16]{1,0}", KernelClass::kElementwise, false},
      {"an unknown call in a fusion", "kCustom",
       "  ROOT %r = f32[8,16]{1,0} custom-call(%a), custom_call_target=\"mine\"\n",
       "f32[8,16]{1,0}", KernelClass::kUnknown, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const KernelKind found = kind_of_fusion(row.kind, row.body, row.result);
    CHECK(name_of(found.kernel) == name_of(row.kernel));
    CHECK(found.is_memcpy == row.is_memcpy);
    CHECK(found.launches == 1);
  }
}

TEST_CASE("a fusion that copies several arrays is several memory copies") {
  const KernelKind found =
      kind_of_fusion("kLoop",
                     "  %r = f32[8,16]{1,0} copy(%a)\n  %s = f32[8,16]{1,0} copy(%b)\n"
                     "  ROOT %t = (f32[8,16]{1,0}, f32[8,16]{1,0}) tuple(%r, %s)\n",
                     "(f32[8,16]{1,0}, f32[8,16]{1,0})");
  CHECK(found.kernel == KernelClass::kCopy);
  CHECK(found.is_memcpy);
  CHECK(found.launches == 2);
}

TEST_CASE("instructions by themselves, starts and dones") {
  const Program program = toy_program(R"(
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%gather_all (g: f32[8,16]) -> f32[32,16] {
  %g = f32[8,16]{1,0} parameter(0)
  ROOT %all = f32[32,16]{1,0} all-gather(%g), replica_groups={{0,1,2,3}}, dimensions={0}
}

%body (t: (s32[])) -> (s32[]) {
  ROOT %t = (s32[]) parameter(0)
}

%condition (u: (s32[])) -> pred[] {
  %u = (s32[]) parameter(0)
  ROOT %no = pred[] constant(false)
}

ENTRY %main (p: f32[8,16], k: s32[]) -> f32[8,16] {
  %p = f32[8,16]{1,0} parameter(0)
  %k = s32[] parameter(1)
  %one = (s32[]) tuple(%k)
  %loop = (s32[]) while(%one), condition=%condition, body=%body
  %same = f32[8,16]{1,0} copy(%p)
  %turned = f32[8,16]{0,1} copy(%p)
  %out = f32[8,16]{1,0:S(5)} copy(%p)
  %begin = (f32[8,16]{1,0:S(5)}, f32[8,16]{1,0}, u32[]) copy-start(%p)
  %end = f32[8,16]{1,0:S(5)} copy-done(%begin)
  %start = ((f32[8,16]{1,0}), f32[32,16]{1,0}) async-start(%p), calls=%gather_all
  %done = f32[32,16]{1,0} async-done(%start)
  %sorted = f32[8,16]{1,0} sort(%p), dimensions={1}, to_apply=%add
  %dot = f32[8,8]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %new = f32[8,16]{1,0} brand-new-op(%p)
  ROOT %count = s32[] add(%k, %k)
}
)");
  struct Row {
    std::string name;
    KernelClass kernel;
    bool is_memcpy = false;
  };
  const Row rows[] = {
      {"p", KernelClass::kFree},          {"loop", KernelClass::kFree},
      {"same", KernelClass::kCopy, true}, {"turned", KernelClass::kTranspose},
      {"out", KernelClass::kCopy, true},  {"begin", KernelClass::kCopy, true},
      {"end", KernelClass::kFree},        {"start", KernelClass::kCollective},
      {"done", KernelClass::kFree},       {"all", KernelClass::kCollective},
      {"sorted", KernelClass::kSort},     {"dot", KernelClass::kGemm},
      {"new", KernelClass::kUnknown},     {"count", KernelClass::kElementwise},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const KernelKind found = kernel_kind(program, find_instruction(program, row.name));
    CHECK(name_of(found.kernel) == name_of(row.kernel));
    CHECK(found.is_memcpy == row.is_memcpy);
  }
}

}  // namespace
}  // namespace spillway
