#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/program/instruction_rules.h"

namespace spillway::internal {
namespace {

bool same_dims(Shape a, Shape b) { return std::ranges::equal(a.dims(), b.dims()); }

bool fits_into(Shape part, Shape whole) {
  return std::ranges::equal(part.dims(), whole.dims(), std::ranges::less_equal{});
}

/// One instruction and its operands.
class ShapeRules {
 public:
  ShapeRules(const Computation& computation, InstructionIndex i)
      : computation_(computation), i_(i), in_(computation[i]), operands_(computation.operands(i)) {}

  std::string broken() const {
    if (is_elementwise(in_.opcode)) return elementwise();
    switch (in_.opcode) {
      case Opcode::kBitcast:
      case Opcode::kReshape:
      case Opcode::kTranspose:
      case Opcode::kBroadcast:
      case Opcode::kReverse:
      case Opcode::kPad:
      case Opcode::kGather:
      case Opcode::kConcatenate:
      case Opcode::kFft:
      case Opcode::kIota:
      case Opcode::kDot:
      case Opcode::kScaledDot:
        return only_arrays();
      case Opcode::kRaggedDot:
        return only_arrays_of_rank(1);
      case Opcode::kCholesky:
        return first_of(only_arrays_of_rank(2),
                        [this] { return same_as_operand(in_.shape, operand(0)); });
      case Opcode::kTriangularSolve:
        return first_of(only_arrays_of_rank(2),
                        [this] { return same_as_operand(in_.shape, operand(1)); });
      case Opcode::kConvolution:
        return first_of(only_arrays_of_rank(2), [this] { return counts_and_steps(); });
      case Opcode::kDynamicSlice:
        return dynamic_slice(operand(0), in_.shape, 1);
      case Opcode::kSlice:
        return part_of(operand(0), in_.shape);
      case Opcode::kDynamicUpdateSlice:
        return dynamic_update_slice();
      case Opcode::kAddDependency:
      case Opcode::kDomain:
      case Opcode::kOptimizationBarrier:
      case Opcode::kAllReduceDone:
      case Opcode::kAsyncUpdate:
        return same_as_operand(in_.shape, operand(0));
      case Opcode::kTuple:
        return tuple();
      case Opcode::kReduce:
        return reduction();
      case Opcode::kReduceWindow:
        return first_of(reduction(), [this] { return window(); });
      case Opcode::kSelectAndScatter:
        return first_of(only_arrays(), [this] { return window(); });
      case Opcode::kScatter:
        return scatter();
      case Opcode::kSort:
      case Opcode::kAllReduce:
      case Opcode::kAllReduceStart:
      case Opcode::kCollectiveBroadcast:
        return first_of(operands_are_arrays(), [this] { return shapes_of_operands(); });
      case Opcode::kAllGather:
      case Opcode::kReduceScatter:
        return concatenating_collective();
      case Opcode::kCopyStart:
        return copy_start();
      case Opcode::kCopyDone:
        return element_of_operand(0, 2);
      case Opcode::kAllGatherStart:
      case Opcode::kAllToAllStart:
      case Opcode::kCollectivePermuteStart:
      case Opcode::kReduceScatterStart:
        return async_start();
      case Opcode::kAllGatherDone:
      case Opcode::kAllToAllDone:
      case Opcode::kAsyncDone:
      case Opcode::kCollectivePermuteDone:
      case Opcode::kReduceScatterDone:
        return element_of_operand(1, 2);
      case Opcode::kSend:
        if (in_.shape.tuple_size() < 1) return "has the shape (operand, …)";
        return same_as_operand(in_.shape.element(0), operand(0));
      case Opcode::kRecvDone:
        return recv_done();
      case Opcode::kCustomCall:
        return library_call();
      default:
        return {};
    }
  }

 private:
  Shape operand(std::size_t k) const { return computation_.shape_of(operands_[k]); }
  std::string_view attribute(std::string_view name) const {
    return computation_.attribute(i_, name).value_or("");
  }

  std::string only_arrays() const { return only_arrays_of_rank(0); }

  std::string only_arrays_of_rank(std::size_t rank) const {
    if (!in_.shape.is_array()) return fmt::format("makes an array, not {}", brief(in_.shape));
    return operands_are_arrays(rank);
  }

