// The profile that a flag names (PGLE): whether XLA would read what stands at that path. It goes on
// without one where it cannot, and a line in its log is all it says of that, or nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway {

/// Whether XLA may find a profile by that name: text in *.pbtxt, binary in *.pb, or a folder that
/// has one a program, <fingerprint>.pbtxt. Other files it passes over.
/// From: ReadPGLEProfile in xla/service/gpu/gpu_hlo_schedule.cc, and jaxlib 0.12.0.1 tried.
bool is_profile_path(std::string_view path);

/// Why XLA would go on without the profile, and what would help.
struct ProfileFault {
  std::string what, advice;
};
/// Looks at the file; empty where nothing is wrong with it, and for an empty path.
std::optional<ProfileFault> read_profile_fault(const std::string& path);

}  // namespace spillway
