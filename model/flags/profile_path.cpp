#include "model/flags/profile_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "model/base/result.h"
#include "model/run/pgle.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kText = ".pbtxt", kBinary = ".pb";

bool has_profile_ending(std::string_view name) {
  return name.ends_with(kText) || name.ends_with(kBinary);
}

/// The last word of a name behind a point: "txt", empty where there is none.
std::string_view ending_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t point = name.rfind('.');
  return point == std::string_view::npos ? std::string_view() : name.substr(point + 1);
}

std::optional<ProfileFault> find_fault_in_folder(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (has_profile_ending(entry.path().filename().string())) return std::nullopt;
  return ProfileFault{spillway::quoted(folder.string()) + " is a folder without a profile",
                      "XLA looks for a file of the program's fingerprint there: "
                      "<fingerprint>.pbtxt or <fingerprint>.pb."};
}

}  // namespace

bool is_profile_path(std::string_view path) {
  if (path.empty()) return false;
  if (has_profile_ending(path)) return true;
  // "step.txt" is a file of another kind, "profiles" and "v1.2" may be folders.
  const std::string_view ending = ending_of(path);
  return ending.empty() || std::ranges::any_of(ending, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<ProfileFault> read_profile_fault(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::error_code error;
  if (fs::is_directory(path, error)) return find_fault_in_folder(path);
  if (!has_profile_ending(path))
    return ProfileFault{"XLA passes over " + spillway::quoted(path) + " without a word",
                        "A profile's name ends in .pbtxt (text) or .pb (binary)."};
  if (!fs::exists(path, error))
    return ProfileFault{"there is no file " + spillway::quoted(path) + " here",
                        "Where the step is compiled it has to be there."};
  const Result<ProfiledInstructions> profile = read_pgle(path);
  if (profile.ok()) return std::nullopt;
  return ProfileFault{"XLA cannot read it: " + profile.error().text,
                      "Text goes into .pbtxt, the binary format into .pb."};
}

}  // namespace spillway
