// A scanned step of four layers, written down as XLA would schedule it, in every form in which
// slices are saved and read again.
//
//   forward    h = tanh(x)      saves x (the layer's input) in stack `a`, h in stack `b`
//              x = h + x
//   backward   g = g * a        reads both, the last layer first
//              g = g + b
// Each stack holds 4 layers of 64 floats: 1024 bytes, 256 a layer; or wider ones.
#pragma once

#include <string>
#include <vector>

#include "model/residuals/residuals.h"
#include "tests/support/toy_program.h"

namespace spillway::testing {

enum class Save {
  kAlone,       ///< an update by itself
  kFused,       ///< a fusion of the update alone
  kMaker,       ///< the fusion that makes the value also updates the stack (b only)
  kOnlyMaker,   ///< a fusion makes the value, and gives nothing but the updated stack (b only)
  kAsync,       ///< an async pair around the update
  kAsyncFused,  ///< an async pair around a fusion of the update
  kNegated,     ///< a fusion that updates the stack and goes on to negate all of it
};
/// As XLA saves slices; kNegated is none of them.
inline constexpr Save kSaves[] = {Save::kAlone,     Save::kFused, Save::kMaker,
                                  Save::kOnlyMaker, Save::kAsync, Save::kAsyncFused};
inline bool is_maker(Save save) { return save == Save::kMaker || save == Save::kOnlyMaker; }
enum class Fetch {
  kAlone,  ///< a slice by itself
  kFused,  ///< inside the fusion that computes with it
  kTwice,  ///< inside two fusions
  kAsync,  ///< an async pair around the slice
  kAsyncFused,
  kAsyncCopied,  ///< an async pair around a fusion that copies the slice, as older XLA has it
  kLibrary,      ///< inside a fusion around a library call
  kTwoPlaces,    ///< inside a fusion that takes two slices of the stack
  kNone,         ///< nothing reads the stack
};
/// As XLA fetches slices; the last two are none of them.
inline constexpr Fetch kFetches[] = {Fetch::kAlone,  Fetch::kFused,      Fetch::kTwice,
                                     Fetch::kAsync,  Fetch::kAsyncFused, Fetch::kAsyncCopied,
                                     Fetch::kLibrary};

struct ToyStack {
  Save save = Save::kFused;
  Fetch fetch = Fetch::kFused;
  bool on_host = false;
  bool copied = false;  ///< the whole stack is copied between the loops
};

/// As XLA offloads a stack.
inline constexpr ToyStack kOffloaded{Save::kAsync, Fetch::kAsync, true};

struct ToyScan {
  ToyStack a = {}, b = {};
  /// Both stacks begin as results of one fusion, as XLA makes zeros; else each by itself.
  bool one_initial_fusion = false;
  /// Stack `b` begins as a copy of what `a` begins with.
  bool copied_initial = false;
  /// The forward loop saves each h an iteration late, the last one behind the loop: XLA's way to
  /// pipeline copies.
  bool pipelined = false;
  /// Another loop behind the backward loop reads stack `a` once more.
  bool third_loop = false;
  /// Forward and backward run this often inside an outer loop; 0: there is none.
  int outer_trips = 0;

  /// XLA notes which element of the carry counts the layers.
  bool counted = false;

  /// Floats of a layer.
  int width = 64;

  std::string text() const {
    std::string text = functions() + (outer_trips > 0 ? nested_entry() : plain_entry());
    for (const char* end : {"]", "}"})
      replace_all(text, std::string("64") + end, std::to_string(width) + end);
    return text;
  }

 private:
  static void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }

  /// Whether one fusion makes both stacks.
  bool share_initial() const { return one_initial_fusion && !a.on_host && !b.on_host; }

  /// Everything but the entry.
  std::string functions() const {
    std::string out = computations(a, "a") + computations(b, "b");
    out += forward() + backward() + less("f_less", forward_state()) + less("b_less", state());
    if (third_loop) out += again();
    if (share_initial())
      out +=
          "%zeros () -> f32[] {\n  %z0 = f32[] constant(0)\n  %z1 = f32[4,64]{1,0} "
          "broadcast(%z0), dimensions={}\n  %z2 = f32[4,64]{1,0} broadcast(%z0), "
          "dimensions={}\n  ROOT %z3 = (f32[4,64]{1,0}, f32[4,64]{1,0}) tuple(%z1, %z2)\n}\n";
    return out;
  }

