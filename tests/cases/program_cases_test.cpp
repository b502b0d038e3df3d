// Cases that users reported, as small programs of our own with the answer that is right. The cases
// about logs and reports are in tests/sim/report/log_report_test.cpp, those about damaged text in
// tests/model/hlo; docs/cases.md lists them all.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/cost/program_flops.h"
#include "model/program/validate.h"
#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::kOffloaded;
using testing::Save;
using testing::ToyScan;
using testing::what_of;

std::string entry(const std::string& lines) { return "ENTRY %main {\n" + lines + "}\n"; }

std::int64_t temp_of(const std::string& text) { return inspect(text).memory.totals.temp.value(); }

TEST_CASE("C01: a name that is on no residual moves nothing, and the answer says what would") {
  Inspected step = inspect(ToyScan{}.text());
  CHECK(step.memory.traffic.device_to_host == Bytes(0));
  step.residuals.unmatched_names = {"hidden"};
  CHECK(what_of(step, "names-without-residual") == "no residual carries hidden.");
  CHECK(what_of(step, "nothing-offloaded") == "nothing moves between HBM and pinned host memory.");
  // The stack really kept is the layer's input.
  CHECK(step.residuals.residuals[ResidualId(0)].is_layer_input);
  CHECK(find_diagnostic(step, "nothing-offloaded")
            ->advice.starts_with("The largest stack that is kept is r0, 1.00 KiB. It needs a name: "
                                 "jax.ad_checkpoint.checkpoint_name on the value"));
}

/// `layers` unrolled layers: forward keeps what tanh makes, backward reads it in reverse; weight
/// gradients at once, or all of them at the end.
std::string layers_of(int layers, bool late) {
  std::string text = "  %x0 = f32[32,32]{1,0} parameter(0)\n  %w = f32[32,32]{1,0} parameter(1)\n";
  for (int i = 0; i < layers; ++i)
    text += fmt::format("  %x{1} = f32[32,32]{{1,0}} tanh(%x{0})\n", i, i + 1);
  text += fmt::format("  %g{0} = f32[32,32]{{1,0}} negate(%x{0})\n", layers);
  std::string weights, sum = "w";
  for (int i = layers - 1; i >= 0; --i) {
    const std::string gradient = fmt::format(
        "  %d{0} = f32[32,32]{{1,0}} dot(%x{0}, %g{1}), lhs_contracting_dims={{0}}, "
        "rhs_contracting_dims={{0}}\n  %s{0} = f32[32,32]{{1,0}} add(%{2}, %d{0})\n",
        i, i + 1, sum);
    sum = fmt::format("s{}", i);
    (late ? weights : text) += gradient;
    text += fmt::format("  %g{0} = f32[32,32]{{1,0}} multiply(%g{1}, %x{1})\n", i, i + 1);
  }
  return entry(text + weights + "  ROOT %r = f32[32,32]{1,0} add(%" + sum + ", %g0)\n");
}

TEST_CASE("C02, C22: putting weight gradients off costs an activation and a gradient a layer") {
  constexpr std::int64_t kArray = 32 * 32 * 4;
  for (const int layers : {4, 8, 16}) {
    CAPTURE(layers);
    // In order, all activations are there when the backward pass begins; put off, they still are
    // when it ends, with as many gradients.
    CHECK(temp_of(layers_of(layers, true)) - temp_of(layers_of(layers, false)) >=
          (layers - 2) * kArray);
  }
}

TEST_CASE("C08: unrolled, temporaries grow by the same with each layer") {
  const std::int64_t slope = (temp_of(layers_of(16, false)) - temp_of(layers_of(8, false))) / 8;
  CHECK(slope == 32 * 32 * 4);
  CHECK((temp_of(layers_of(32, false)) - temp_of(layers_of(16, false))) / 16 == slope);
}

