// Which results must share the buffer of an operand: in-place updates, scatters, all-reduce starts,
// custom calls that say so, and fusions that end in one of these.
#pragma once

#include <vector>

#include "model/program/program.h"

namespace spillway {

/// The result at node `output` of an instruction lives in the buffer of operand `operand_number`
/// at node `operand_node` (relative to the operand).
struct InPlacePair {
  std::uint32_t operand_number = 0;
  ShapeNodeIndex operand_node = 0;
  ShapeNodeIndex output = 0;
};

/// In-place pairs by XLA's rules (AliasInfo::GetInPlaceInputOutputPairs). What fusions do is looked
/// up once, when this is made.
class InPlacePairs {
 public:
  /// The program must outlive it.
  explicit InPlacePairs(const Program& program);

  /// Every pair of one instruction.
  std::vector<InPlacePair> of(InstructionId id) const;
  /// Every pair that the body of a fusion makes, by the fusion's operands and outputs.
  const std::vector<InPlacePair>& of_fused(ComputationId body) const { return fused_[body]; }

 private:
  const Program& program_;
  /// Of a fusion that calls the computation; empty for computations that no fusion calls.
  IdVector<ComputationId, std::vector<InPlacePair>> fused_;
};

}  // namespace spillway