  /// The lines of the entry from %x0 on, up to %gradient.
  std::string step() const {
    const std::string trips = counted ? ", backend_config={\"known_trip_count\":{\"n\":\"4\"},"
                                        "\"known_induction_variable\":{\"tuple_index\":\"0\"},"
                                        "\"known_init_step\":{\"init\":\"0\",\"step\":\"1\"}}\n"
                                      : ", backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n";
    std::string out = "  %nothing = f32[] constant(0)\n  %start = s32[] constant(0)\n";
    if (share_initial())
      out += "  %both = (f32[4,64]{1,0}, f32[4,64]{1,0}) fusion(), kind=kLoop, calls=%zeros\n";
    out += initial(a, "a") + initial(b, "b");
    if (pipelined) out += "  %late0 = f32[64]{0} copy(%x0)\n";
    out += "  %c0 = s32[] copy(%start)\n  %x1 = f32[64]{0} copy(%x0)\n  %f0 = " + forward_state() +
           " tuple(%c0, %x1, %init_a, %init_b" + (pipelined ? ", %late0" : "") +
           ")\n  %fw = " + forward_state() + " while(%f0), condition=%f_less, body=%forward" +
           trips;
    for (int k = 1; k < 4; ++k)
      out += "  %fw" + std::to_string(k) + " = " + (k == 1 ? "f32[64]{0}" : stack(k == 2 ? a : b)) +
             " get-tuple-element(%fw), index=" + std::to_string(k) + "\n";
    if (pipelined)
      out +=
          "  %late4 = f32[64]{0} get-tuple-element(%fw), index=4\n"
          "  %last_layer = f32[1,64]{1,0} bitcast(%late4)\n  %peeled = " +
          stack(b) + " dynamic-update-slice(%fw3, %last_layer, %start, %start)\n";
    const std::string saved_b = pipelined ? "peeled" : "fw3";
    if (a.copied) out += "  %copied_a = " + stack(a) + " copy(%fw2)\n";
    if (b.copied) out += "  %copied_b = " + stack(b) + " copy(%" + saved_b + ")\n";
    const std::string stacks =
        std::string(a.copied ? "%copied_a" : "%fw2") + ", %" + (b.copied ? "copied_b" : saved_b);
    out += "  %g0 = f32[64]{0} negate(%fw1)\n  %c1 = s32[] copy(%start)\n  %b0 = " + state() +
           " tuple(%c1, %g0, " + stacks + ")\n  %bw = " + state() +
           " while(%b0), condition=%b_less, body=%backward" + trips;
    if (third_loop)
      out +=
          "  %bw1 = f32[64]{0} get-tuple-element(%bw), index=1\n  %c2 = s32[] copy(%start)\n"
          "  %a0 = " +
          state() + " tuple(%c2, %bw1, " + stacks + ")\n  %third = " + state() +
          " while(%a0), condition=%a_less, body=%again" + trips;
    return out + "  %gradient = f32[64]{0} get-tuple-element(%" + (third_loop ? "third" : "bw") +
           "), index=1\n";
  }

  static std::string stack(const ToyStack& s) {
    return s.on_host ? "f32[4,64]{1,0:S(5)}" : "f32[4,64]{1,0}";
  }
  std::string state() const { return "(s32[], f32[64]{0}, " + stack(a) + ", " + stack(b) + ")"; }
  std::string forward_state() const {
    return "(s32[], f32[64]{0}, " + stack(a) + ", " + stack(b) +
           (pipelined ? ", f32[64]{0})" : ")");
  }

  static std::string update(const ToyStack& s, const std::string& n) {
    return stack(s) + " dynamic-update-slice(%w0" + n + ", %w1" + n + ", %w2" + n + ", %w3" + n +
           ")";
  }
  static std::string parameters(const std::string& stem, const std::string& n,
                                const std::vector<std::string>& shapes) {
    std::string out;
    for (std::size_t k = 0; k < shapes.size(); ++k)
      out += "  %" + stem + std::to_string(k) + n + " = " + shapes[k] + " parameter(" +
             std::to_string(k) + ")\n";
    return out;
  }
  static std::string computation(const std::string& name, const std::string& lines) {
    return "%" + name + " () -> f32[] {\n" + lines + "}\n";
  }