  std::string operands_are_arrays(std::size_t rank = 0) const {
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (!operand(k).is_array() || operand(k).dims().size() < rank)
        return fmt::format("needs arrays{} as operands, and operand {} is {}",
                           rank > 0 ? fmt::format(" of {} dimension(s) or more", rank) : "", k,
                           brief(operand(k)));
    return {};
  }

  std::string same_as_operand(Shape result, Shape of) const {
    if (compatible(result, of)) return {};
    return "and its operand must have the same shape; they differ" + difference(result, of);
  }

  /// Operands have the dimensions of the result; scalars may stand for what is selected or clamped
  /// by.
  std::string elementwise() const {
    if (in_.opcode == Opcode::kCopy) return same_as_operand(in_.shape, operand(0));
    if (!in_.shape.is_array() || !operand(0).is_array()) return only_arrays();
    if (in_.opcode == Opcode::kBitcastConvert) return {};
    const bool scalars = in_.opcode == Opcode::kSelect || in_.opcode == Opcode::kClamp;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const Shape shape = operand(k);
      if (!shape.is_array()) return only_arrays();
      if (same_dims(shape, in_.shape) || (scalars && shape.dims().empty())) continue;
      return fmt::format("works element by element, but makes {} and operand {} is {}",
                         brief(in_.shape), k, brief(shape));
    }
    return {};
  }

  std::string part_of(Shape whole, Shape part) const {
    if (!whole.is_array() || !part.is_array()) return only_arrays();
    if (fits_into(part, whole)) return {};
    return fmt::format("takes a part, but {} is no part of {}", brief(part), brief(whole));
  }

  /// Starts are one scalar a dimension, or one vector.
  std::string dynamic_slice(Shape whole, Shape part, std::size_t first_start) const {
    if (std::string broken = part_of(whole, part); !broken.empty()) return broken;
    const std::size_t starts = operands_.size() - first_start;
    if (starts == whole.dims().size() || starts == 1) return {};
    return fmt::format("needs a start for each dimension of {}, and has {}", brief(whole), starts);
  }

  std::string dynamic_update_slice() const {
    if (std::string broken = same_as_operand(in_.shape, operand(0)); !broken.empty()) return broken;
    return dynamic_slice(operand(0), operand(1), 2);
  }

  std::string tuple() const {
    if (in_.shape.is_tuple() && in_.shape.tuple_size() == operands_.size())
      return elements_are_operands(in_.shape);
    return fmt::format("groups {} operand(s), but its shape is {}", operands_.size(),
                       brief(in_.shape));
  }

  /// One operand: its shape; several: the tuple of theirs.
  std::string shapes_of_operands() const {
    if (operands_.size() == 1 && compatible(in_.shape, operand(0))) return {};
    return elements_are_operands(in_.shape);
  }

  std::string elements_are_operands(Shape shape) const {
    if (shape.tuple_size() != operands_.size())
      return fmt::format("has {} operand(s), but the shape {}", operands_.size(), brief(shape));
    ShapeNodeIndex node = 1;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const Shape element = shape.at(node);
      if (!compatible(element, operand(k)))
        return fmt::format("and its operand {} must have the same shape; element {} differs{}", k,
                           k, difference(element, operand(k)));
      node += element.node_count();
    }
    return {};
  }

  /// Arrays, then a start value for each.
  std::string reduction() const {
    if (operands_.size() % 2 == 0) return one_or_many(in_.operand_count / 2);
    return fmt::format("needs a start value for each array, and has {} operands", operands_.size());
  }

  /// Arrays, indices, then an update for each array.
  std::string scatter() const {
    if (operands_.size() % 2 != 0) return one_or_many((in_.operand_count - 1) / 2);
    return fmt::format("needs an update for each array, and has {} operands", operands_.size());
  }

  /// An array for one input, a tuple of arrays for several.
  std::string one_or_many(std::uint32_t inputs) const {
    const bool fits = inputs == 1 && in_.shape.is_array();
    const bool flat = in_.shape.is_flat_tuple() && in_.shape.tuple_size() == inputs;
    if (!fits && !flat)
      return fmt::format("makes {} array(s), but its shape is {}", inputs, brief(in_.shape));
    return operands_are_arrays();
  }

  std::string concatenating_collective() const {
    const auto dims = parse_integers(attribute("dimensions"));
    const auto rank = static_cast<std::int64_t>(operand(0).dims().size());
    if (dims.size() == 1 && dims[0] >= 0 && dims[0] < rank) return {};
    return fmt::format("needs dimensions={{…}} with one dimension of {}", brief(operand(0)));
  }

