// Whether the figures of a profile make sense together: what a strict reader cannot see, such as a
// sum that exceeds its parts or a peak that the cores do not add up to.
#pragma once

#include <string>
#include <vector>

#include "model/hardware/profile.h"

namespace spillway {

struct Finding {
  enum class Severity {
    kWarning,  ///< unusual: look at it
    kError,    ///< cannot be: a result that rests on it is wrong
  };
  Severity severity = Severity::kWarning;
  std::string key;   ///< "link.both_directions"
  std::string text;  ///< starts in lower case, has no full stop
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// In the order of the file. Empty when nothing is odd.
std::vector<Finding> check_profile(const HardwareProfile& profile);

}  // namespace spillway