  /// What fusions and async starts of one stack call.
  static std::string computations(const ToyStack& s, const std::string& n) {
    const std::string index = "s32[]";
    const std::string layer = "f32[1,64]{1,0}";
    const std::string x = "f32[64]{0}";
    std::string out;
    // The update, with its slice and indices handed in.
    out += computation("update_" + n, parameters("w", n, {stack(s), layer, index, index}) +
                                          "  ROOT %wu" + n + " = " + update(s, n) + "\n");
    out += computation("update_call_" + n, parameters("v", n, {stack(s), layer, index, index}) +
                                               "  ROOT %vu" + n + " = " + stack(s) + " fusion(%v0" +
                                               n + ", %v1" + n + ", %v2" + n + ", %v3" + n +
                                               "), kind=kLoop, calls=%update_" + n + "\n");
    out +=
        computation("negated_" + n, parameters("y", n, {stack(s), layer, index, index}) + "  %yu" +
                                        n + " = " + stack(s) + " dynamic-update-slice(%y0" + n +
                                        ", %y1" + n + ", %y2" + n + ", %y3" + n + ")\n  ROOT %yn" +
                                        n + " = " + stack(s) + " negate(%yu" + n + ")\n");
    // tanh and the update of its result.
    out += computation("maker_" + n, parameters("m", n, {stack(s), x, index}) + "  %mz" + n +
                                         " = s32[] constant(0)\n  %mh" + n + " = " + x +
                                         " tanh(%m1" + n + ")\n  %mb" + n + " = " + layer +
                                         " bitcast(%mh" + n + ")\n  %mu" + n + " = " + stack(s) +
                                         " dynamic-update-slice(%m0" + n + ", %mb" + n + ", %m2" +
                                         n + ", %mz" + n + ")\n  ROOT %mt" + n + " = (" + x + ", " +
                                         stack(s) + ") tuple(%mh" + n + ", %mu" + n + ")\n");
    out += computation("only_" + n, parameters("o", n, {stack(s), x, index}) + "  %oz" + n +
                                        " = s32[] constant(0)\n  %oh" + n + " = " + x +
                                        " tanh(%o1" + n + ")\n  %ob" + n + " = " + layer +
                                        " bitcast(%oh" + n + ")\n  ROOT %ou" + n + " = " +
                                        stack(s) + " dynamic-update-slice(%o0" + n + ", %ob" + n +
                                        ", %o2" + n + ", %oz" + n + ")\n");
    out += computation("slice_" + n, parameters("d", n, {stack(s), index, index}) + "  ROOT %ds" +
                                         n + " = " + layer + " dynamic-slice(%d0" + n + ", %d1" +
                                         n + ", %d2" + n + "), dynamic_slice_sizes={1,64}\n");
    out +=
        computation("slice_call_" + n, parameters("e", n, {stack(s), index, index}) + "  ROOT %es" +
                                           n + " = " + layer + " fusion(%e0" + n + ", %e1" + n +
                                           ", %e2" + n + "), kind=kLoop, calls=%slice_" + n + "\n");
    out += computation("slice_copy_" + n, parameters("k", n, {stack(s), index, index}) + "  %ks" +
                                              n + " = " + layer + " dynamic-slice(%k0" + n +
                                              ", %k1" + n + ", %k2" + n +
                                              "), dynamic_slice_sizes={1,64}\n  ROOT %kc" + n +
                                              " = " + layer + " copy(%ks" + n + ")\n");
    out += computation("copy_call_" + n, parameters("c", n, {stack(s), index, index}) +
                                             "  ROOT %cs" + n + " = " + layer + " fusion(%c0" + n +
                                             ", %c1" + n + ", %c2" + n +
                                             "), kind=kLoop, calls=%slice_copy_" + n + "\n");
    // Computing with a slice: of the stack, and of one that was fetched.
    const std::string operation = n == "a" ? "multiply" : "add";
    out += computation("use_" + n, parameters("u", n, {x, stack(s), index}) + "  %uz" + n +
                                       " = s32[] constant(0)\n  %us" + n + " = " + layer +
                                       " dynamic-slice(%u1" + n + ", %u2" + n + ", %uz" + n +
                                       "), dynamic_slice_sizes={1,64}\n  %ub" + n + " = " + x +
                                       " bitcast(%us" + n + ")\n  ROOT %ur" + n + " = " + x + " " +
                                       operation + "(%u0" + n + ", %ub" + n + ")\n");
    out += computation(
        "two_" + n,
        parameters("t", n, {x, stack(s), index}) + "  %tz" + n + " = s32[] constant(0)\n  %ts" + n +
            " = " + layer + " dynamic-slice(%t1" + n + ", %t2" + n + ", %tz" + n +
            "), dynamic_slice_sizes={1,64}\n  %tf" + n + " = " + layer + " dynamic-slice(%t1" + n +
            ", %tz" + n + ", %tz" + n + "), dynamic_slice_sizes={1,64}\n  %tp" + n + " = " + layer +
            " add(%ts" + n + ", %tf" + n + ")\n  %tb" + n + " = " + x + " bitcast(%tp" + n +
            ")\n  ROOT %tr" + n + " = " + x + " " + operation + "(%t0" + n + ", %tb" + n + ")\n");
    out += computation(
        "library_" + n,
        parameters("l", n, {x, stack(s), index}) + "  %lz" + n + " = s32[] constant(0)\n  %ls" + n +
            " = " + layer + " dynamic-slice(%l1" + n + ", %l2" + n + ", %lz" + n +
            "), dynamic_slice_sizes={1,64}\n  %lb" + n + " = " + x + " bitcast(%ls" + n +
            ")\n  %lc" + n + " = (" + x + ", s8[256]{0}) custom-call(%l0" + n + ", %lb" + n +
            "), custom_call_target=\"__cublas$lt$matmul\"\n  ROOT %lt" + n + " = (" + x +
            ", s8[256]{0}) tuple(%lc" + n + "#0, %lc" + n + "#1)\n");
    out += computation("fetched_" + n, parameters("r", n, {x, layer}) + "  %rb" + n + " = " + x +
                                           " bitcast(%r1" + n + ")\n  ROOT %rr" + n + " = " + x +
                                           " " + operation + "(%r0" + n + ", %rb" + n + ")\n");
    return out;
  }

