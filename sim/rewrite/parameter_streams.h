// Parameters that loops read layer by layer, and the stacks that collect their gradients: what a
// program with parameters in pinned host memory fetches and sends slice by slice.
//
//   entry           p (stack of layers) ── forward loop: slices ── backward loop: slices ── update
//   backward loop   gradient of a layer → slice of a stack of the parameter's shape ─────── update
#pragma once

#include <string>
#include <vector>

#include "model/residuals/residuals.h"
#include "model/state/training_state.h"

namespace spillway {

struct ParameterStream {
  StateArgument argument;
  ValueId value;                   ///< what the argument holds; loops pass it through
  std::vector<StackAccess> reads;  ///< in loops, slices all of them
};

struct GradientStack {
  InstructionId loop;         ///< that writes it, slice by slice
  std::uint32_t element = 0;  ///< of what the loop carries
  BufferId stack;
  StackAccess write;
};

struct ParameterStreams {
  std::vector<ParameterStream> streams;  ///< other parameters are fetched whole
  std::vector<GradientStack> gradients;
  /// Why slices of parameters cannot be moved here; empty when they can.
  std::string refused_because;
};

/// `memory` is that of the program, wherever its parameters lie.
ParameterStreams find_parameter_streams(const Program& program, const Lifetimes& memory,
                                        const TrainingState& state);

}  // namespace spillway
