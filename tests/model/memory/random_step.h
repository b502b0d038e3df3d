// Small random programs with everything that makes memory interesting: loops that carry and update
// stacks, copies to the host and back, fusions, in-place updates, donated parameters.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace spillway::testing {

class RandomStep {
 public:
  explicit RandomStep(std::uint32_t seed) : random_(seed) {}

  /// The module without its first line; `header` belongs behind the module's name.
  std::string text() {
    std::string entry = "ENTRY %main (";
    std::string parameters;
    for (int k = 0; k < 4; ++k) {
      entry += (k > 0 ? ", " : "") + ("a" + std::to_string(k)) + ": " + kArray;
      parameters += "  %a" + std::to_string(k) + " = " + kArray + "{1,0} parameter(" +
                    std::to_string(k) + ")\n";
    }
    entry += std::string(") -> (") + kArray + ", " + kArray + ") {\n" + parameters;
    std::vector<std::string> arrays = {"a0", "a1", "a2", "a3"};
    entry += "  %index = s32[] constant(1)\n";
    entry += lines(arrays, 0, 4 + below(12));
    // Results come last: what takes over a donated parameter may not be read around.
    const std::string last[] = {made(arrays, entry), made(arrays, entry)};
    const std::string results[] = {made({last[0]}, entry), made({last[1]}, entry)};
    entry += std::string("  ROOT %result = (") + kLayout + ", " + kLayout + ") tuple(%" +
             results[0] + ", %" + results[1] + ")\n}\n";
    return kFused + computations_ + entry;
  }
  std::string header() {
    std::string aliases;
    if (below(2) == 0) aliases += "{0}: (0, {}, may-alias)";
    if (below(2) == 0)
      aliases += (aliases.empty() ? "" : ", ") + std::string("{1}: (2, {}, may-alias)");
    return aliases.empty() ? "" : ", input_output_alias={ " + aliases + " }";
  }

