// `spillway hw list|show|check`: what is known of each machine, and where each figure comes from.
// Everything but the command line itself: these functions take plain data and return text, so that
// wiring them to CLI11 is a line each. The file's reader and its checks are model/hardware.
#pragma once

#include <string>
#include <string_view>

#include "model/hardware/find_profile.h"

namespace spillway {

/// What a command leaves behind: the answer for stdout, everything else for stderr.
struct HwResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Where profiles are looked for, in this order: `environment` (the value of SPILLWAY_HW_PROFILES:
/// folders between colons; may be null), then share/spillway/hw_profiles beside the folder of the
/// binary at `executable`.
ProfileSearchPath hw_search_path(const char* environment, const std::string& executable);

/// The machines in those folders, a line each; what cannot be read is told in `err`. Exit code 3
/// when none can.
HwResult hw_list(const ProfileSearchPath& search, bool json);
HwResult hw_show(std::string_view id_or_path, const ProfileSearchPath& search, bool json);
/// Exit code 1 when a figure cannot be; warnings alone leave it 0.
HwResult hw_check(std::string_view id_or_path, const ProfileSearchPath& search, bool json);

}  // namespace spillway