TEST_CASE("C14: a donated array of 2 GiB that no result can take") {
  const auto program = [](const std::string& header) {
    return inspect(
        entry("  %x = f32[524288,32,32,1]{3,2,1,0} parameter(0)\n  %y = "
              "f32[524288,32,32]{2,1,0} reshape(%x)\n  ROOT %z = f32[524288,32,32]{2,1,0} "
              "tanh(%y)\n"),
        header);
  };
  const Inspected donated = program(", buffer_donor={ (0, {}) }");
  constexpr std::int64_t kArray = std::int64_t{2} << 30;
  CHECK(donated.memory.totals.total_device == Bytes(2 * kArray));
  CHECK(program("").memory.totals.total_device == Bytes(2 * kArray));
  CHECK(what_of(donated, "donation-unused").starts_with("1 donated argument (2.00 GiB)"));
}

TEST_CASE("C17: a conditional in a scan copies what it carries, 25,000 times") {
  const std::string state = "(s32[], f32[1024]{0})";
  const std::string text =
      "%same {\n  %a = f32[1024]{0} parameter(0)\n  ROOT %ac = f32[1024]{0} copy(%a)\n}\n"
      "%other {\n  %b = f32[1024]{0} parameter(0)\n  ROOT %bc = f32[1024]{0} copy(%b)\n}\n"
      "%body {\n  %p = " +
      state +
      " parameter(0)\n  %i = s32[] get-tuple-element(%p), index=0\n"
      "  %x = f32[1024]{0} get-tuple-element(%p), index=1\n  %k = pred[] constant(true)\n"
      "  %c = f32[1024]{0} copy(%x)\n  %y = f32[1024]{0} conditional(%k, %c, %c), "
      "true_computation=%same, false_computation=%other\n  ROOT %n = " +
      state + " tuple(%i, %y)\n}\n%again {\n  %q = " + state +
      " parameter(0)\n  ROOT %t = pred[] constant(true)\n}\n" +
      entry(
          "  %zero = s32[] constant(0)\n  %first = f32[1024]{0} parameter(0)\n  %own = "
          "f32[1024]{0} copy(%first)\n  %start = " +
          state + " tuple(%zero, %own)\n  %loop = " + state +
          " while(%start), condition=%again, body=%body, "
          "backend_config={\"known_trip_count\":{\"n\":\"25000\"}}\n  ROOT %r = f32[1024]{0} "
          "get-tuple-element(%loop), index=1\n");
  // One in the body and one in each branch; at most two of them run in an iteration.
  CHECK(what_of(inspect(text), "carries-copied") ==
        "loops around a conditional copy up to 292.97 MiB within HBM in a step, in 75,000 copies; "
        "the "
        "first is body.");
}

TEST_CASE("C23: whatever is no copy or slice runs on the host") {
  const std::string scatter =
      "%keep {\n  %a = f32[] parameter(0)\n  ROOT %b = f32[] parameter(1)\n}\n" +
      entry(
          "  %h = f32[64]{0:S(5)} parameter(0)\n  %i = s32[4,1]{1,0} parameter(1)\n  %u = "
          "f32[4]{0} parameter(2)\n  ROOT %s = f32[64]{0:S(5)} scatter(%h, %i, %u), "
          "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
          "index_vector_dim=1, to_apply=%keep\n");
  CHECK(what_of(inspect(scatter), "host-compute") ==
        "1 instruction computes on arrays in pinned host memory, first s.");
}

TEST_CASE("C24: streamed parameters save nothing in straight code") {
  // Both parameters are fetched before the first is used.
  const std::string text = entry(
      "  %a = f32[64]{0:S(5)} parameter(0)\n  %b = f32[64]{0:S(5)} parameter(1)\n  %x = f32[64]{0} "
      "parameter(2)\n"
      "  %as = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%a)\n"
      "  %bs = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%b)\n"
      "  %ad = f32[64]{0} copy-done(%as)\n  %bd = f32[64]{0} copy-done(%bs)\n"
      "  %y = f32[64]{0} add(%x, %ad)\n  ROOT %z = f32[64]{0} add(%y, %bd)\n");
  CHECK(what_of(inspect(text), "state-at-peak") ==
        "512 B of 512 B of state that is kept in pinned host memory are in HBM when most is live.");
}

