// Operations on single elements as the threads of a kernel execute them. A fused loop keeps nothing
// in between: for each element of its result it computes anew what that element needs, so a small
// value that is broadcast is computed as often as it is read.
//
// Left out: index arithmetic, loads and stores; they are in the profile's factor `vector`.
#pragma once

#include "model/base/units.h"
#include "model/program/program.h"

namespace spillway {

/// How often elementwise operations and applications of reductions run, each counted as one:
///
///   mask   pred[4]    compare            8: once for each element it is broadcast to
///   wide   pred[2,4]  broadcast(mask)    0
///   ROOT   f32[2,4]   select(wide, ..)   8
///
/// What does not change along the fastest dimension in memory is computed once a run along it.
/// Several readers of a value read the same element. For instructions that are no fusion this is
/// XLA's count, vector_flops and transcendentals together.
Flops count_element_ops(const Program& program, InstructionId id);

}  // namespace spillway
