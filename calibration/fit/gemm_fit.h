// Matrix products: the factor on their arithmetic, what their sizes cost (model/cost/gemm_time.h
// has the formula), and what lasting load does to them. Only products of random operands count:
// zeros run 13 % and more too fast.
#pragma once

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// Sets `kernels.gemm`, `gemm_shape` and `gemm_power` of each type that has samples.
void fit_gemms(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet,
               Fit& fit);

}  // namespace spillway::calibration
