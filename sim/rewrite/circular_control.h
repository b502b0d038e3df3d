// Control dependencies of XLA's schedule that a rewrite turned round.
#pragma once

#include "model/program/program.h"

namespace spillway {

/// A computation without its control dependencies on what stands later in the text, where a rewrite
/// had to move an instruction up: what is computed anew reads a gather that XLA had told to wait
/// for what now reads that. Text and values stay; programs without such a dependency are returned
/// as they are.
Program without_circular_control(const Program& program, ComputationId id);

}  // namespace spillway
