// Rules about copies: what they fetch, whether they wait, whether they transpose.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/annotated_scan.h"
#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::annotated;
using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::kOffloaded;
using testing::ToyScan;
using testing::walk;
using testing::what_of;

std::string entry(const std::string& lines) { return "ENTRY %main {\n" + lines + "}\n"; }

TEST_CASE("copies that nothing hides") {
  struct Row {
    std::string name;
    std::string lines;
    std::string what;
  };
  const std::string begin =
      "  %x = f32[64]{0} parameter(0)\n  %out = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) "
      "copy-start(%x)\n";
  const std::string work = "  %y = f32[64]{0} tanh(%x)\n";
  const std::string end =
      "  %h = f32[64]{0:S(5)} copy-done(%out)\n  ROOT %r = (f32[64]{0:S(5)}, f32[64]{0}) tuple(%h, "
      "%y)\n";
  const Row rows[] = {
      {"work in between", begin + work + end, ""},
      {"none",
       begin + "  %h = f32[64]{0:S(5)} copy-done(%out)\n" + work +
           "  ROOT %r = (f32[64]{0:S(5)}, f32[64]{0}) tuple(%h, %y)\n",
       "1 of 1 copy between HBM and host in a step (256 B) have no work between their begin and "
       "their end: the GPU waits for them."},
      {"no pair at all",
       "  %x = f32[64]{0} parameter(0)\n" + work +
           "  %h = f32[64]{0:S(5)} copy(%x)\n  ROOT %r = (f32[64]{0:S(5)}, "
           "f32[64]{0}) tuple(%h, %y)\n",
       "1 of 1 copy between HBM and host in a step (256 B) have no work between their begin and "
       "their end: the GPU waits for them."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(what_of(inspect(entry(row.lines)), "copies-wait") == row.what);
  }
}

TEST_CASE("what is transposed on the way") {
  const std::string back =
      "  %h = f32[8,16]{1,0:S(5)} parameter(0)\n  %in = (f32[8,16]{1,0}, f32[8,16]{1,0:S(5)}, "
      "u32[]) copy-start(%h)\n  %d = f32[8,16]{1,0} copy-done(%in)\n";
  CHECK(what_of(inspect(entry(back + "  ROOT %r = f32[8,16]{0,1} copy(%d)\n")),
                "transposed-on-the-way") ==
        "512 B a step are transposed on the way between HBM and host, first at in.");
  CHECK(what_of(inspect(entry(back + "  ROOT %r = f32[16,8]{1,0} transpose(%d), "
                                     "dimensions={1,0}\n")),
                "transposed-on-the-way") != "");
  CHECK(what_of(inspect(entry(back + "  ROOT %r = f32[8,16]{1,0} copy(%d)\n")),
                "transposed-on-the-way") == "");
}

TEST_CASE("a copy that is annotated with another walk than the program asks for") {
  // The backward loop reads layer 3 - i: from byte 768 on, 256 less each time.
  CHECK(what_of(inspect(annotated(walk(768, -256))), "reads-wrong-slice") == "");
  const Inspected forward = inspect(annotated(walk(0, 256)));
  CHECK(
      what_of(forward, "reads-wrong-slice") ==
      "the backward loop reloads the wrong layers of r0: it asks for the slice at 768 B first and "
      "then moves by -256 B, but the copy is annotated to start at 0 B and to move by 256 B.");
  const auto found = find_diagnostic(forward, "reads-wrong-slice");
  CHECK(found->severity == Severity::kError);
  CHECK(forward.diagnose().front().code == "reads-wrong-slice");
  // As 0.12 writes it: zeros in the old place, the walk below "linear".
  const auto linear = [](std::int64_t offset, std::int64_t stride) {
    return "{\"byte_offset\":\"0\",\"byte_stride\":\"0\",\"linear\":" + walk(offset, stride) + "}";
  };
  CHECK(what_of(inspect(annotated(linear(768, -256))), "reads-wrong-slice") == "");
  CHECK(what_of(inspect(annotated(linear(0, 256))), "reads-wrong-slice") != "");
}

TEST_CASE("an annotation that counts an outer loop is not compared") {
  const std::string outer =
      testing::replaced(walk(0, 256), "\"loop_index\":\"0\"", "\"loop_index\":\"1\"");
  CHECK(what_of(inspect(annotated(outer)), "reads-wrong-slice") == "");
}

TEST_CASE("an index is worked out through everything that JAX makes of it") {
  struct Row {
    std::string name;
    std::string index;
    bool known = true;
  };
  const Row rows[] = {
      {"a negative index made positive",
       "  %four = s32[] constant(4)\n  %minus = s32[] subtract(%three, %i2)\n  %is_negative = "
       "pred[] compare(%minus, %zero2), direction=LT\n  %up = s32[] add(%minus, %four)\n  %k = "
       "s32[] select(%is_negative, %up, %minus)\n"},
      {"negate and clamp",
       "  %neg = s32[] negate(%i2)\n  %far = s32[] add(%neg, %three)\n  %k = s32[] clamp(%zero2, "
       "%far, %three)\n"},
      {"times one, converted",
       "  %l = s32[] subtract(%three, %i2)\n  %m = s32[] multiply(%l, %one2)\n  %n64 = s64[] "
       "convert(%m)\n  %k = s32[] convert(%n64)\n"},
      {"hanging on data",
       "  %data = s32[] custom-call(%g), custom_call_target=\"pick\"\n  %k = s32[] "
       "subtract(%three, %data)\n",
       false},
      {"too large for 64 bits",
       "  %big = s64[] constant(9223372036854775807)\n  %l = s64[] multiply(%big, %big)\n  %k = "
       "s32[] convert(%l)\n",
       false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(what_of(inspect(annotated(walk(768, -256), row.index)), "reads-wrong-slice") == "");
    CHECK((what_of(inspect(annotated(walk(0, 256), row.index)), "reads-wrong-slice") != "") ==
          row.known);
  }
}

TEST_CASE("what is advised about copies that wait hangs on which do") {
  const Inspected all = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  CHECK(find_diagnostic(all, "copies-wait")->advice.starts_with("See that XLA_FLAGS"));
  Inspected on_ampere = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  on_ampere.program.path = "module_0001.jit_step.sm_8.0_gpu_after_optimizations.txt";
  CHECK(find_diagnostic(on_ampere, "copies-wait")
            ->advice.starts_with("For compute capability 8.0 it is off until "
                                 "--xla_gpu_enable_latency_hiding_scheduler=true asks for it."));
  // One copy with work behind it: latency hiding is on.
  const std::string work = "  %busy = f32[64]{0} tanh(%x)\n";
  const Inspected some = inspect(testing::replaced(
      ToyScan{.a = kOffloaded, .b = kOffloaded}.text(), "  %new_a = f32[4,64]{1,0:S(5)} async-done",
      work + "  %new_a = f32[4,64]{1,0:S(5)} async-done"));
  CHECK(find_diagnostic(some, "copies-wait")
            ->advice.starts_with("--xla_gpu_enable_pipelined_host_offloading=true"));
}

TEST_CASE("an offload of what was just transposed; an index is no source") {
  const std::string out =
      "  %x = f32[8,16]{1,0} parameter(0)\n  %t = f32[16,8]{1,0} transpose(%x), "
      "dimensions={1,0}\n  %o = (f32[16,8]{1,0:S(5)}, f32[16,8]{1,0}, u32[]) copy-start(%t)\n  "
      "ROOT %h = f32[16,8]{1,0:S(5)} copy-done(%o)\n";
  CHECK(what_of(inspect(entry(out)), "transposed-on-the-way") ==
        "512 B a step are transposed on the way between HBM and host, first at o.");
}

TEST_CASE("a slice in the branch of a conditional is left alone") {
  // Were the branch taken for a call, its operands would be those of the other branch.
  const std::string branch =
      "%branch {\n  %in = (f32[4,64]{1,0:S(5)}, s32[]) parameter(0)\n  %zb = s32[] constant(0)\n  "
      "ROOT %part = f32[1,64]{1,0} dynamic-slice(%in#0, %in#1, %zb), dynamic_slice_sizes={1,64}, "
      "backend_config={\"dynamic_slice_config\":" +
      walk(0, 256) +
      "}\n}\n%other {\n  %io = f32[1,64]{1,0} parameter(0)\n  ROOT %no = f32[1,64]{1,0} "
      "negate(%io)\n}\n";
  std::string text = annotated(walk(768, -256));
  text = testing::replaced(
      text, "  %g_b = ",
      "  %also = f32[1,64]{1,0} bitcast(%g)\n  %both = (f32[4,64]{1,0:S(5)}, s32[]) tuple(%ta, "
      "%i2)\n  %yes = pred[] constant(true)\n  %either = f32[1,64]{1,0} conditional(%yes, %also, "
      "%both), true_computation=%other, false_computation=%branch\n  %g_b = ");
  CHECK(what_of(inspect(branch + text), "reads-wrong-slice") == "");
}

TEST_CASE("where the walk cannot be told, nothing is said") {
  const std::string wrong = annotated(walk(0, 256));
  CHECK(what_of(inspect(wrong), "reads-wrong-slice") != "");
  const auto changed = [&](const char* from, const char* to) {
    return what_of(inspect(testing::replaced(wrong, from, to)), "reads-wrong-slice");
  };
  CHECK(changed("\"step\":\"1\"", "\"step\":\"0\"") == "");
  CHECK(changed("\"step\":\"1\"", "\"step\":\"9\"") == "");   // out of the stack
  CHECK(changed("\"init\":\"0\"", "\"init\":\"-4\"") == "");  // too
  CHECK(changed("body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"}",
                "body=%backward, backend_config={\"known_trip_count\":{\"n\":\"1\"}") == "");
}

}  // namespace
}  // namespace spillway
