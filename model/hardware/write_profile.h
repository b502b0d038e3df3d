// A profile as the text of a file that read_profile reads back as the same profile: for profiles
// that a program makes (calibration/). Comments are not kept.
#pragma once

#include <string>

#include "model/hardware/profile.h"

namespace spillway {

std::string to_yaml(const HardwareProfile& profile);

}  // namespace spillway
