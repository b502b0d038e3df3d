// Rules about copies that wait, state, transposes, and slices that are read from the wrong place.
// Host compute and the host pool are in diagnostics_test.cpp.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::Save;
using testing::ToyScan;
using testing::what_of;

constexpr testing::ToyStack kOffloaded{Save::kAsync, Fetch::kAsync, true};

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

TEST_CASE("state that is fetched long before it is needed") {
  const std::string header = ", input_output_alias={ {0}: (0, {}, may-alias) }";
  const std::string arguments =
      "  %m = f32[64]{0:S(5)} parameter(0)\n  %x = f32[64]{0} parameter(1)\n";
  const std::string fetch =
      "  %in = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%m)\n  %d = f32[64]{0} "
      "copy-done(%in)\n";
  const std::string peak =
      "  %a = f32[64]{0} tanh(%x)\n  %b = f32[64]{0} negate(%x)\n  %c = f32[64]{0} add(%a, %b)\n";
  const std::string update =
      "  %new = f32[64]{0} add(%d, %c)\n  %out = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) "
      "copy-start(%new)\n  %h = f32[64]{0:S(5)} copy-done(%out)\n"
      "  ROOT %r = (f32[64]{0:S(5)}, f32[64]{0}) tuple(%h, %c)\n";
  CHECK(what_of(inspect(entry(arguments + fetch + peak + update), header), "state-at-peak") ==
        "256 B of 256 B of state that is kept in pinned host memory are in HBM when most is live.");
  CHECK(
      what_of(inspect(entry(arguments + peak +
                            "  %e = f32[128]{0} broadcast(%c), dimensions={0}\n" + fetch + update),
                      header),
              "state-at-peak") == "");
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

/// A scanned step whose copies back are annotated with a walk through the stack.
std::string annotated(const std::string& walk, const std::string& index = "") {
  std::string text = ToyScan{.a = kOffloaded}.text();
  text = testing::replaced(text, "dynamic-slice(%d0a, %d1a, %d2a), dynamic_slice_sizes={1,64}",
                           "dynamic-slice(%d0a, %d1a, %d2a), dynamic_slice_sizes={1,64}, "
                           "backend_config={\"dynamic_slice_config\":" +
                               walk + "}");
  if (!index.empty()) text = testing::replaced(text, "  %k = s32[] subtract(%three, %i2)\n", index);
  return testing::replaced(
      text, "body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"}}",
      "body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"},\"known_init_step\":{"
      "\"init\":\"0\",\"step\":\"1\"},\"known_induction_variable\":{\"tuple_index\":\"0\"}}");
}

std::string walk(std::int64_t offset, std::int64_t stride) {
  return "{\"byte_offset\":\"" + std::to_string(offset) + "\",\"byte_stride\":\"" +
         std::to_string(stride) + "\",\"loop_index\":\"0\"}";
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

TEST_CASE("a host pool that pins much more than it hands out") {
  Inspected scanned = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  CHECK(what_of(scanned, "host-pool-growth") == "");
  const auto host = [&](std::int64_t bytes) {
    scanned.memory.totals.host_temp = Bytes(bytes);
    for (Allocation& allocation : scanned.assignment.allocations)
      if (is_host(allocation.space)) allocation.size = Bytes(bytes);
    return what_of(scanned, "host-pool-growth");
  };
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  CHECK(host(33 * kGibibyte) ==
        "the step needs 33.00 GiB of pinned host memory, for which XLA's pool pins 64.00 GiB.");
  CHECK(host(32 * kGibibyte) == "");
  // The limit cuts the last region.
  CHECK(host(65 * kGibibyte) == "");
}

}  // namespace
}  // namespace spillway
