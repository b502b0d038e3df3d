// Products of two matrices, told by how their bytes lie rather than by how XLA has written them:
// dot(x, w) is dot(w, x) with its result turned, and XLA writes either.
#pragma once

#include <optional>

#include "model/program/program.h"

namespace spillway {

/// One of the two matrices.
struct ProductSide {
  Operand operand;
  std::uint32_t free = 0;  ///< its dimension that the result has too
  std::int64_t size = 0;   ///< of that dimension
  bool sums_rows = false;  ///< the dimension that is summed over is contiguous in memory
};

/// result[r, c] = sum over k of rows[r, k] columns[c, k], where c is contiguous in memory.
struct PlainProduct {
  ProductSide rows, columns;
  std::int64_t depth = 0;  ///< how many k
};

/// What a dot is; empty for anything that is not a product of two matrices.
std::optional<PlainProduct> plain_product(const Computation& computation, InstructionIndex i);

/// Where a slice takes a part of the dimension that is contiguous in memory, and all of the others.
struct ColumnRange {
  std::int64_t start = 0, limit = 0;
};
std::optional<ColumnRange> sliced_columns(const Computation& computation, InstructionIndex i);

}  // namespace spillway
