// What a training step keeps from one step to the next: which arguments are parameters and which
// are the optimizer's, and which results take their place.
//
// Evidence, in this order: the caller gives the argument's buffer away and a result takes it over
// (input_output_alias); it is an array of floating point; its JAX name says what it is
// (op_name: state['optimizer']['opt_state'], opt[0]); and how it is used: the model multiplies with
// parameters, the update alone reads the optimizer's moments. Counters, keys and what is not
// donated are neither.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/program/program.h"

namespace spillway {

enum class StateClass { kParameters, kOptimizer };
inline constexpr StateClass kStateClasses[] = {StateClass::kOptimizer, StateClass::kParameters};
/// "params", "optimizer": what a user sets.
std::string_view name_of(StateClass kind);

struct StateArgument {
  std::uint32_t parameter = 0;   ///< its number
  InstructionIndex instruction;  ///< of the entry
  ShapeNodeIndex output = 0;     ///< of the entry's result: the new state
  Shape shape;
  StateClass kind = StateClass::kParameters;
};

/// What says that the arguments of a class are that, the weakest of all of them.
enum class StateEvidence {
  kUseAndName,   ///< both say so
  kUseAndShape,  ///< the use says so, and each of the moments has the shape of a parameter
  kUse,          ///< only the use says so
  kName,         ///< only the name does: the use would say otherwise
};
std::string_view name_of(StateEvidence evidence);

struct TrainingState {
  std::vector<StateArgument> arguments;  ///< by number
  StateEvidence parameters = StateEvidence::kUseAndName, optimizer = StateEvidence::kUseAndName;
  /// Why nothing was found; empty when something was.
  std::string unknown_because;

  std::vector<StateArgument> of(StateClass kind) const;
  StateEvidence evidence(StateClass kind) const {
    return kind == StateClass::kParameters ? parameters : optimizer;
  }
};

TrainingState find_training_state(const Program& program);

/// Bytes of the arguments of a class on one device.
Bytes bytes_of(const TrainingState& state, StateClass kind);
/// Those of them in pinned host memory.
Bytes host_bytes_of(const TrainingState& state, StateClass kind);

}  // namespace spillway
