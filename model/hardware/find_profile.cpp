#include "model/hardware/find_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "model/hardware/read_profile.h"
#include "model/base/spelling.h"

namespace spillway {
namespace {

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
         name.ends_with(".yml");
}

Error unknown_id(std::string_view id, const std::vector<ProfileEntry>& entries,
                 const ProfileSearchPath& search) {
  std::vector<std::string> known;
  for (const ProfileEntry& entry : entries) known.push_back(entry.id);
  Error error{ErrorKind::kUsage, fmt::format("no hardware profile is called '{}'", id), {}, "", ""};
  if (known.empty()) {
    error.advice = search.folders.empty()
                       ? "no folder was searched; give the path of a profile"
                       : fmt::format("no profile lies in {}", fmt::join(search.folders, ", "));
    return error;
  }
  const std::string_view nearest = nearest_name(id, known);
  if (!nearest.empty()) error.advice = fmt::format("did you mean '{}'? ", nearest);
  error.advice +=
      fmt::format("known are {}; or give a path to a .yaml file", fmt::join(known, ", "));
  return error;
}

Error wrong_id(const std::string& path, std::string_view id) {
  Error error{ErrorKind::kInput, fmt::format("the profile's id is '{}'", id), {}, "", ""};
  error.where.path = path;
  error.advice = fmt::format("in this folder a file is named after its id: {}.yaml", id);
  return error;
}

}  // namespace

std::vector<ProfileEntry> list_profiles(const ProfileSearchPath& search) {
  std::map<std::string, std::string> path_of;
  for (const std::string& folder : search.folders) {
    std::error_code code;
    std::filesystem::directory_iterator file(folder, code);
    for (; !code && file != std::filesystem::directory_iterator(); file.increment(code)) {
      const std::filesystem::path& path = file->path();
      std::error_code status;
      if (path.extension() == ".yaml" && file->is_regular_file(status))
        path_of.emplace(path.stem().string(), path.string());  // an earlier folder's stays
    }
  }
  std::vector<ProfileEntry> entries;
  for (const auto& [id, path] : path_of) entries.push_back({id, path});
  return entries;
}

Result<HardwareProfile> find_profile(std::string_view id_or_path, const ProfileSearchPath& search) {
  if (is_path(id_or_path)) return read_profile(std::string(id_or_path));
  const std::vector<ProfileEntry> entries = list_profiles(search);
  const auto entry = std::ranges::find(entries, id_or_path, &ProfileEntry::id);
  if (entry == entries.end()) return unknown_id(id_or_path, entries, search);
  Result<HardwareProfile> profile = read_profile(entry->path);
  if (profile && profile->id != entry->id) return wrong_id(entry->path, profile->id);
  return profile;
}

}  // namespace spillway
