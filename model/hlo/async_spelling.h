// Async operations in XLA's two spellings: async-start(…), calls=%c, and the shorter
// slice-start(…), slice={[0:2]}, where what is called is one instruction that is not written out.
// Both are read as the first.
#pragma once

#include <memory>
#include <string_view>

#include "model/program/program.h"

namespace spillway::hlo {

/// The opcode of a name; kAsyncStart, kAsyncUpdate and kAsyncDone for the shorter spelling of
/// opcodes that have no start and done of their own.
Opcode read_opcode(std::string_view name);

/// What a start in the shorter spelling wraps: slice of slice-start; kUnknown for other names.
Opcode wrapped_opcode(std::string_view name);

/// The computation that `start`, the next instruction of `around`, calls without writing it out:
/// parameters and the wrapped instruction, with the attributes and calls of the start.
std::shared_ptr<const Computation> make_wrapped_computation(const Instruction& start,
                                                            const ComputationParts& around,
                                                            std::shared_ptr<const void> storage);

}  // namespace spillway::hlo
