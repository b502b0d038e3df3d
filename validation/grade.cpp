#include "validation/grade.h"

#include <algorithm>
#include <cmath>

#include "model/base/check.h"
#include "model/spec/config_keys.h"

namespace spillway {
namespace {

double published_number(const PublishedRow& row) { return parse_number(row.published).value_or(0); }

/// All, none or some of a band agree.
Verdict verdict_of(bool low, bool high) {
  if (low && high) return Verdict::kHolds;
  return low || high ? Verdict::kOpen : Verdict::kMisses;
}

Verdict grade_sign(const PublishedRow& row, const Band& band) {
  const auto agrees = [&](double gain) {
    if (row.published == "gains") return gain > kNeutral;
    if (row.published == "loses") return gain < -kNeutral;
    return std::abs(gain) <= kNeutral;
  };
  return verdict_of(agrees(band.low), agrees(band.high));
}

}  // namespace

Band band_of(const std::vector<double>& values) {
  check(!values.empty(), "a band of no values");
  const auto [low, high] = std::ranges::minmax_element(values);
  return {*low, *high};
}

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"holds", "misses", "open", "calibrates", "not computed"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Verdict grade(const PublishedRow& row, const Band& band) {
  if (row.tier == Tier::kSign) return grade_sign(row, band);
  if (row.tier == Tier::kFit) {
    const double expected = row.published == "fits" ? 1 : 0;
    return verdict_of(band.low == expected, band.high == expected);
  }
  const double published = published_number(row);
  const double slack =
      row.tolerance.is_relative ? std::abs(published) * row.tolerance.value : row.tolerance.value;
  const bool inside = published >= band.low - slack && published <= band.high + slack;
  return inside ? Verdict::kHolds : Verdict::kMisses;
}

double error_of(const PublishedRow& row, const Band& band) {
  return band.middle() / published_number(row) - 1;
}

}  // namespace spillway
