// The same steps in another order: a program of the engine with a step moved or put into another
// iteration, to find out what that would bring.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/engine/program.h"

namespace spillway {

/// Changes to the steps of a program; ids are those of the program that is changed.
struct StepEdits {
  std::set<engine::StepId> removed;
  /// Steps to add in front of a step (of a loop: before it is entered) or behind it (once it is
  /// left). What they stand for is the step they are a copy of.
  struct Added {
    engine::StepId copy_of;
    std::optional<std::uint32_t> back{};  ///< of a wait
    bool takes_no_time = false;  ///< a start whose task is nothing: its instance is done at once
    bool not_in_last = false;    ///< of the loop around it, which is then written out
  };
  std::map<engine::StepId, std::vector<Added>> before, after;
  /// Its last iteration is written out behind it, without what is `not_in_last`.
  std::optional<engine::StepId> peeled;
};

struct EditedSteps {
  engine::EngineProgram program;
  /// The step of the original that each step is, or is a copy of.
  IdVector<engine::StepId, engine::StepId> original;
};

EditedSteps edit_steps(const engine::EngineProgram& program, const StepEdits& edits);

}  // namespace spillway
