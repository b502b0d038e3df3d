// A step made from a model's configuration, as commands work on it: in the order that XLA would
// have given it, and under the policy that the configuration asks for.
#pragma once

#include "model/hardware/profile.h"
#include "model/spec/step_program.h"
#include "sim/planner/evaluate.h"

namespace spillway {

/// What XLA for this machine makes of the loss.
StepTextOptions step_text_options(const HardwareProfile& profile);

/// The configuration's choice for each handle; state that it keeps on the host included.
Policy configured_policy(const StepSpec& spec, const std::vector<Handle>& handles);

/// Everything saved, ordered as XLA would under its default flags.
Result<Program> order_everything_saved(const ModelStep& step, const HardwareProfile& profile,
                                       const Topology& topology, const Budget& budget);

/// The same under the configured policy: what the configuration would compile to.
Result<Program> order_as_configured(const ModelStep& step, const HardwareProfile& profile,
                                    const Topology& topology, const Budget& budget);

}  // namespace spillway