  /// (destination, source, context)
  std::string copy_start() const {
    if (in_.shape.tuple_size() < 2) return "has the shape (destination, source, context)";
    for (std::uint32_t k = 0; k < 2; ++k)
      if (std::string broken = same_as_operand(in_.shape.element(k), operand(0)); !broken.empty())
        return broken;
    return {};
  }

  /// (operand, result, …), or tuples of operands and of results.
  std::string async_start() const {
    if (in_.shape.tuple_size() < 2) return "has the shape (operands, results, …)";
    const Shape inputs = in_.shape.element(0);
    if (inputs.is_tuple()) return elements_are_operands(inputs);
    return operands_are_arrays();
  }

  /// The result is one element of what the start made.
  std::string element_of_operand(std::uint32_t element, std::uint32_t least) const {
    const Shape start = operand(0);
    if (start.tuple_size() < least)
      return fmt::format("ends what a start began, but its operand is {}", brief(start));
    if (compatible(in_.shape, start.element(element))) return {};
    return fmt::format("makes element {} of what its start holds; they differ{}", element,
                       difference(in_.shape, start.element(element)));
  }

  std::string recv_done() const {
    if (in_.shape.tuple_size() < 1 || operand(0).tuple_size() < 1)
      return "has the shape (received, token)";
    return same_as_operand(in_.shape.element(0), operand(0).element(0));
  }

  /// One of the lists of window={size=1x3 stride=2x2}.
  std::vector<std::int64_t> window_field(std::string_view key) const {
    const std::string_view text = attribute("window");
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    return parse_integers(text.substr(at, text.find_first_of(" }", at) - at));
  }

  /// The window, the operand it moves over and an array it makes have equally many dimensions.
  std::string window() const {
    const std::size_t rank = operand(0).dims().size();
    if (const std::size_t found = window_field("size=").size(); found != rank)
      return fmt::format("needs a window of {} dimension(s), and has one of {}", rank, found);
    if (in_.shape.is_array() && in_.shape.dims().size() != rank)
      return fmt::format("moves a window over {}, but makes {}", brief(operand(0)),
                         brief(in_.shape));
    return {};
  }

  bool positive(std::string_view name) const {
    const auto numbers = parse_integers(attribute(name));
    return numbers.empty() || numbers[0] > 0;
  }

  /// What convolutions divide by.
  std::string counts_and_steps() const {
    if (!positive("feature_group_count") || !positive("batch_group_count"))
      return "needs group counts above 0";
    for (const std::string_view key : {"stride=", "lhs_dilate=", "rhs_dilate="})
      for (const std::int64_t value : window_field(key))
        if (value < 1) return fmt::format("needs a window with {} above 0", key);
    return {};
  }

  /// Matrix products and convolutions of NVIDIA's libraries are looked into.
  std::string library_call() const {
    const std::string_view target = attribute("custom_call_target");
    if (!target.starts_with("\"__cublas") && !target.starts_with("\"__cudnn")) return {};
    if (operands_.size() < 2)
      return fmt::format("calls {} with {} operand(s), not 2 or more", target, operands_.size());
    if (in_.shape.is_tuple() && in_.shape.tuple_size() == 0) return "makes nothing";
    return counts_and_steps();
  }

  const Computation& computation_;
  InstructionIndex i_;
  const Instruction& in_;
  std::span<const Operand> operands_;
};

}  // namespace

std::string broken_shape_rule(const Computation& computation, InstructionIndex i) {
  return ShapeRules(computation, i).broken();
}

std::string brief(Shape shape) {
  constexpr std::size_t kLongest = 100;
  std::string text = to_string(shape);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

std::string difference(Shape a, Shape b) {
  const ShapeNodeIndex nodes = std::min(a.node_count(), b.node_count());
  for (ShapeNodeIndex i = 0; i < nodes; ++i) {
    const Shape x = a.at(i);
    const Shape y = b.at(i);
    const bool same = x.type() == y.type() && x.tuple_size() == y.tuple_size() && same_dims(x, y);
    if (same) continue;
    const std::string where = i > 0 ? " at " + path_to_string(a, i) : "";
    return fmt::format("{}: {} and {}", where, brief(x), brief(y));
  }
  return "";
}

}  // namespace spillway::internal
