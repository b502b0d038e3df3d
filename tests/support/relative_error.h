// How far one figure is from another, as a share of the other.
#pragma once

#include <cmath>

#include "model/base/units.h"

namespace spillway::testing {

template <typename Quantity>
double relative_error(Quantity ours, Quantity theirs) {
  return std::abs(ratio(ours, theirs) - 1);
}

}  // namespace spillway::testing
