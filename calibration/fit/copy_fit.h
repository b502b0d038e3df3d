// What copies of many sizes say of one direction of the link: a start-up and a rate.
//   time = start-up of the regime + bytes / rate  (+ hinge x bytes beyond a size, where huge copies
//   are slower: address translation, or caches that the smaller ones stayed in)
// Copies below 64 KiB have a segment of their own: the driver sends them with the command. Left
// out: copies both ways and of several GPUs (link_fit.h).
#pragma once

#include <vector>

#include "calibration/fit/figure_sheet.h"

namespace spillway::calibration {

/// As XLA copies: by a copy engine, pinned, from the memory of the GPU's own CPU, nothing beside.
bool is_plain(const CopySample& sample);

struct DirectionFit {
  Outcome rate;                   ///< of copies of 64 to 512 MiB, start-up taken off
  Outcome queued_latency;         ///< start-up of a copy behind another
  Outcome isolated_latency;       ///< of one the host waits for
  Outcome small_latency;          ///< of copies below 64 KiB, queued
  std::vector<CopyCurve> curves;  ///< `before` is not filled in
  std::vector<Warning> warnings;
};

/// Of the plain samples of that direction, one way, one GPU at a time.
DirectionFit fit_direction(const std::vector<CopySample>& samples, CopyDirection direction,
                           const FitOptions& options);

}  // namespace spillway::calibration