  /// Lines that put `value` into stack `n`: define %new_<n>.
  static std::string save(const ToyStack& s, const std::string& n, const std::string& value) {
    const std::string layer = "  %layer_" + n + " = f32[1,64]{1,0} bitcast(%" + value + ")\n";
    const std::string operands = "(%s" + n + ", %layer_" + n + ", %i, %zero)";
    switch (s.save) {
      case Save::kAlone:
        return layer + "  %new_" + n + " = " + stack(s) + " dynamic-update-slice" + operands + "\n";
      case Save::kFused:
      case Save::kNegated:
        return layer + "  %new_" + n + " = " + stack(s) + " fusion" + operands +
               ", kind=kLoop, calls=%" + (s.save == Save::kFused ? "update_" : "negated_") + n +
               "\n";
      case Save::kMaker:
      case Save::kOnlyMaker:
        return "";  // forward() writes the fusion
      case Save::kAsync:
      case Save::kAsyncFused:
        return layer + "  %save_" + n + "-start = ((" + stack(s) +
               ", f32[1,64]{1,0}, s32[], s32[]), " + stack(s) + ", u32[]) async-start" + operands +
               ", calls=%" + (s.save == Save::kAsync ? "update_" : "update_call_") + n +
               "\n  %new_" + n + " = " + stack(s) + " async-done(%save_" + n + "-start)\n";
    }
    return "";
  }

