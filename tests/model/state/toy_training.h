// A training step of four scanned layers with its state: parameters p (a stack) and h, two moments
// of each, a counter, and tokens that are nobody's state.
//
//   forward    x = tokens * h;  x = x * p[i] for each layer
//   backward   g = -x;  gradient[i] = g * g, g = g * p[i] for each layer, the first layer first
//   update     m = m + gradient, v = v + m, p = p - v, and so for h
// Width 64: p and its moments have 1024 bytes, h and its moments 256. Wider ones are a multiple.
#pragma once

#include <string>

#include "tests/support/toy_program.h"

namespace spillway::testing {

struct ToyTraining {
  bool named = true;          ///< arguments have the names that JAX would give them
  bool donated = true;        ///< the caller gives the old state away
  bool asynchronous = false;  ///< loops fetch layers and save gradients by async pairs
  bool layers_first = true;   ///< the layer is the outermost dimension of p
  bool reads_whole = false;   ///< the forward loop reads all of p at once as well
  bool unused_loop = false;   ///< nothing in the loops reads p: it is multiplied with outside
  int width = 64;

  std::string text() const {
    std::string text = functions() + entry();
    replace_all(text, "W", std::to_string(width));
    replace_all(text, "STACK",
                layers_first ? "f32[4," + std::to_string(width) + "]{1,0}"
                             : "f32[4," + std::to_string(width) + "]{0,1}");
    return text;
  }
  Program program() const {
    return toy_program(text(), donated ? ", input_output_alias={ {1}: (0, {}, may-alias), {2}: (1, "
                                         "{}, may-alias), {3}: (2, {}, may-alias), {4}: (3, {}, "
                                         "may-alias), {5}: (4, {}, may-alias), {6}: (5, {}, "
                                         "may-alias), {7}: (6, {}, may-alias) }"
                                       : "");
  }

 private:
  static void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }

