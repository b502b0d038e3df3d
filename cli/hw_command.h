// `spillway hw list|show|check`: what is known of each machine, and where each figure comes from.
// Everything but the command line itself: these functions take plain data and return text, so that
// wiring them to CLI11 is a line each. The file's reader and its checks are model/hardware.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/check_profile.h"
#include "model/hardware/find_profile.h"
#include "model/hardware/profile.h"

namespace spillway {

/// What a command leaves behind: the answer for stdout, everything else for stderr.
struct HwResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Where profiles are looked for, in this order: `environment` (the value of SPILLWAY_HW_PROFILES:
/// folders between colons; may be null), the folders hw_profiles and share/spillway/hw_profiles
/// beside and above the binary at `executable`, and the source tree it was built from.
ProfileSearchPath hw_search_path(const char* environment, const std::string& executable);

HwResult hw_list(const ProfileSearchPath& search, bool json);
HwResult hw_show(std::string_view id_or_path, const ProfileSearchPath& search, bool json);
/// Exit code 1 when a figure cannot be; warnings alone leave it 0.
HwResult hw_check(std::string_view id_or_path, const ProfileSearchPath& search, bool json);

/// One line a machine.
std::string render_profile_list(const std::vector<HardwareProfile>& profiles);
std::string render_profile_list_json(const std::vector<HardwareProfile>& profiles);
/// A table of all figures: value, origin, source.
std::string render_profile_text(const HardwareProfile& profile);
std::string render_profile_json(const HardwareProfile& profile);
std::string render_findings_text(const HardwareProfile& profile,
                                 const std::vector<Finding>& findings);
std::string render_findings_json(const HardwareProfile& profile,
                                 const std::vector<Finding>& findings);

}  // namespace spillway