  std::string forward() const {
    std::string out = "%forward () -> f32[] {\n  %p = " + forward_state() + " parameter(0)\n" +
                      "  %i = s32[] get-tuple-element(%p), index=0\n"
                      "  %x = f32[64]{0} get-tuple-element(%p), index=1\n  %sa = " +
                      stack(a) + " get-tuple-element(%p), index=2\n  %sb = " + stack(b) +
                      " get-tuple-element(%p), index=3\n"
                      "  %zero = s32[] constant(0)\n  %one = s32[] constant(1)\n";
    out += save(a, "a", "x");
    if (b.save == Save::kOnlyMaker)
      out += "  %new_b = " + stack(b) +
             " fusion(%sb, %x, %i), kind=kLoop, calls=%only_b\n  %h = f32[64]{0} tanh(%x)\n";
    else if (b.save == Save::kMaker)
      out += "  %made = (f32[64]{0}, " + stack(b) +
             ") fusion(%sb, %x, %i), kind=kLoop, calls=%maker_b\n"
             "  %h = f32[64]{0} get-tuple-element(%made), index=0\n  %new_b = " +
             stack(b) + " get-tuple-element(%made), index=1\n";
    else
      out += std::string(pipelined ? "  %late = f32[64]{0} get-tuple-element(%p), index=4\n" : "") +
             "  %h = f32[64]{0} tanh(%x)\n" + save(b, "b", pipelined ? "late" : "h");
    return out + "  %y = f32[64]{0} add(%h, %x)\n  %j = s32[] add(%i, %one)\n  ROOT %next = " +
           forward_state() + " tuple(%j, %y, %new_a, %new_b" + (pipelined ? ", %h" : "") + ")\n}\n";
  }

  /// Lines that compute %g_<n> from %<from> and a slice of stack `n`.
  static std::string fetch(const ToyStack& s, const std::string& n, const std::string& from) {
    const std::string result = "  %g_" + n + " = f32[64]{0} ";
    const std::string fused = "fusion(%" + from + ", %t" + n + ", %k), kind=kLoop, calls=%use_" + n;
    const std::string slices = "(%t" + n + ", %k, %zero2)";
    const std::string use =
        result + "fusion(%" + from + ", %read_" + n + "), kind=kLoop, calls=%fetched_" + n + "\n";
    switch (s.fetch) {
      case Fetch::kAlone:
        return "  %read_" + n + " = f32[1,64]{1,0} dynamic-slice" + slices +
               ", dynamic_slice_sizes={1,64}\n" + use;
      case Fetch::kFused:
        return result + fused + "\n";
      case Fetch::kTwice:
        return "  %once_" + n + " = f32[64]{0} " + fused + "\n" + result + "fusion(%once_" + n +
               ", %t" + n + ", %k), kind=kLoop, calls=%use_" + n + "\n";
      case Fetch::kAsync:
      case Fetch::kAsyncFused:
      case Fetch::kAsyncCopied:
        return "  %fetch_" + n + "-start = ((" + stack(s) +
               ", s32[], s32[]), f32[1,64]{1,0}, u32[]) async-start" + slices + ", calls=%" +
               (s.fetch == Fetch::kAsync        ? "slice_"
                : s.fetch == Fetch::kAsyncFused ? "slice_call_"
                                                : "copy_call_") +
               n + "\n  %read_" + n + " = f32[1,64]{1,0} async-done(%fetch_" + n + "-start)\n" +
               use;
      case Fetch::kLibrary:
        return "  %call_" + n + " = (f32[64]{0}, s8[256]{0}) fusion(%" + from + ", %t" + n +
               ", %k), kind=kCustom, calls=%library_" + n + "\n" + result + "negate(%call_" + n +
               "#0)\n";
      case Fetch::kTwoPlaces:
        return result + "fusion(%" + from + ", %t" + n + ", %k), kind=kLoop, calls=%two_" + n +
               "\n";
      case Fetch::kNone:
        return result + "negate(%" + from + ")\n";
    }
    return "";
  }

  std::string backward() const {
    return "%backward () -> f32[] {\n  %q = " + state() +
           " parameter(0)\n  %i2 = s32[] get-tuple-element(%q), index=0\n"
           "  %g = f32[64]{0} get-tuple-element(%q), index=1\n  %ta = " +
           stack(a) + " get-tuple-element(%q), index=2\n  %tb = " + stack(b) +
           " get-tuple-element(%q), index=3\n  %zero2 = s32[] constant(0)\n"
           "  %one2 = s32[] constant(1)\n  %three = s32[] constant(3)\n"
           "  %k = s32[] subtract(%three, %i2)\n" +
           fetch(a, "a", "g") + fetch(b, "b", "g_a") +
           "  %j2 = s32[] add(%i2, %one2)\n  ROOT %next2 = " + state() +
           " tuple(%j2, %g_b, %ta, %tb)\n}\n";
  }

