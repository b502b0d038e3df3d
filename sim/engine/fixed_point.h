// Fractions as integers, and the two roundings of the engine. No floating point decides anything in
// here, so that every machine finds the same picosecond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/base/units.h"
#include "sim/engine/program.h"

namespace spillway::engine {

__extension__ using Wide = unsigned __int128;

/// A part of a whole, in units of 2^-48: of a resource's capacity, or of a task's full speed.
using Fraction = Quantity<struct FractionTag, std::int64_t>;
inline constexpr int kFractionBits = 48;
inline constexpr Fraction kWhole(std::int64_t{1} << kFractionBits);

inline constexpr SimTime kNever(std::numeric_limits<std::int64_t>::max());

inline Wide wide(std::int64_t value) { return static_cast<Wide>(value); }

/// Work is counted in picoseconds at full speed. Rounds to the nearest picosecond.
inline SimTime work_done(SimTime elapsed, Fraction speed) {
  const Wide half = Wide{1} << (kFractionBits - 1);
  const Wide done = (wide(elapsed.value()) * wide(speed.value()) + half) >> kFractionBits;
  return SimTime(static_cast<std::int64_t>(done));
}

/// How long `work` takes at `speed`, if that is not longer than a run may be. Rounds to the nearest
/// picosecond.
inline SimTime time_needed(SimTime work, Fraction speed) {
  if (speed == kWhole) return work;
  const Wide divisor = wide(speed.value());
  const Wide time = ((wide(work.value()) << kFractionBits) + divisor / 2) / divisor;
  constexpr SimTime kTooLong = kLongestRun + SimTime(1);
  return SimTime(static_cast<std::int64_t>(std::min(time, wide(kTooLong.value()))));
}

}  // namespace spillway::engine
