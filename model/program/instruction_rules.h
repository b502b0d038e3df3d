// Rules that an instruction must keep, by opcode; see validate.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace spillway::internal {

/// What there is to check of an opcode.
struct OpcodeRules {
  static constexpr std::uint8_t kAny = 255;
  std::uint8_t least_operands = 0;
  std::uint8_t most_operands = kAny;
  bool elementwise = false;  ///< broken_shape_rule has nothing to say when all shapes are the same
  bool shapes = false;       ///< broken_shape_rule must look
  bool calls = false;        ///< broken_call_rule must look
};
const OpcodeRules& rules_of(Opcode opcode);

/// Shapes that computations take and return, side by side in memory: callers are checked against
/// them, and would otherwise fetch every callee from far away.
class Signatures {
 public:
  explicit Signatures(const Program& program)
      : program_(program), entries_(program.computations.size()) {}

  /// Valid until the next question.
  std::span<const Shape> parameters(ComputationId id) {
    const Entry& entry = known(id);
    return std::span(shapes_).subspan(entry.first, entry.parameters);
  }
  Shape result(ComputationId id) { return known(id).result; }

 private:
  struct Entry {
    Shape result;
    std::uint32_t first = 0, parameters = 0;
  };
  const Entry& known(ComputationId id) {
    Entry& entry = entries_[id];
    if (!entry.result.valid()) [[unlikely]]
      look_up(id, entry);
    return entry;
  }
  void look_up(ComputationId id, Entry& entry);

  const Program& program_;
  IdVector<ComputationId, Entry> entries_;
  std::vector<Shape> shapes_;
};

/// What an instruction breaks, as the end of a sentence that its name begins; empty when nothing.
/// Shape and call rules may be asked once the rule on operands holds.
std::string broken_operand_rule(const Computation& computation, InstructionIndex i);
std::string broken_shape_rule(const Computation& computation, InstructionIndex i);
std::string broken_call_rule(const Program& program, InstructionId id, Signatures& signatures);

/// The first rule that is broken; a later one may rely on those before it, and is only then asked.
inline std::string first_of(std::string broken) { return broken; }
template <typename Rule, typename... Rules>
std::string first_of(std::string broken, Rule next, Rules... others) {
  if (!broken.empty()) return broken;
  return first_of(next(), others...);
}

/// A shape as messages show it: the first part of a long one.
std::string brief(Shape shape);
/// Where two shapes differ, as " at {3}: f32[2] and f32[3]"; for whole shapes ": f32[2] and
/// f32[3]".
std::string difference(Shape a, Shape b);

}  // namespace spillway::internal
