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

/// Every such pair of one instruction, by XLA's rules (AliasInfo::GetInPlaceInputOutputPairs).
std::vector<InPlacePair> in_place_pairs(const Program& program, InstructionId id);

}  // namespace spillway
