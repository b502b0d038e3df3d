// What the probe measures: one point for each thing a fit may ask for, by the machine at hand. Left
// out: how often and in which order (probe.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/probe/device.h"

namespace spillway::probe {

enum class PointKind {
  kCopy,     ///< `measured` is a CopyLoad
  kTraffic,  ///< a kernel that memory bounds
  kGemm,
  kLaunch,        ///< floor, gap and the host's part of a launch
  kInterference,  ///< `measured` a kernel, `beside` the copies: each alone and both at once
};

struct Point {
  PointKind kind = PointKind::kCopy;
  Load measured;
  /// Cover the measured load: last longer than it, and are not measured themselves.
  std::vector<CopyLoad> beside{};
  bool host_waits = false;  ///< isolated copies
  bool lasting = false;     ///< of products: after half a second of the same
};

/// Something that this machine cannot show, and why.
struct NotPlanned {
  std::string what;
  std::string why;
};

struct PlanOptions {
  std::int64_t largest_copy = std::int64_t{1} << 30;
  bool quick = false;  ///< fewer sizes and shapes: a minute instead of several
};

struct MeasurementPlan {
  std::vector<Point> points;
  std::vector<NotPlanned> not_planned;
};

MeasurementPlan make_plan(const Machine& machine, const PlanOptions& options);

/// Sizes of copies: powers of two from 4 KiB, and 3/2 of them around the knee, 64 KiB to 4 MiB.
std::vector<std::int64_t> copy_sizes(std::int64_t largest, bool quick);

}  // namespace spillway::probe
