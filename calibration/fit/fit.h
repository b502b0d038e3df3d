// From measurements to a profile: figures that the measurements determine replace those of a base
// profile, each with its number of samples and its interval; what they do not determine stays as it
// was, and is said. The formulas are those of docs/hardware-profiles.md, the method is in
// docs/calibration.md. Left out: reading and writing of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

struct FitOptions {
  std::string id{};        ///< of the result; empty: that of the base
  std::string name{};      ///< likewise
  std::uint64_t seed = 1;  ///< of the bootstrap
  int draws = 1000;        ///< of the bootstrap
  double confidence = 0.95;
};

enum class FigureState {
  kFitted,
  kRefused,  ///< there are samples, and they do not determine it: `why` says what is missing
  kKept,     ///< no samples
};

/// A sample that the robust fit gave little weight.
struct Outlier {
  double residual = 0;  ///< (fitted - measured) / measured
  std::string what;     ///< "64 MiB at 3.1 GB/s"
  SourceRef where;
};

/// A figure of the profile, or one beside it that only the report shows ("copy.isolated_latency").
struct FittedFigure {
  std::string key;  ///< "link.host_to_device"
  FigureState state = FigureState::kKept;
  std::string before;     ///< as profiles write it: "55.36 GB/s"; empty for one beside the profile
  std::string after;      ///< likewise; equal to `before` unless fitted
  std::string low, high;  ///< of the interval; empty when there is none
  double change = 0;      ///< after / before - 1
  int samples = 0;
  double median_error = 0;  ///< of the fit at the samples, relative, without sign
  double worst_error = 0;
  std::vector<Outlier> outliers;
  std::string why;  ///< of a refusal, or what to doubt
};

/// Samples and fitted curve of copies of one kind, for a plot.
struct CopyCurve {
  CopyDirection direction = CopyDirection::kHostToDevice;
  CopyRegime regime = CopyRegime::kQueued;
  struct Point {
    Bytes bytes;
    BytesPerSecond measured;  ///< median where there are several
    BytesPerSecond fitted;
    BytesPerSecond before;  ///< by the base profile
  };
  std::vector<Point> points;  ///< by ascending size
};

struct Fit {
  HardwareProfile profile;
  std::vector<FittedFigure> figures;  ///< kernels, host, link, fabric, then those beside profiles
  std::vector<CopyCurve> curves;
  /// check_profile says that the result cannot be, and not of the base: nothing may rest on it.
  bool impossible = false;
  std::vector<Warning> warnings;  ///< of the fit; those of the readers are in the measurements
};

/// The same measurements, options and base give the same result, to the bit.
Fit fit(const Measurements& measurements, const HardwareProfile& base,
        const FitOptions& options = {});

}  // namespace spillway::calibration
