#include "model/memory/operand_sharing.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace spillway {
namespace {

bool is_effective_scalar(Shape shape) { return shape.elements() == 1; }

std::uint32_t count_operand(const Computation& computation, InstructionIndex user,
                            InstructionIndex operand) {
  std::uint32_t count = 0;
  for (const Operand& o : computation.operands(user)) count += o.instruction == operand ? 1 : 0;
  return count;
}

/// Whether `user` reads its operand element by element. A dynamic-update-slice does so with the
/// array it updates, not with the update or the indices.
bool is_elementwise_on_operand(const Computation& computation, InstructionIndex user,
                               std::uint32_t operand_number) {
  const Instruction& in = computation[user];
  if (in.opcode == Opcode::kDynamicUpdateSlice) return operand_number == 0;
  if (in.opcode == Opcode::kFusion) return false;
  if (!is_elementwise(in.opcode)) return false;
  // select and clamp may broadcast a scalar; that operand is not elementwise.
  const Shape operand = computation.shape_of(computation.operands(user)[operand_number]);
  return operand.is_array() && in.shape.is_array() &&
         std::ranges::equal(operand.dims(), in.shape.dims());
}

/// Walks a fusion from one parameter to one output, and decides whether writing the output may
/// overwrite the parameter.
class FusionWalk {
 public:
  FusionWalk(const Computation& inner, const FusionHeroes& heroes, std::uint32_t parameter,
             ShapeNodeIndex output)
      : inner_(inner),
        heroes_(heroes),
        output_node_(output),
        parameter_(inner_.parameters()[parameter]) {
    find_output();
  }

  bool may_overwrite() {
    std::vector<bool> seen(inner_.size(), false);
    std::vector<InstructionIndex> queue = {parameter_};
    seen[parameter_.index] = true;
    bool reaches_output = false;
    for (std::size_t k = 0; k < queue.size(); ++k) {
      const InstructionIndex at = queue[k];
      reaches_output |= at == output_;
      if (heroes_.reduction == at) continue;  // reductions are computed before other outputs
      for (const Use& use : inner_.uses(at)) {
        if (!seen[use.user.index]) {
          seen[use.user.index] = true;
          queue.push_back(use.user);
        }
        if (!step_is_safe(at, use)) return false;
      }
    }
    if (heroes_.roots.size() > 1 && other_root_conflicts(seen)) return false;
    return reaches_output;
  }

 private:
  void find_output() {
    output_ = inner_.root().instruction;
    const Instruction& root = inner_[output_];
    if (output_node_ > 0 && root.opcode == Opcode::kTuple)
      output_ = inner_.operands(output_)[root.shape.path(output_node_)[0]].instruction;
    source_ = output_;
    if (inner_[source_].opcode == Opcode::kBitcast)
      source_ = inner_.operands(source_)[0].instruction;
  }

  /// Whether the step from `at` to a user keeps the order in which elements are visited.
  bool step_is_safe(InstructionIndex at, const Use& use) const {
    const Instruction& user = inner_[use.user];
    const Opcode source_opcode = inner_[source_].opcode;
    if (use.user == source_ && user.opcode == Opcode::kScatter) {
      const std::uint32_t inputs = user.shape.is_tuple() ? user.shape.tuple_size() : 1;
      if (use.operand_number < inputs && count_operand(inner_, use.user, at) == 1) return true;
    }
    if (use.user == source_ && user.opcode == Opcode::kSort &&
        count_operand(inner_, use.user, at) == 1)
      return !user.shape.is_tuple() ? output_node_ == 0
                                    : output_node_ == user.shape.element_node(use.operand_number);
    if (source_opcode == Opcode::kDynamicUpdateSlice && user.opcode == Opcode::kDynamicSlice) {
      const auto updates = inner_.operands(source_);
      const auto slices = inner_.operands(use.user);
      const bool same_array =
          updates[0] == slices[0] && same_shape(user.shape, inner_.shape_of(updates[1]));
      if (same_array) return is_effective_scalar(user.shape) || same_start(slices, updates);
    }
    const bool keeps_order = (is_elementwise_on_operand(inner_, use.user, use.operand_number) &&
                              user.opcode != Opcode::kCopy) ||
                             user.opcode == Opcode::kBitcast || user.opcode == Opcode::kTuple ||
                             heroes_.reduction == use.user;
    if (keeps_order) return true;
    // The update of the final dynamic-update-slice: safe when the slice it came from was the same.
    return use.user == source_ && source_opcode == Opcode::kDynamicUpdateSlice &&
           use.operand_number == 1;
  }

