// Kernels that memory bounds, launches, and what copies and kernels do to each other.
#pragma once

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// Sets launch_floor, gap and the factors of memory-bound classes.
void fit_kernels(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
                 Fit& fit);

/// Reports the slow-downs of each pair, and what a copied byte takes of the memory's bandwidth: of
/// both, profiles have no figures, for the simulator takes the latter to be one byte.
void fit_interference(const Measurements& measurements, const FitOptions& options,
                      FigureSheet& sheet, Fit& fit);

}  // namespace spillway::calibration
