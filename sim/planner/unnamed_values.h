// Which values that carry no checkpoint name yet would be worth one: saved, they spare the backward
// pass kernels that a policy has it run again, and no name that there is does it for less.
//
// A minimum cut (save_cut.h) over what the backward part of a layer (backward_region.h) of the
// planned program computes without the gradient: that is what is computed again. Left out: values
// inside a kernel, and values made of parameters alone (gathered weights).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planner/evaluate.h"

namespace spillway {

/// A value of the backward body that is computed again there.
struct UnnamedValue {
  std::string instruction;  ///< that makes it, in the planned program
  std::string shape;        ///< "f32[2,32,8192]"
  Bytes bytes_per_layer, total_bytes;
  std::string source;   ///< "attention_op.py:2865", where XLA tells it
  std::string op_name;  ///< JAX operation
};

/// Values to be named and saved together, beside what the policy saves.
struct WorthSaving {
  std::vector<UnnamedValue> values;
  /// Names that the policy recomputes, which these values are worth saving beside only.
  std::vector<std::string> with_names;
  /// Names that are saved already and are results of the same kernels: one rule has to name both.
  std::vector<std::string> beside;
  Bytes bytes;          ///< of all layers, names of `with_names` included
  Seconds kernels;      ///< a step, that do not run again
  Seconds collectives;  ///< likewise; other work may have hidden them
  Seconds saving;       ///< a step, what writing and reading the values takes of HBM's time
  std::vector<std::string> not_run_again;        ///< products, attention and collectives, by name
  std::vector<std::string> spared_instructions;  ///< these and all others

  /// What comes of it in a whole step (simulate_saving.h).
  struct Outcome {
    Seconds step_before, step;
    Bytes peak_device;  ///< at most
  };
  std::optional<Outcome> simulated = {};
  std::string instead_of = {};  ///< a name that the plan saves and that is recomputed then

  Seconds spared() const { return kernels + collectives - saving; }
};

/// The most that a byte saves first. Empty where no value beats the names.
std::vector<WorthSaving> find_unnamed_values(const Evaluator& evaluator, const Policy& policy);

}  // namespace spillway
