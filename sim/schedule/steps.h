// A computation as those see it who order it: steps, and the device memory that each makes and
// reads.
#pragma once

#include <vector>

#include "sim/schedule/step_graph.h"

namespace spillway {

struct Steps {
  /// An array that some step reads. Only device memory is here, and nothing that is there whatever
  /// the order: parameters and constants.
  struct Array {
    std::int64_t bytes = 0;
    bool lives_out = false;  ///< part of what the computation returns
  };

  ComputationId id;
  const Computation* computation = nullptr;
  StepGraph graph;
  std::vector<Array> arrays;
  StepLists reads;                  ///< numbers of arrays
  std::vector<std::int64_t> makes;  ///< bytes

  std::size_t size() const { return graph.steps.size(); }
  /// The instruction, or the start of the async pair.
  const Instruction& instruction(std::uint32_t step) const {
    return (*computation)[graph.steps[step].instruction];
  }
};

/// Numbers of steps.
using StepOrder = std::vector<std::uint32_t>;

/// Every computation that control flow reaches. `given` is the program's memory in an order that is
/// right; the program must outlive what this returns.
std::vector<Steps> make_steps(const Program& program, const Lifetimes& given);

}  // namespace spillway
