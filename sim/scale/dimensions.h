// Every dimension of every array of a program as an unknown, and which of them must be the same
// number whatever the batch: an elementwise operation has the dimensions of its operands, a loop
// carries what it is given, a product is contracted over one size.
//
//   %x = bf16[2,8192,4096]     dimensions 0 1 2
//   %y = bf16[16384,4096]      dimensions 3 4
//   %y = bitcast(%x)           0 x 1 goes with 3 (a product), 2 and 4 are the same
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/program.h"

namespace spillway {

using DimensionId = Id<struct DimensionTag>;

/// Numbers the dimensions of a program, in the order of computations, instructions, elements of
/// their shapes; joins those that are one size.
class Dimensions {
 public:
  explicit Dimensions(const Program& program);

  /// Dimension `k` of the array at `node` of an instruction's shape.
  DimensionId at(InstructionId id, ShapeNodeIndex node, std::size_t k) const {
    return DimensionId(first_[first_node_[id.computation][id.instruction.index] + node] + k);
  }
  std::size_t size() const { return sizes_.size(); }
  /// How large it is in the program.
  std::int64_t size_of(DimensionId d) const { return sizes_[d]; }

  /// The one that stands for all that are joined with it.
  DimensionId representative(DimensionId d) const;
  /// Two dimensions are one size. Different ones in the program are not joined: no rule of HLO
  /// allows that, and whoever made the program so has done what we cannot follow.
  void join(DimensionId a, DimensionId b);

 private:
  IdVector<ComputationId, std::vector<std::uint32_t>>
      first_node_;                    ///< of an instruction, in first_
  std::vector<std::uint32_t> first_;  ///< of an array of an instruction's shape: its dimension 0
  IdVector<DimensionId, std::int64_t> sizes_;
  mutable IdVector<DimensionId, DimensionId> parent_;
};

/// The product of `left` goes with the product of `right`: their ratio stays what it is.
struct ProductRule {
  std::vector<DimensionId> left, right;
};
/// `whole` less the sum of `parts` stays what it is.
struct SumRule {
  DimensionId whole;
  std::vector<DimensionId> parts;
};
/// `part` is a part of `whole`, and stays where that does.
struct PartRule {
  DimensionId whole, part;
  InstructionId at;  ///< whose rule it is
};

/// What the instructions of a program say about its dimensions.
struct DimensionRules {
  Dimensions dimensions;
  std::vector<ProductRule> products;
  std::vector<SumRule> sums;
  std::vector<PartRule> parts;
};

/// Reads them off every instruction. Of operations without a rule (calls of libraries,
/// convolutions) nothing is said.
DimensionRules find_dimension_rules(const Program& program);

}  // namespace spillway
