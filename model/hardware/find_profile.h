// Finds a profile by its id or by its path. Where profiles lie is the caller's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/hardware/profile.h"

namespace spillway {

/// Folders with profiles, the most important first. Folders that do not exist are skipped.
struct ProfileSearchPath {
  std::vector<std::string> folders;
};

/// A file `<id>.yaml` in one of the folders; the first folder that has the id wins.
struct ProfileEntry {
  std::string id;
  std::string path;
};

/// By id in alphabetical order.
std::vector<ProfileEntry> list_profiles(const ProfileSearchPath& search);

/// A name with a '/' or ending in .yaml is a file, anything else an id. An id nobody knows is a
/// usage error that lists the known ones; a file found by its id must carry that id.
Result<HardwareProfile> find_profile(std::string_view id_or_path, const ProfileSearchPath& search);

}  // namespace spillway