  static bool same_start(std::span<const Operand> slice, std::span<const Operand> update) {
    for (std::size_t k = 1; k < slice.size(); ++k)
      if (k + 1 >= update.size() || slice[k] != update[k + 1]) return false;
    return true;
  }

  /// Another output that reads the parameter may do so in another order.
  bool other_root_conflicts(const std::vector<bool>& seen) const {
    bool other = false;
    bool transposes = false;
    for (const FusionRoot& root : heroes_.roots) {
      if (!seen[root.root.index]) continue;
      other |= root.root != output_;
      const Opcode hero = inner_[root.hero].opcode;
      transposes |= hero == Opcode::kTranspose || hero == Opcode::kCopy;
    }
    if (!other) return false;
    return !is_elementwise(inner_[source_].opcode) || transposes;
  }

  const Computation& inner_;
  const FusionHeroes& heroes_;
  ShapeNodeIndex output_node_;
  InstructionIndex parameter_;
  InstructionIndex output_;  ///< what makes the output
  InstructionIndex source_;  ///< the same, behind a final bitcast
};

bool same_buffer_size(Shape a, Shape b) {
  return a.is_array() && b.is_array() && a.elements() == b.elements() && a.bits() == b.bits();
}

/// The number behind a key in JSON text; 0 when there is none.
double number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = text.substr(at + key.size());
  while (rest.starts_with(' ') || rest.starts_with('"')) rest.remove_prefix(1);
  double number = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return number;
}

bool shares_in_custom_call(const Computation& computation, InstructionIndex user,
                           std::uint32_t operand_number, ShapeNodeIndex output) {
  const auto target = computation.attribute(user, "custom_call_target");
  if (!target || target->find("__cublas$lt$matmul\"") == std::string_view::npos) return false;
  // D = alpha * A * B + beta * C may overwrite C when beta is not zero.
  const bool uses_c =
      number_behind(computation.attribute(user, "backend_config").value_or(""), "\"beta\":") != 0;
  const auto operands = computation.operands(user);
  const Shape shape = computation[user].shape;
  return uses_c && operand_number == 2 && operands.size() > 2 &&
         count_operand(computation, user, operands[2].instruction) == 1 && shape.is_tuple() &&
         output == shape.element_node(0);
}

}  // namespace

const FusionHeroes& OperandSharing::heroes_of(InstructionId fusion) {
  const auto known = heroes_.find(fusion);
  if (known != heroes_.end()) return known->second;
  return heroes_.emplace(fusion, find_heroes(program_, fusion)).first->second;
}

bool OperandSharing::may_share(InstructionId user, std::uint32_t operand_number,
                               ShapeNodeIndex operand_node, ShapeNodeIndex output) {
  const Computation& computation = program_[user.computation];
  const Instruction& in = computation[user.instruction];
  const Operand operand = computation.operands(user.instruction)[operand_number];
  if (in.opcode == Opcode::kCopy || computation[operand.instruction].opcode == Opcode::kConstant)
    return false;
  const Shape from = computation.shape_of(operand).at(operand_node);
  const Shape to = in.shape.at(output);
  const bool same = same_shape(from, to);
  if (same)
    for (const InPlacePair& pair : in_place_.of(user))
      if (pair.operand_number == operand_number && pair.operand_node == operand_node &&
          pair.output == output)
        return true;
  switch (in.opcode) {
    case Opcode::kFusion:
      if (!same && !same_buffer_size(from, to)) return false;
      return FusionWalk(program_[computation.called(user.instruction)[0]], heroes_of(user),
                        operand_number, output)
          .may_overwrite();
    case Opcode::kAllReduce:
    case Opcode::kCollectiveBroadcast:
      return in.operand_count == 1 ||
             (in.shape.is_tuple() && output == in.shape.element_node(operand_number));
    case Opcode::kCustomCall:
      return shares_in_custom_call(computation, user.instruction, operand_number, output);
    default:
      break;
  }
  if (!same) return false;
  switch (in.opcode) {
    case Opcode::kWhile:
    case Opcode::kConditional:
      return true;
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kScatter:
    case Opcode::kSetDimensionSize:
    case Opcode::kTriangularSolve:
      return count_operand(computation, user.instruction, operand.instruction) == 1 &&
             operand_number == (in.opcode == Opcode::kTriangularSolve ? 1u : 0u);
    case Opcode::kSort:
      if (computation.uses(operand.instruction).size() != 1) return false;
      return in.operand_count == 1 || output == in.shape.element_node(operand_number);
    case Opcode::kCall:
      return false;
    default:
      return is_elementwise_on_operand(computation, user.instruction, operand_number);
  }
}

}  // namespace spillway
