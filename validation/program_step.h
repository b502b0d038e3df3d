// A published step as a program: made from the configuration, put under its policy, ordered as XLA
// would under the flags of the run, and simulated.
#pragma once

#include "model/cost/cost_table.h"
#include "sim/simulate.h"
#include "validation/run_settings.h"

namespace spillway {

/// An error: no program is made of the configuration, or it cannot be simulated.
Result<SimResult> simulate_run(const RunSettings& run);

/// Costs in which products of the layers (not those of the loss) take the time that they would
/// with operands of a narrow type, which are written beforehand: bf16 read, the narrow type
/// written. With `width` above 0 only products that read or write an array with such a dimension.
CostTable with_narrow_products(const Program& program, const CostTable& costs,
                               const HardwareProfile& profile, std::string_view type,
                               std::int64_t width);

}  // namespace spillway
