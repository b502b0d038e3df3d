#include "sim/rewrite/plain_product.h"

#include <utility>

namespace spillway {
namespace {

/// With a layout: the text of a fusion's inside has one after XLA's last passes.
bool is_matrix(Shape shape) {
  return shape.is_array() && shape.dims().size() == 2 && shape.minor_to_major().size() == 2;
}

/// Which of an operand's two dimensions is summed over; empty when that is not one of them.
std::optional<std::uint32_t> summed(const Computation& computation, InstructionIndex i,
                                    std::string_view attribute) {
  const auto dims = parse_integers(computation.attribute(i, attribute).value_or(""));
  if (dims.size() != 1 || dims[0] < 0 || dims[0] > 1) return std::nullopt;
  return static_cast<std::uint32_t>(dims[0]);
}

ProductSide side_of(const Computation& computation, Operand operand, std::uint32_t contracted) {
  const Shape shape = computation.shape_of(operand);
  const std::uint32_t free = 1 - contracted;
  return {operand, free, shape.dims()[free], shape.minor_to_major()[0] == contracted};
}

}  // namespace

std::optional<PlainProduct> plain_product(const Computation& computation, InstructionIndex i) {
  const auto operands = computation.operands(i);
  if (computation[i].opcode != Opcode::kDot || operands.size() != 2) return std::nullopt;
  if (!is_matrix(computation[i].shape) || !is_matrix(computation.shape_of(operands[0])) ||
      !is_matrix(computation.shape_of(operands[1])))
    return std::nullopt;
  const auto left = summed(computation, i, "lhs_contracting_dims");
  const auto right = summed(computation, i, "rhs_contracting_dims");
  if (!left || !right) return std::nullopt;
  PlainProduct product{side_of(computation, operands[0], *left),
                       side_of(computation, operands[1], *right),
                       computation.shape_of(operands[0]).dims()[*left]};
  if (computation[i].shape.minor_to_major()[0] == 0) std::swap(product.rows, product.columns);
  return product;
}

std::optional<ColumnRange> sliced_columns(const Computation& computation, InstructionIndex i) {
  const Shape from = computation.shape_of(computation.operands(i)[0]);
  const std::size_t rank = from.dims().size();
  // A stride other than one would be a third number.
  const auto limits = parse_integers(computation.attribute(i, "slice").value_or(""));
  if (rank == 0 || from.minor_to_major().size() != rank || limits.size() != 2 * rank)
    return std::nullopt;
  const auto contiguous = static_cast<std::size_t>(from.minor_to_major()[0]);
  for (std::size_t d = 0; d < rank; ++d)
    if (d != contiguous && (limits[2 * d] != 0 || limits[2 * d + 1] != from.dims()[d]))
      return std::nullopt;
  return ColumnRange{limits[2 * contiguous], limits[2 * contiguous + 1]};
}

}  // namespace spillway
