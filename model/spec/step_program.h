// From a step's configuration to what every command works on: a program with everything that has a
// name saved on the device, the names, and what the configuration does with each.
//
//   MaxText YAML ─┐
//                 ├─> StepSpec ──> ModelStep {program, names, saves}   as if it had been compiled
//   config.json  ─┘
//
// The order is not XLA's yet: whoever evaluates a policy has the program ordered (sim/schedule).
#pragma once

#include "model/base/result.h"
#include "model/program/program.h"
#include "model/residuals/names.h"
#include "model/spec/step_spec.h"
#include "model/spec/step_text.h"

namespace spillway {

struct ModelStep {
  StepSpec spec;
  Program program;
  NameList names;
};

/// An error: a mesh that cannot split an array, or something that no program is made of
/// (pipelines, a loss in pieces).
Result<ModelStep> build_step_program(const StepSpec& step, const StepTextOptions& options = {});

}  // namespace spillway
