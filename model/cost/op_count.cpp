#include "model/cost/op_count.h"

#include <algorithm>
#include <cmath>

#include "model/cost/library_call.h"
#include "model/cost/matrix_product.h"
#include "model/cost/operand_shape.h"
#include "model/cost/window.h"

namespace spillway {
namespace {

bool is_transcendental(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAtan2:
    case Opcode::kCbrt:
    case Opcode::kCos:
    case Opcode::kErf:
    case Opcode::kExp:
    case Opcode::kExpm1:
    case Opcode::kLog:
    case Opcode::kLog1p:
    case Opcode::kLogistic:
    case Opcode::kPower:
    case Opcode::kRsqrt:
    case Opcode::kSin:
    case Opcode::kSqrt:
    case Opcode::kTan:
    case Opcode::kTanh:
      return true;
    default:
      return false;
  }
}

double elements(Shape shape) {
  return static_cast<double>((shape.is_tuple() ? shape.element(0) : shape).elements());
}

double elements_of_all(Shape shape) {
  double sum = 0;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    if (shape.at(node).is_array()) sum += static_cast<double>(shape.at(node).elements());
  return sum;
}

OpCount vector_ops(double count) { return {.vector_flops = Flops(count)}; }
OpCount transcendental_ops(double count) { return {.transcendentals = Flops(count)}; }

OpCount times(OpCount count, double factor) {
  count.vector_flops = count.vector_flops * factor;
  count.transcendentals = count.transcendentals * factor;
  return count;
}

/// How often a reduce-window applies its function. XLA recognises a window that spans a whole
/// dimension from every place, which is a reduction whose result is broadcast.
double window_reductions(const Computation& computation, InstructionIndex i) {
  const Shape shape = computation[i].shape;
  const auto window = parse_window(computation.attribute(i, "window").value_or(""));
  double positions = 1;
  for (const WindowDimension& d : window) positions *= static_cast<double>(d.size);
  const auto is_wide = [](const WindowDimension& d) { return d.size != 1; };
  const auto is_padded = [](const WindowDimension& d) { return d.pad_low != 0 || d.pad_high != 0; };
  const bool single =
      std::ranges::count_if(window, is_wide) == 1 && std::ranges::count_if(window, is_padded) == 1;
  if (single && shape.is_array()) {
    const auto d = std::ranges::find_if(window, is_wide);
    const std::int64_t span = shape.dims()[static_cast<std::size_t>(d - window.begin())];
    if (d->pad_low == d->pad_high && d->size == 2 * d->pad_low + 1 && d->pad_low == span - 1) {
      const auto extent = static_cast<double>(span);
      return elements(shape) / extent + extent - 1;
    }
  }
  return (positions - 1) * elements(shape);
}

/// What a function that is applied to scalars costs, `count` times.
OpCount applied(const Program& program, const Computation& computation, InstructionIndex i,
                double count) {
  return times(count_ops(program, called_by(computation, i)), count);
}

OpCount select_and_scatter(const Program& program, const Computation& computation,
                           InstructionIndex i) {
  const double sources = elements(operand_shape(computation, i, 1));
  double positions = 1;
  for (const WindowDimension& d : parse_window(computation.attribute(i, "window").value_or("")))
    positions *= static_cast<double>(d.size);
  OpCount count =
      times(count_ops(program, called_by(computation, i, 0)), sources * (positions - 1));
  count += times(count_ops(program, called_by(computation, i, 1)), sources);
  return count;
}

/// XLA looks no further into a custom fusion that gathers or scatters.
OpCount count_fusion(const Program& program, const Computation& computation, InstructionIndex i) {
  const ComputationId fused = called_by(computation, i);
  if (has_attribute(computation, i, "kind", "kCustom")) {
    for (const InstructionIndex inner : program[fused].instructions()) {
      const Opcode opcode = program[fused][inner].opcode;
      if (opcode == Opcode::kGather || opcode == Opcode::kScatter)
        return count_ops(program, InstructionId{fused, inner});
    }
  }
  return count_ops(program, fused);
}

double fft_ops(const Computation& computation, InstructionIndex i) {
  double factors = 1;
  for (const std::int64_t n : parse_integers(computation.attribute(i, "fft_length").value_or("")))
    factors *= std::floor(std::log2(static_cast<double>(std::max<std::int64_t>(n, 1))));
  constexpr double kFlopsOfComplexProduct = 8;
  return kFlopsOfComplexProduct * factors * elements(operand_shape(computation, i, 0));
}

}  // namespace

OpCount& OpCount::operator+=(const OpCount& other) {
  vector_flops += other.vector_flops;
  dot_flops += other.dot_flops;
  library_flops += other.library_flops;
  transcendentals += other.transcendentals;
  attention_flops += other.attention_flops;
  unmasked_attention_flops += other.unmasked_attention_flops;
  if (other.largest_product > largest_product) {
    largest_product = other.largest_product;
    matrix_type = other.matrix_type;
    depth = other.depth;
  }
  return *this;
}

OpCount count_ops(const Program& program, ComputationId id) {
  OpCount sum;
  for (const InstructionIndex i : program[id].instructions())
    sum += count_ops(program, InstructionId{id, i});
  return sum;
}

OpCount count_ops(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const InstructionIndex i = id.instruction;
  const Instruction& in = computation[i];
  const auto operand_elements = [&](std::size_t k) {
    return elements(operand_shape(computation, i, k));
  };
  switch (in.opcode) {
    case Opcode::kFusion:
      return count_fusion(program, computation, i);
    case Opcode::kCustomCall:
      return count_library_call(computation, i);
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
    case Opcode::kConvolution:
      return count_matrix_product(computation, i);
    case Opcode::kMap:
      return applied(program, computation, i, elements(in.shape));
    case Opcode::kReduce:
      return applied(program, computation, i, operand_elements(0) - elements(in.shape));
    case Opcode::kReduceWindow:
      return applied(program, computation, i, window_reductions(computation, i));
    case Opcode::kScatter:
      return applied(program, computation, i, operand_elements(in.operand_count / 2 + 1));
    case Opcode::kSelectAndScatter:
      return select_and_scatter(program, computation, i);
    case Opcode::kSort: {
      const double n = operand_elements(0);
      return vector_ops(n * std::ceil(std::log2(std::max(n, 1.0))));
    }
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return vector_ops(elements_of_all(in.shape));
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
      return transcendental_ops(elements_of_all(in.shape));
    case Opcode::kFft:
      return vector_ops(fft_ops(computation, i));
    case Opcode::kCholesky:
      return vector_ops(elements(in.shape) * static_cast<double>(in.shape.dims().back()) / 3);
    case Opcode::kTriangularSolve:
      return vector_ops(2 * operand_elements(1) *
                        static_cast<double>(operand_shape(computation, i, 0).dims().back()));
    default:
      break;
  }
  if (!is_elementwise(in.opcode) || in.opcode == Opcode::kCopy) return {};
  return is_transcendental(in.opcode) ? transcendental_ops(elements(in.shape))
                                      : vector_ops(elements(in.shape));
}

}  // namespace spillway