 private:
  static constexpr const char* kArray = "f32[4,64]";
  static constexpr const char* kLayout = "f32[4,64]{1,0}";
  static constexpr const char* kFused = R"(
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %plus = f32[] add(%l, %r)
}
%elementwise (e0: f32[4,64], e1: f32[4,64]) -> f32[4,64] {
  %e0 = f32[4,64]{1,0} parameter(0)
  %e1 = f32[4,64]{1,0} parameter(1)
  ROOT %e = f32[4,64]{1,0} add(%e0, %e1)
}
%transposing (t0: f32[4,64], t1: f32[4,64]) -> f32[4,64] {
  %t0 = f32[4,64]{1,0} parameter(0)
  %t1 = f32[4,64]{1,0} parameter(1)
  %t2 = f32[64,4]{1,0} transpose(%t1), dimensions={1,0}
  %t3 = f32[4,64]{1,0} bitcast(%t2)
  ROOT %t = f32[4,64]{1,0} add(%t0, %t3)
}
%updating (u0: f32[4,64], u1: f32[4,64], u2: s32[]) -> f32[4,64] {
  %u0 = f32[4,64]{1,0} parameter(0)
  %u1 = f32[4,64]{1,0} parameter(1)
  %u2 = s32[] parameter(2)
  %u3 = f32[1,64]{1,0} slice(%u1), slice={[0:1], [0:64]}
  ROOT %u = f32[4,64]{1,0} dynamic-update-slice(%u0, %u3, %u2, %u2)
}
)";

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string fresh(const char* stem) { return stem + std::to_string(next_++); }
  const std::string& any(const std::vector<std::string>& arrays) {
    return arrays[static_cast<std::size_t>(below(static_cast<int>(arrays.size())))];
  }

  /// An array that is neither a parameter nor another name of one, made on the spot.
  std::string made(const std::vector<std::string>& arrays, std::string& out) {
    const std::string name = fresh("made");
    out += "  %" + name + " = " + kLayout + " negate(%" + any(arrays) + ")\n";
    return name;
  }

  std::string lines(std::vector<std::string>& arrays, int depth, int count) {
    std::string out;
    for (int k = 0; k < count; ++k) out += line(arrays, depth);
    return out;
  }

  /// One more instruction, or a few that belong together.
  std::string line(std::vector<std::string>& arrays, int depth) {
    const std::string name = fresh("x");
    const std::string a = any(arrays);
    const std::string b = any(arrays);
    const auto define = [&](const std::string& what) {
      arrays.push_back(name);
      return "  %" + name + " = " + kLayout + " " + what + "\n";
    };
    switch (below(depth < 2 ? 10 : 9)) {
      case 0:
        return define("negate(%" + a + ")");
      case 1:
        return define("fusion(%" + a + ", %" + b + "), kind=kLoop, calls=%elementwise");
      case 2:
        return define("fusion(%" + a + ", %" + b + "), kind=kLoop, calls=%transposing");
      case 3:
        return define("copy(%" + a + ")");
      case 4:
        return define("all-reduce(%" + a + "), to_apply=%sum");
      case 5: {  // to the host and back, with something in between
        std::string out = "  %" + name + "s = (f32[4,64]{1,0:S(5)}, " + kLayout +
                          ", u32[]) copy-start(%" + a + ")\n";
        if (below(2) == 0) out += line(arrays, depth);
        out += "  %" + name + "d = f32[4,64]{1,0:S(5)} copy-done(%" + name + "s)\n";
        out += "  %" + name + "t = (" + kLayout + ", f32[4,64]{1,0:S(5)}, u32[]) copy-start(%" +
               name + "d)\n";
        if (below(2) == 0) out += line(arrays, depth);
        return out + define("copy-done(%" + name + "t)");
      }
      case 6: {  // XLA copies what it updates, unless nobody else reads it
        std::string out;
        const std::string target = made(arrays, out);
        return out + define("fusion(%" + target + ", %" + b +
                            ", %index), kind=kLoop, "
                            "calls=%updating");
      }
      case 7: {
        std::string out = "  %" + name + "flat = f32[256]{0} bitcast(%" + a + ")\n  %" + name +
                          "wide = f32[256]{0} negate(%" + name + "flat)\n";
        return out + define("bitcast(%" + name + "wide)");
      }
      case 8:
        return define("all-to-all(%" + a + "), dimensions={0}");
      default:
        return loop(arrays, depth);
    }
  }

  /// A loop that hands one array through, changes one, and updates a stack in place.
  std::string loop(std::vector<std::string>& arrays, int depth) {
    const std::string n = fresh("");
    const std::string carry =
        std::string("(s32[], ") + kLayout + ", " + kLayout + ", " + kLayout + ")";
    std::vector<std::string> inner = {"kept" + n, "old" + n};
    std::string body = "  %p" + n + " = " + carry + " parameter(0)\n";
    const char* const names[] = {"i", "kept", "old", "stack"};
    for (int k = 0; k < 4; ++k)
      body += "  %" + (names[k] + n) + " = " + (k == 0 ? "s32[]" : kLayout) +
              " get-tuple-element(%p" + n + "), index=" + std::to_string(k) + "\n";
    body += "  %index = s32[] constant(1)\n";
    body += lines(inner, depth + 1, 1 + below(5));
    body += "  %upd" + n + " = " + kLayout + " fusion(%stack" + n + ", %" + any(inner) + ", %i" +
            n + "), kind=kLoop, calls=%updating\n";
    // Nobody reads the old ones behind these: XLA would copy them.
    body += "  %j" + n + " = s32[] add(%i" + n + ", %index)\n";
    const std::string changed = made(inner, body);
    body += "  ROOT %next" + n + " = " + carry + " tuple(%j" + n + ", %kept" + n + ", %" + changed +
            ", %upd" + n + ")\n";
    computations_ += "%body" + n + " (p: s32[]) -> s32[] {\n" + body + "}\n%condition" + n +
                     " (q: s32[]) -> pred[] {\n  %q" + n + " = " + carry +
                     " parameter(0)\n  ROOT %less" + n + " = pred[] constant(true)\n}\n";
    std::string out;
    const std::string from = made(arrays, out);
    const std::string stack = made(arrays, out);
    out += "  %zero" + n + " = s32[] constant(0)\n  %count" + n + " = s32[] copy(%zero" + n + ")\n";
    out += "  %start" + n + " = " + carry + " tuple(%count" + n + ", %" + any(arrays) + ", %" +
           from + ", %" + stack + ")\n";
    out += "  %loop" + n + " = " + carry + " while(%start" + n + "), condition=%condition" + n +
           ", body=%body" + n + ", backend_config={\"known_trip_count\":{\"n\":\"3\"}}\n";
    for (int k = 2; k < 4; ++k) {
      const std::string name = fresh("out");
      out += "  %" + name + " = " + kLayout + " get-tuple-element(%loop" + n +
             "), index=" + std::to_string(k) + "\n";
      arrays.push_back(name);
    }
    return out;
  }

  std::mt19937 random_;
  std::string computations_;
  int next_ = 0;
};

}  // namespace spillway::testing
