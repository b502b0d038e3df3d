// Who calls whom, in the orders XLA visits computations and instructions.
#pragma once

#include <optional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// A computation that (indirectly) calls itself, if there is one.
std::optional<ComputationId> find_call_cycle(const Program& program);

/// Every computation after those it calls. Ties are broken as XLA does, so that value numbers agree
/// with its own.
std::vector<ComputationId> computation_post_order(const Program& program);

/// Every instruction after its operands and control predecessors: depth first from the instructions
/// nobody uses, first operand first, as XLA's MakeInstructionPostOrder does.
std::vector<InstructionIndex> instruction_post_order(const Computation& computation);

/// The body of a while.
ComputationId body_of(const Program& program, InstructionId loop);

/// Of every computation whether it runs inside a while, its condition or its body, however often
/// that runs: 1 or 0.
IdVector<ComputationId, std::uint8_t> inside_loops(const Program& program);

/// Call sites of every computation, in the order of the callers' text.
IdVector<ComputationId, std::vector<InstructionId>> callers(const Program& program);

/// How often a computation runs in one execution of the program: trip counts of the loops around it
/// multiplied, at most 2^63 - 1. Loops whose count XLA does not know count once and are listed.
struct Multiplicity {
  IdVector<ComputationId, std::int64_t> runs;  ///< 0: not reached from the entry
  std::vector<InstructionId> unknown_trip_counts;
};
/// Calls of every kind count, or only those of opcodes that `follows` accepts.
Multiplicity multiplicity(const Program& program, bool (*follows)(Opcode) = nullptr);

}  // namespace spillway
