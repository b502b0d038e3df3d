// Rules about what the order of execution costs.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::inspect;
using testing::replaced;
using testing::Save;
using testing::ToyScan;
using testing::what_of;

std::string op(const std::string& direction, int layer, const std::string& name) {
  return ", metadata={op_name=\"jit(step)/" + direction + "/layers_" + std::to_string(layer) + "/" +
         name + "\"}\n";
}

/// An unrolled step of `layers` layers: forward keeps tanh of each, backward makes a gradient of
/// each weight as soon as it can, or all of them behind everything else.
std::string unrolled(int layers, bool late) {
  const std::string x = "f32[64,64]{1,0}";
  std::string text =
      "ENTRY %main {\n  %x0 = " + x + " parameter(0)\n  %w = " + x + " parameter(1)\n";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += "  %h" + n + " = " + x + " dot(%x" + n +
            ", %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}" + op("jvp()", i, "dot");
    text +=
        "  %x" + std::to_string(i + 1) + " = " + x + " tanh(%h" + n + ")" + op("jvp()", i, "tanh");
  }
  std::string weights;
  text +=
      "  %g" + std::to_string(layers) + " = " + x + " negate(%x" + std::to_string(layers) + ")\n";
  std::string sum = "w";
  for (int i = layers - 1; i >= 0; --i) {
    const std::string n = std::to_string(i);
    const std::string above = std::to_string(i + 1);
    const std::string gradient = "  %dw" + n + " = " + x + " dot(%x" + n + ", %g" + above +
                                 "), lhs_contracting_dims={0}, rhs_contracting_dims={0}" +
                                 op("transpose(jvp())", i, "dot") + "  %sum" + n + " = " + x +
                                 " add(%" + sum + ", %dw" + n + ")\n";
    sum = "sum" + n;
    const std::string input = "  %g" + n + " = " + x + " dot(%g" + above +
                              ", %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}" +
                              op("transpose(jvp())", i, "dot");
    if (late)
      text += input, weights += gradient;
    else
      text += gradient + input;
  }
  return text + weights + "  ROOT %r = " + x + " add(%" + sum + ", %g0)\n}\n";
}

/// Inspected, with what another order would save.
testing::Inspected ordered(const std::string& text, std::int64_t cost) {
  testing::Inspected inspected = inspect(text);
  inspected.order_cost = Bytes(cost);
  return inspected;
}

TEST_CASE("weight gradients that are put off behind the backward pass") {
  constexpr std::int64_t kCost = 96 * 1024;
  CHECK(what_of(ordered(unrolled(8, false), kCost), "gradients-put-off") == "");
  // Of layer 7 the gradient g8 is there first of all, and eight products for inputs run before
  // its weight's; of layer 6 seven. At the peak all inputs x0 … x7 and gradients g1 … g8 are there.
  CHECK(
      what_of(ordered(unrolled(8, true), kCost), "gradients-put-off") ==
      "8 of 16 matrix products of the backward pass run late: up to 8 others run after all that "
      "they read is there, and when most is live that is 256.00 KiB. In another order the program "
      "would need 96.00 KiB less.");
  // An order that costs nothing, or of which nobody knows, harms nobody.
  CHECK(what_of(ordered(unrolled(8, true), 0), "gradients-put-off") == "");
  CHECK(what_of(inspect(unrolled(8, true)), "gradients-put-off") == "");
  // Few layers are no trend.
  CHECK(what_of(ordered(unrolled(5, true), kCost), "gradients-put-off") == "");
}

TEST_CASE("temporaries that each unrolled layer holds for itself") {
  // Activations are saved, as a scan would save them; gradients that wait are not.
  CHECK(what_of(inspect(unrolled(8, false)), "layers-held") == "");
  // At the peak those of all eight inputs, and the first of a weight.
  CHECK(what_of(inspect(unrolled(8, true)), "layers-held") ==
        "144.00 KiB of temporaries when most is live are the same arrays again and again, as "
        "unrolled layers make them: 1 kind, the largest 9 times f32[64,64] (144.00 KiB). What the "
        "forward pass saves is not among them.");
  CHECK(what_of(inspect(unrolled(3, true)), "layers-held") == "");
  CHECK(what_of(inspect(ToyScan{}.text()), "layers-held") == "");
}

TEST_CASE("a conditional in a loop, and the copies it makes") {
  const auto loop = [](const std::string& body) {
    return "%yes {\n  %y = f32[256]{0} parameter(0)\n  ROOT %yc = f32[256]{0} copy(%y)\n}\n"
           "%no {\n  %n = f32[256]{0} parameter(0)\n  ROOT %nc = f32[256]{0} negate(%n)\n}\n"
           "%body {\n  %p = (s32[], f32[256]{0}, pred[]) parameter(0)\n  %i = s32[] "
           "get-tuple-element(%p), index=0\n  %x = f32[256]{0} get-tuple-element(%p), index=1\n  "
           "%c = pred[] get-tuple-element(%p), index=2\n" +
           body +
           "  ROOT %t = (s32[], f32[256]{0}, pred[]) tuple(%i, %z, %c)\n}\n"
           "%cond {\n  %q = (s32[], f32[256]{0}, pred[]) parameter(0)\n  ROOT %b = pred[] "
           "constant(true)\n}\n"
           "ENTRY %main {\n  %a = s32[] constant(0)\n  %x0 = f32[256]{0} parameter(0)\n  %c0 = "
           "pred[] parameter(1)\n  %ax = f32[256]{0} copy(%x0)\n  %ac = pred[] copy(%c0)\n  %s = "
           "(s32[], f32[256]{0}, pred[]) tuple(%a, %ax, %ac)\n  %w = (s32[], f32[256]{0}, pred[]) "
           "while(%s), condition=%cond, body=%body, "
           "backend_config={\"known_trip_count\":{\"n\":\"10\"}}\n  ROOT %r = f32[256]{0} "
           "get-tuple-element(%w), index=1\n}\n";
  };
  // Ten copies in a branch and ten in the body, of 1 KiB each.
  CHECK(what_of(inspect(loop("  %u = f32[256]{0} copy(%x)\n  %z = f32[256]{0} conditional(%c, %u, "
                             "%u), true_computation=%yes, false_computation=%no\n")),
                "carries-copied") ==
        "loops around a conditional copy up to 20.00 KiB within HBM in a step, in 20 copies; the "
        "first is body.");
  // Two conditionals in one body: its own copies count once, those of the branch for each.
  CHECK(what_of(inspect(loop("  %u = f32[256]{0} copy(%x)\n  %v = f32[256]{0} conditional(%c, %u, "
                             "%u), true_computation=%yes, false_computation=%no\n  %z = "
                             "f32[256]{0} conditional(%c, %v, %v), true_computation=%yes, "
                             "false_computation=%no\n")),
                "carries-copied")
            .find("in 30 copies") != std::string::npos);
  // The same copies without a conditional are somebody else's.
  CHECK(what_of(inspect(loop("  %u = f32[256]{0} copy(%x)\n  %z = f32[256]{0} negate(%u)\n")),
                "carries-copied") == "");
}

TEST_CASE("stacks that begin as one array") {
  CHECK(what_of(inspect(ToyScan{.copied_initial = true}.text()), "shared-fill") ==
        "r0, r1 (2.00 KiB in all) begin as copies of one array.");
  CHECK(what_of(inspect(ToyScan{}.text()), "shared-fill") == "");
  CHECK(what_of(inspect(ToyScan{.one_initial_fusion = true}.text()), "shared-fill") == "");
}

}  // namespace
}  // namespace spillway