  std::string again() const {
    return "%again () -> f32[] {\n  %v = " + state() +
           " parameter(0)\n  %i3 = s32[] get-tuple-element(%v), index=0\n"
           "  %g3 = f32[64]{0} get-tuple-element(%v), index=1\n  %va = " +
           stack(a) + " get-tuple-element(%v), index=2\n  %vb = " + stack(b) +
           " get-tuple-element(%v), index=3\n  %zero3 = s32[] constant(0)\n"
           "  %one3 = s32[] constant(1)\n  %read_3 = f32[1,64]{1,0} dynamic-slice(%va, %i3, "
           "%zero3), "
           "dynamic_slice_sizes={1,64}\n"
           "  %g_3 = f32[64]{0} fusion(%g3, %read_3), kind=kLoop, calls=%fetched_a\n"
           "  %j3 = s32[] add(%i3, %one3)\n  ROOT %next3 = " +
           state() + " tuple(%j3, %g_3, %va, %vb)\n}\n" + less("a_less", state());
  }

  static std::string less(const std::string& name, const std::string& shape) {
    return "%" + name + " () -> pred[] {\n  %p_" + name + " = " + shape +
           " parameter(0)\n  ROOT %r_" + name + " = pred[] constant(true)\n}\n";
  }

  std::string initial(const ToyStack& s, const std::string& n) const {
    if (copied_initial && n == "b") return "  %init_b = " + stack(s) + " copy(%init_a)\n";
    if (s.on_host)
      return "  %init_" + n + " = " + stack(s) +
             " custom-call(), custom_call_target=\"AllocateBuffer\"\n";
    if (share_initial())
      return "  %init_" + n + " = " + stack(s) +
             " get-tuple-element(%both), index=" + (n == "a" ? "0" : "1") + "\n";
    return "  %init_" + n + " = " + stack(s) + " broadcast(%nothing), dimensions={}\n";
  }

  std::string plain_entry() const {
    return "ENTRY %main () -> f32[] {\n  %x0 = f32[64]{0} parameter(0)\n" + step() +
           "  ROOT %end = f32[64]{0} negate(%gradient)\n}\n";
  }
  std::string nested_entry() const {
    return "%outer () -> f32[] {\n  %o = (f32[64]{0}) parameter(0)\n"
           "  %x0 = f32[64]{0} get-tuple-element(%o), index=0\n" +
           step() +
           "  %end = f32[64]{0} negate(%gradient)\n  ROOT %on = (f32[64]{0}) tuple(%end)\n}\n" +
           less("o_less", "(f32[64]{0})") +
           "ENTRY %main () -> f32[] {\n  %first = f32[64]{0} parameter(0)\n"
           "  %own = f32[64]{0} copy(%first)\n  %ot = (f32[64]{0}) tuple(%own)\n"
           "  ROOT %many = (f32[64]{0}) while(%ot), condition=%o_less, body=%outer, "
           "backend_config={\"known_trip_count\":{\"n\":\"" +
           std::to_string(outer_trips) + "\"}}\n}\n";
  }
};

/// A program with its memory and the residuals found in it.
struct Scanned {
  Program program;
  MemoryAssignment memory;
  ResidualTable table;

  /// The instruction at a position of the flattened schedule.
  std::string at(LogicalTime position) const {
    return std::string(
        program[memory.schedule.order[static_cast<std::size_t>(position.value())]].name);
  }
};

inline Scanned scan(Program program, const NameList& names = {}) {
  MemoryAssignment memory = assign_memory(program, toy_schedule(program));
  ResidualTable table = find_residuals(program, memory, names);
  return {std::move(program), std::move(memory), std::move(table)};
}
inline Scanned scan(const ToyScan& toy, const NameList& names = {}) {
  return scan(toy_program(toy.text()), names);
}

}  // namespace spillway::testing