TEST_CASE("C30: an alias table that cannot be true") {
  const auto refused = [](const std::string& header, const std::string& shapes) {
    const Program program =
        testing::toy_program(entry("  %a = s32[16]{0} parameter(0)\n" + shapes), header);
    const auto error = validate(program);
    return error ? error->text : "";
  };
  const std::string halves =
      "  %b = s32[8]{0} slice(%a), slice={[0:8]}\n  %c = s32[8]{0} slice(%a), slice={[8:16]}\n"
      "  ROOT %r = (s32[8]{0}, s32[8]{0}) tuple(%b, %c)\n";
  CHECK(refused(", input_output_alias={ {0}: (0, {}, may-alias) }", halves) ==
        "parameter 'a' is donated to result {0}, which has another size: s32[16] and s32[8]");
  const std::string two =
      "  %b = s32[16]{0} negate(%a)\n  %c = s32[16]{0} copy(%a)\n  ROOT %r = (s32[16]{0}, "
      "s32[16]{0}) tuple(%b, %c)\n";
  CHECK(refused(", input_output_alias={ {0}: (0, {}), {1}: (0, {}) }", two) ==
        "parameter 'a' is donated to two results, the second {1}");
  CHECK(refused(", input_output_alias={ {0}: (0, {}) }", two) == "");
}

TEST_CASE("C39: nested scans multiply, and hold what one inner scan holds") {
  const ToyScan once{.a = kOffloaded, .b = kOffloaded};
  ToyScan nested = once;
  nested.outer_trips = 8;
  const Inspected one = inspect(once.text());
  const Inspected eight = inspect(nested.text());
  CHECK(eight.memory.traffic.device_to_host == one.memory.traffic.device_to_host * 8);
  CHECK(eight.memory.traffic.offloads == 8 * one.memory.traffic.offloads);
  CHECK(eight.memory.totals.host_temp == one.memory.totals.host_temp);
}

TEST_CASE("C40: rolled can need more than unrolled") {
  // Straight code writes the second value over nothing older than the first; the loop holds what
  // it carries, what it makes, and the argument.
  const std::string straight = entry(
      "  %x = f32[1024]{0} parameter(0)\n  %a = f32[1024]{0} tanh(%x)\n  ROOT %b = f32[1024]{0} "
      "tanh(%a)\n");
  const std::string state = "(s32[], f32[1024]{0})";
  const std::string rolled =
      "%body {\n  %p = " + state +
      " parameter(0)\n  %i = s32[] get-tuple-element(%p), index=0\n  "
      "%c = f32[1024]{0} get-tuple-element(%p), index=1\n  %h = f32[1024]{0} tanh(%c)\n  %k = "
      "f32[1024]{0} reverse(%h), dimensions={0}\n  %back = f32[1024]{0} copy(%k)\n  ROOT %n = " +
      state + " tuple(%i, %back)\n}\n%less {\n  %q = " + state +
      " parameter(0)\n  ROOT %t = pred[] constant(true)\n}\n" +
      entry(
          "  %x = f32[1024]{0} parameter(0)\n  %zero = s32[] constant(0)\n  %own = f32[1024]{0} "
          "copy(%x)\n  %s = " +
          state + " tuple(%zero, %own)\n  %w = " + state +
          " while(%s), condition=%less, body=%body, "
          "backend_config={\"known_trip_count\":{\"n\":\"2\"}}\n  ROOT %r = f32[1024]{0} "
          "get-tuple-element(%w), index=1\n");
  CHECK(temp_of(straight) == 0);
  CHECK(temp_of(rolled) >= 4096);
}

TEST_CASE("C44: two stacks from one array of zeros, one of them on the host") {
  const testing::ToyStack kept{Save::kAsync, Fetch::kAsync, false};
  const Inspected none = inspect(ToyScan{.a = kept, .b = kept, .copied_initial = true}.text());
  CHECK(none.memory.totals.host_temp == Bytes(0));
  CHECK(what_of(none, "shared-fill") == "r0, r1 (2.00 KiB in all) begin as copies of one array.");
  // The one on the host begins as an array of its own, uninitialised; the other keeps its zeros.
  const Inspected one = inspect(ToyScan{.a = kOffloaded, .b = kept}.text());
  CHECK(one.memory.totals.host_temp == Bytes(1024));
  CHECK(what_of(one, "shared-fill") == "");
  const Inspected apart = inspect(ToyScan{.a = kept, .b = kept}.text());
  CHECK(apart.memory.live_peak - one.memory.live_peak == Bytes(1024));
}

}  // namespace
}  // namespace spillway
