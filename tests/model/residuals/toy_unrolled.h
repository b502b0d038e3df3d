// A step of three layers that are not scanned, written down as XLA compiles one of JAX.
#pragma once

#include <string>

#include "model/memory/assignment.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

inline constexpr int kToyLayers = 3;

/// How the backward part gets at q of each layer.
enum class ToyHold {
  kDevice,  ///< it stays where it was made
  kHost,    ///< copied to pinned host memory and back
  kTuple,   ///< through the tuple that jaxlib leaves where an optimization barrier was
};

/// Forward, of layer l: h = -x, q = h w, a = tanh(q), and the next layer's x = a + x. Backward: the
/// gradient g that arrives is multiplied with a, w, q and with h, which is computed anew; then the
/// gradient that arrives is added. All of q, a and x are saved.
inline std::string toy_unrolled_text(ToyHold hold = ToyHold::kDevice, int layers = kToyLayers) {
  std::string text;
  const auto line = [&text](const std::string& name, const std::string& what,
                            const std::string& operation, int frame) {
    text += "  %" + name + " = f32[4]{0} " + what;
    if (frame > 0)
      text += ", metadata={op_name=\"jit(f)/" + operation +
              "\" stack_frame_id=" + std::to_string(frame) + "}";
    text += "\n";
  };
  const std::string host = "f32[4]{0:S(5)}";
  line("p", "parameter(0)", "", 0);
  line("table", "parameter(1)", "", 0);
  for (int l = 0; l < layers; ++l)
    line("w" + std::to_string(l), "parameter(" + std::to_string(l + 2) + ")", "", 0);
  line("x0", "add(%p, %table)", "jvp()/gather", 1);
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    line("h" + n, "negate(%x" + n + ")", "jvp()/neg", 2);
    line("q" + n, "multiply(%h" + n + ", %w" + n + ")", "jvp()/mul", 3);
    if (hold == ToyHold::kHost)
      text += "  %out" + n + " = (" + host + ", f32[4]{0}, u32[]) copy-start(%q" + n + ")\n  %on" +
              n + " = " + host + " copy-done(%out" + n + ")\n";
    line("a" + n, "tanh(%q" + n + ")", "jvp()/tanh", 4);
    line("x" + std::to_string(l + 1), "add(%a" + n + ", %x" + n + ")", "jvp()/add", 5);
  }
  const std::string last = std::to_string(layers);
  line("g" + last, "negate(%x" + last + ")", "transpose(jvp())/neg", 6);
  for (int l = layers; l-- > 0;) {
    const std::string n = std::to_string(l), g = "%g" + std::to_string(l + 1);
    const std::string path = "transpose(jvp(jvp()))/checkpoint/";
    std::string q = "%q" + n;
    if (hold == ToyHold::kHost) {
      text += "  %in" + n + " = (f32[4]{0}, " + host + ", u32[]) copy-start(%on" + n + ")\n";
      line("back" + n, "copy-done(%in" + n + ")", "", 0);
      q = "%back" + n;
    }
    if (hold == ToyHold::kTuple) {
      text += "  %t" + n + " = (f32[4]{0}, f32[4]{0}) tuple(%q" + n + ", " + g + ")\n";
      q = "%t" + n + "#0";
    }
    line("again" + n, "negate(%x" + n + ")", path + "rematted_computation/neg", 7);
    line("b" + n, "multiply(" + g + ", %a" + n + ")", path + "mul", 8);
    line("c" + n, "multiply(%b" + n + ", %w" + n + ")", path + "mul", 9);
    line("d" + n, "multiply(%c" + n + ", " + q + ")", path + "mul", 10);
    line("e" + n, "multiply(%d" + n + ", %again" + n + ")", path + "mul", 11);
    line("g" + n, "add(%e" + n + ", " + g + ")", path + "add_any", 12);
  }
  line("updated", "add(%p, %g0)", "add", 13);
  return text;
}

inline Program toy_unrolled(ToyHold hold = ToyHold::kDevice, int layers = kToyLayers) {
  return read_entry(toy_unrolled_text(hold, layers));
}

}  // namespace spillway::testing
