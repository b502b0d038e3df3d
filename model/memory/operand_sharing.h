// When the result of an instruction may be written over one of its operands that dies there.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// Whether result node `output` of `user` may use the buffer of its operand `operand_number`, at
/// `operand_node` relative to that operand. The rules are XLA's for NVIDIA GPUs: in-place pairs;
/// for fusions, that every element is read before it is overwritten, in the same order; elementwise
/// operations; all-reduce; the bias of a cuBLASLt matmul. Copies never share, which callers check.
bool can_share_operand_buffer(const Program& program, InstructionId user,
                              std::uint32_t operand_number, ShapeNodeIndex operand_node,
                              ShapeNodeIndex output);

}  // namespace spillway
