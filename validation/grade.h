// Whether what was computed agrees with what was published. Rules of each tier are in the table of
// docs/validation.md; nothing here knows how a value came about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validation/published.h"

namespace spillway {

/// From the least to the largest value over what a source left open.
struct Band {
  double low = 0, high = 0;
  double middle() const { return (low + high) / 2; }
  double width() const { return high - low; }
};
Band band_of(const std::vector<double>& values);

enum class Verdict {
  kHolds,
  kMisses,
  kOpen,         ///< what was left open decides: one value agrees, another does not
  kCalibrates,   ///< agrees by construction
  kNotComputed,  ///< an error
};
std::string_view name_of(Verdict verdict);

/// Within this much of nothing a gain is neutral, in per cent.
inline constexpr double kNeutral = 1.0;

/// Numbers: the published value lies in the band, its tolerance added at both ends. Signs: "gains"
/// where all of the band is above kNeutral, "loses" below -kNeutral, "neutral" between them. Fits:
/// 1 for "fits", 0 for "out of memory".
Verdict grade(const PublishedRow& row, const Band& band);

/// How far the middle of a band is from the published number, as a share of it.
double error_of(const PublishedRow& row, const Band& band);

}  // namespace spillway
