// Reads hw_profiles/*.yaml, strictly: what comes out is complete, positive where it must be, and no
// sustained rate exceeds its cap. Whether the figures make sense together is check_profile.h.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/hardware/profile.h"

namespace spillway {

Result<HardwareProfile> read_profile(const std::string& path);
/// `path` is only for messages.
Result<HardwareProfile> parse_profile(std::string text, std::string path);

}  // namespace spillway
