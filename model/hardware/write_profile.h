// Writes a profile as hw_profiles/*.yaml has them; what is written reads back as the same profile.
#pragma once

#include <string>

#include "model/hardware/profile.h"

namespace spillway {

/// `comment` comes first, each of its lines behind a '#'.
std::string to_yaml(const HardwareProfile& profile, const std::string& comment = "");

}  // namespace spillway
