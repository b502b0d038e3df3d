// The efficiency surface of matrix products of one type: five positive parameters fitted to their
// times by robust Gauss-Newton steps on logarithms.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "calibration/fit/robust.h"
#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

inline constexpr int kSurfaceParameters = 5;
/// In the order gemm factor, overhead, depth, operands, result.
using Surface = std::array<double, kSurfaceParameters>;
inline constexpr const char* kSurfaceNames[] = {"gemm", "overhead", "depth", "operands", "result"};

/// The time of a sample by the formula of model/cost/gemm_time.h with these parameters.
/// `machine` gives peak, L2, HBM and the elementwise factor.
Seconds surface_time(const GemmSample& sample, const Surface& surface,
                     const HardwareProfile& machine);

struct SurfaceFit {
  Surface value{};
  std::array<std::optional<Range>, kSurfaceParameters> range{};
  /// Those that the samples do not determine stay as in `start`.
  std::array<bool, kSurfaceParameters> determined{};
  std::vector<double> residual;  ///< (fitted - measured) / measured
  std::vector<double> weight;    ///< Huber's
};

/// Intervals are of the given confidence, from the curvature at the solution and the spread of the
/// residuals; none where there are no more samples than parameters. A parameter whose logarithm is
/// known to less than +-0.5 counts as not determined. With `factor_alone` the others stay.
SurfaceFit fit_surface(const std::vector<const GemmSample*>& samples, const Surface& start,
                       const HardwareProfile& machine, bool factor_alone = false);

}  // namespace spillway::calibration
