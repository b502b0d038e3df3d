// Collectives by group size: time = latency + t + 2 sqrt(pipeline t), t = bus bytes / bandwidth
// (model/hardware/profile.h). Left out: permutes, which change their number of channels.
#pragma once

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// Sets the collectives of `fit.profile.scale_up` that have samples; group sizes without samples
/// go.
void fit_collectives(const Measurements& measurements, const FitOptions& options,
                     FigureSheet& sheet, Fit& fit);

}  // namespace spillway::calibration
