// Rates of large copies of any kind, and what profiles do not have: pageable memory, memory of
// another CPU, copies by kernels, rows. Simulations do not use them.
#pragma once

#include <functional>
#include <vector>

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// Start-up is taken off, and is little.
inline constexpr Bytes kLarge{std::int64_t{8} << 20};

using Keep = std::function<bool(const CopySample&)>;

/// Rates of large copies, their start-up taken off.
std::vector<double> sustained_rates(const Measurements& measurements, Seconds latency,
                                    const Keep& keep);

/// Rates by what makes copies slow, for contrast.
void report_slow_copies(const Measurements& measurements, const FitOptions& options,
                        FigureSheet& sheet);

/// What a row costs beside its bytes: time = start-up + bytes / rate + rows x cost.
void report_rows(const Measurements& measurements, const FitOptions& options, FigureSheet& sheet);

}  // namespace spillway::calibration
