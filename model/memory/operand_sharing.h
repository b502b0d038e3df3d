// When the result of an instruction may be written over one of its operands that dies there.
#pragma once

#include <map>

#include "model/memory/fusion_hero.h"
#include "model/memory/in_place.h"

namespace spillway {

/// XLA's rules for NVIDIA GPUs: in-place pairs; for fusions, that every element is read before it
/// is overwritten, in the same order; elementwise operations; all-reduce; the bias of a cuBLASLt
/// matmul. Copies never share.
class OperandSharing {
 public:
  /// Both must outlive it.
  OperandSharing(const Program& program, const InPlacePairs& in_place)
      : program_(program), in_place_(in_place) {}

  /// Whether result node `output` of `user` may use the buffer of its operand `operand_number`, at
  /// `operand_node` relative to that operand. Not for several threads: what is found about a fusion
  /// is remembered.
  bool may_share(InstructionId user, std::uint32_t operand_number, ShapeNodeIndex operand_node,
                 ShapeNodeIndex output);

 private:
  const FusionHeroes& heroes_of(InstructionId fusion);

  const Program& program_;
  const InPlacePairs& in_place_;
  std::map<InstructionId, FusionHeroes> heroes_;
};

}  // namespace spillway
