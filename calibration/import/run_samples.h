// What a profile of a run says of the link: its copies, as samples for the fit.
#pragma once

#include "calibration/measurements.h"
#include "model/run/measured_run.h"

namespace spillway::calibration {

/// Copies across the host link, each with what runs beside it unknown; warnings of pageable ones,
/// which XLA's are not, and of what device_put does. An error: the run has no such copy.
Result<Measurements> to_measurements(const MeasuredRun& run);

}  // namespace spillway::calibration
