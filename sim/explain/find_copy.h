// Which copies and collectives a name on the command line means.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "sim/trace/flows.h"

namespace spillway {

/// The steps that start what `name` names: an instruction that starts a copy or a collective or is
/// one, the done of one, or a residual by name or id, which has an offload and reloads. A name may
/// have the % of HLO text in front, and be cut short where the rest is beyond doubt. An error lists
/// what it may have meant, or says that a residual stays in HBM.
Result<std::vector<engine::StepId>> find_copies(const Program& program,
                                                const LoweredProgram& lowered,
                                                const CopyLabels& labels,
                                                const ResidualTable& residuals,
                                                const std::string& name);

}  // namespace spillway