  std::string functions() const {
    return R"(%fused_fetch (a: STACK, i: s32[]) -> f32[1,W] {
  %a = STACK parameter(0)
  %i = s32[] parameter(1)
  %z = s32[] constant(0)
  ROOT %r = f32[1,W]{1,0} dynamic-slice(%a, %i, %z), dynamic_slice_sizes={1,W}
}
%fetch_layer (a: STACK, i: s32[]) -> f32[1,W] {
  %a = STACK parameter(0)
  %i = s32[] parameter(1)
  ROOT %r = f32[1,W]{1,0} fusion(%a, %i), kind=kLoop, calls=%fused_fetch
}
%fused_save (a: STACK, g: f32[1,W], i: s32[]) -> STACK {
  %a = STACK parameter(0)
  %g = f32[1,W]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %z = s32[] constant(0)
  ROOT %r = STACK dynamic-update-slice(%a, %g, %i, %z)
}
%save_layer (a: STACK, g: f32[1,W], i: s32[]) -> STACK {
  %a = STACK parameter(0)
  %g = f32[1,W]{1,0} parameter(1)
  %i = s32[] parameter(2)
  ROOT %r = STACK fusion(%a, %g, %i), kind=kLoop, calls=%fused_save
}
%times_layer (x: f32[W], a: STACK, i: s32[]) -> f32[W] {
  %x = f32[W]{0} parameter(0)
  %a = STACK parameter(1)
  %i = s32[] parameter(2)
  %z = s32[] constant(0)
  %s = f32[1,W]{1,0} dynamic-slice(%a, %i, %z), dynamic_slice_sizes={1,W}
  %w = f32[W]{0} bitcast(%s)
  ROOT %r = f32[W]{0} multiply(%x, %w)
}
%times (x: f32[W], w: f32[W]) -> f32[W] {
  %x = f32[W]{0} parameter(0)
  %w = f32[W]{0} parameter(1)
  ROOT %r = f32[W]{0} multiply(%x, %w)
}
%square (x: f32[W]) -> f32[W] {
  %x = f32[W]{0} parameter(0)
  ROOT %r = f32[W]{0} multiply(%x, %x)
}
%zeros () -> STACK {
  %z = f32[] constant(0)
  ROOT %r = STACK broadcast(%z), dimensions={}
}
)" + update("update_p", "STACK") +
           update("update_h", "f32[W]{0}") + forward() + backward() +
           less("f_less", forward_state()) + less("b_less", backward_state());
  }

  static std::string update(const std::string& name, const std::string& shape) {
    return "%" + name + " (p: " + shape + ", g: " + shape + ", m: " + shape + ", v: " + shape +
           ") -> (" + shape + ", " + shape + ", " + shape + ") {\n  %p = " + shape +
           " parameter(0)\n  %g = " + shape + " parameter(1)\n  %m = " + shape +
           " parameter(2)\n  %v = " + shape + " parameter(3)\n  %m1 = " + shape +
           " add(%m, %g)\n  %v1 = " + shape + " add(%v, %m1)\n  %p1 = " + shape +
           " subtract(%p, %v1)\n  ROOT %r = (" + shape + ", " + shape + ", " + shape +
           ") tuple(%p1, %m1, %v1)\n}\n";
  }

  static std::string forward_state() { return "(s32[], f32[W]{0}, STACK)"; }
  static std::string backward_state() { return "(s32[], f32[W]{0}, STACK, STACK)"; }

  static std::string less(const std::string& name, const std::string& state) {
    return "%" + name + " (s: " + state + ") -> pred[] {\n  %s = " + state +
           " parameter(0)\n  %i = s32[] get-tuple-element(%s), index=0\n  %n = s32[] constant(4)\n"
           "  ROOT %r = pred[] compare(%i, %n), direction=LT\n}\n";
  }

  /// The lines that make %y, `x` times a layer of %p.
  std::string times_layer(const std::string& x) const {
    if (unused_loop) return "  %y = f32[W]{0} fusion(%" + x + "), kind=kLoop, calls=%square\n";
    if (!asynchronous)
      return "  %y = f32[W]{0} fusion(%" + x + ", %p, %i), kind=kLoop, calls=%times_layer\n";
    return "  %w-start = ((STACK, s32[]), f32[1,W]{1,0}, u32[]) async-start(%p, %i), "
           "calls=%fetch_layer\n  %w-done = f32[1,W]{1,0} async-done(%w-start)\n  %w = f32[W]{0} "
           "bitcast(%w-done)\n  %y = f32[W]{0} fusion(%" +
           x + ", %w), kind=kLoop, calls=%times\n";
  }

  static std::string elements(const std::string& state, const std::string& x) {
    return "  %s = " + state + " parameter(0)\n  %i = s32[] get-tuple-element(%s), index=0\n  %" +
           x +
           " = f32[W]{0} get-tuple-element(%s), index=1\n  %p = STACK get-tuple-element(%s), "
           "index=2\n";
  }
  static std::string next() {
    return "  %one = s32[] constant(1)\n  %next = s32[] add(%i, %one)\n";
  }

  std::string forward() const {
    return "%forward (s: " + forward_state() + ") -> " + forward_state() + " {\n" +
           elements(forward_state(), "x") + times_layer("x") +
           (reads_whole ? "  %whole = STACK negate(%p)\n" : "") + next() +
           "  ROOT %r = " + forward_state() + " tuple(%next, %y, %p)\n}\n";
  }

  std::string backward() const {
    const std::string save =
        asynchronous ? "  %u-start = ((STACK, f32[1,W]{1,0}, s32[]), STACK, u32[]) async-start(%a, "
                       "%q1, %i), "
                       "calls=%save_layer\n  %u = STACK async-done(%u-start)\n"
                     : "  %u = STACK fusion(%a, %q1, %i), kind=kLoop, calls=%fused_save\n";
    return "%backward (s: " + backward_state() + ") -> " + backward_state() + " {\n" +
           elements(backward_state(), "g") + "  %a = STACK get-tuple-element(%s), index=3\n" +
           times_layer("g") +
           "  %q = f32[W]{0} fusion(%g), kind=kLoop, calls=%square\n  %q1 = f32[1,W]{1,0} "
           "bitcast(%q)\n" +
           save + next() + "  ROOT %r = " + backward_state() + " tuple(%next, %y, %p, %u)\n}\n";
  }

  std::string argument(const std::string& name, const std::string& shape, int number,
                       const std::string& path) const {
    return "  %" + name + " = " + shape + " parameter(" + std::to_string(number) + ")" +
           (named ? ", metadata={op_name=\"" + path + "\"}" : "") + "\n";
  }

  std::string entry() const {
    const std::string stack = "STACK", row = "f32[W]{0}";
    const std::string trips = ", backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n";
    std::string out = "ENTRY %main {\n" + argument("p", stack, 0, "state.params['p']") +
                      argument("h", row, 1, "state.params['h']") +
                      argument("mp", stack, 2, "state.opt_state[0].mu['p']") +
                      argument("mh", row, 3, "state.opt_state[0].mu['h']") +
                      argument("vp", stack, 4, "state.opt_state[0].nu['p']") +
                      argument("vh", row, 5, "state.opt_state[0].nu['h']") +
                      argument("count", "s32[]", 6, "state.step") +
                      argument("tokens", row, 7, "tokens");
    out +=
        "  %start = s32[] constant(0)\n  %x0 = f32[W]{0} fusion(%tokens, %h), kind=kLoop, "
        "calls=%times\n  %c0 = s32[] copy(%start)\n  %f0 = " +
        forward_state() + " tuple(%c0, %x0, %p)\n  %fw = " + forward_state() +
        " while(%f0), condition=%f_less, body=%forward" + trips +
        "  %x4 = f32[W]{0} get-tuple-element(%fw), index=1\n  %loss = f32[W]{0} copy(%x4)\n"
        "  %g0 = f32[W]{0} negate(%x4)\n  %z0 = STACK fusion(), kind=kLoop, calls=%zeros\n"
        "  %c1 = s32[] copy(%start)\n  %b0 = " +
        backward_state() + " tuple(%c1, %g0, %p, %z0)\n  %bw = " + backward_state() +
        " while(%b0), condition=%b_less, body=%backward" + trips +
        "  %g4 = f32[W]{0} get-tuple-element(%bw), index=1\n  %dp = STACK "
        "get-tuple-element(%bw), index=3\n  %dh = f32[W]{0} fusion(%g4, %tokens), kind=kLoop, "
        "calls=%times\n  %up = (STACK, STACK, STACK) fusion(%p, %dp, %mp, %vp), kind=kLoop, "
        "calls=%update_p\n  %uh = (f32[W]{0}, f32[W]{0}, f32[W]{0}) fusion(%h, %dh, %mh, %vh), "
        "kind=kLoop, calls=%update_h\n";
    for (const char* which : {"p", "h"})
      for (int k = 0; k < 3; ++k)
        out += std::string("  %") + which + std::to_string(k) + " = " +
               (*which == 'p' ? stack : row) + " get-tuple-element(%u" + which +
               "), index=" + std::to_string(k) + "\n";
    return out +
           "  %step = s32[] constant(1)\n  %count1 = s32[] add(%count, %step)\n  ROOT %out = "
           "(f32[W]{0}, STACK, f32[W]{0}, STACK, f32[W]{0}, STACK, f32[W]{0}, s32[]) tuple(%loss, "
           "%p0, %h0, %p1, %h1, %p2, %h2, %count1)\n}\n";
  }
};

}  // namespace spillway::testing
