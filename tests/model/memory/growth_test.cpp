// Time must not grow faster than the program. No clock tells that on every machine, so what was
// looked at is counted.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::toy_program;
using testing::toy_schedule;

/// When the weights are updated.
enum class Update {
  kAtOnce,    ///< each where its gradient is there
  kAtTheEnd,  ///< behind the backward pass, until when every gradient waits
};

/// An unrolled step whose activations nest, with a donated weight, its gradient and its update in
/// each layer; every fourth activation goes to the host and comes back.
class UnrolledStep {
 public:
  UnrolledStep(int layers, Update when) : update_(when) {
    for (int k = 0; k < layers; ++k) forward(k);
    for (int k = layers; k-- > 0;) backward(k);
    for (int k = 0; k < layers; ++k) {
      const std::string n = std::to_string(k);
      if (update_ == Update::kAtTheEnd) update(n);
      results_ += (k > 0 ? ", " : "") + kArray;
      updated_ += (k > 0 ? ", %w2." : "%w2.") + n;
      const std::string parameter = std::to_string(k + 1);
      aliases_ += (k > 0 ? ", {" : "{") + n + "}: (" + parameter + ", {}, may-alias)";
    }
  }

  MemoryAssignment assign() const {
    const Program program = toy_program("ENTRY %main {\n" + parameters_ + lines_ + "  ROOT %r = (" +
                                            results_ + ") tuple(" + updated_ + ")\n}\n",
                                        ", input_output_alias={ " + aliases_ + " }");
    return assign_memory(program, toy_schedule(program));
  }

 private:
  void update(const std::string& n) { line("w2." + n, "subtract(%w." + n + ", %gw." + n + ")"); }
  void line(const std::string& name, const std::string& what) {
    lines_ += "  %" + name + " = " + kArray + " " + what + "\n";
  }
  static std::string input(int k) { return k == 0 ? "p" : "x." + std::to_string(k - 1); }

  void forward(int k) {
    const std::string n = std::to_string(k);
    parameters_ += "  %w." + n + " = " + kArray + " parameter(" + std::to_string(k + 1) + ")\n";
    line("act." + n, "dot(%" + input(k) + ", %w." + n + ")" + kContracting);
    line("x." + n, "tanh(%act." + n + ")");
    if (k % 4 != 0) return;
    lines_ += "  %out." + n + " = (" + kHost + ", " + kArray + ", u32[]) copy-start(%act." + n +
              ")\n  %outd." + n + " = " + kHost + " copy-done(%out." + n + ")\n";
  }
  void backward(int k) {
    const std::string n = std::to_string(k);
    std::string act = "act." + n;
    if (k % 4 == 0) {
      lines_ +=
          "  %in." + n + " = (" + kArray + ", " + kHost + ", u32[]) copy-start(%outd." + n + ")\n";
      line("ind." + n, "copy-done(%in." + n + ")");
      act = "ind." + n;
    }
    line("m." + n, "multiply(%" + act + ", %" + gradient_ + ")");
    line("gw." + n, "dot(%" + input(k) + ", %m." + n + ")" + kContracting);
    line("g." + n, "dot(%m." + n + ", %w." + n + ")" + kContracting);
    gradient_ = "g." + n;
    if (update_ == Update::kAtOnce) update(n);
  }

  const Update update_;

  const std::string kArray = "f32[16,16]{1,0}";
  const std::string kHost = "f32[16,16]{1,0:S(5)}";
  const std::string kContracting = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  std::string parameters_ = "  %p = f32[16,16]{1,0} parameter(0)\n";
  std::string lines_, results_, updated_, aliases_;
  std::string gradient_ = "p";
};

TEST_CASE("eight times the layers take about eight times the effort") {
  struct Row {
    std::string name;
    std::int64_t small, large;
  };
  const auto effort = [](int layers, Update when) {
    return UnrolledStep(layers, when).assign().effort;
  };
  const auto small = effort(64, Update::kAtTheEnd);
  const auto large = effort(512, Update::kAtTheEnd);
  const Row rows[] = {
      {"allocations tried", small.allocations, large.allocations},
      {"residents compared", small.residents, large.residents},
      // Where gradients of all layers wait, gaps between them stay open, and grow with the layers.
      {"ranges of the heap", effort(64, Update::kAtOnce).heap_ranges,
       effort(512, Update::kAtOnce).heap_ranges},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.small);
    CAPTURE(row.large);
    CHECK(row.small > 0);
    // Eight times, and what logarithms add: a tree of eight times the times is three levels higher.
    CHECK(row.large <= 12 * row.small);
  }
}

}  // namespace
}  // namespace spillway
