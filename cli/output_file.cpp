#include "cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "model/base/utf8.h"

namespace spillway {
namespace {

ExitCode not_written(const std::string& path, int number) {
  std::fprintf(stderr, "%s: error: cannot be written: %s\n", printable_line(path).c_str(),
               std::strerror(number));
  return kNotWritten;
}

bool write_all(std::FILE* file, const std::string& content) {
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size() &&
                       std::fflush(file) == 0;
  return std::fclose(file) == 0 && written;
}

ExitCode write_into(const std::string& path, const std::string& content) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || !write_all(file, content)) return not_written(path, errno);
  return kDone;
}

/// The file behind links: what is renamed onto a link would take its place.
std::string behind_links(const std::string& path) {
  std::error_code none;
  const std::filesystem::path file = std::filesystem::canonical(path, none);
  return none ? path : file.string();
}

std::optional<Error> overwrites_input(const std::string& option, const std::string& path,
                                      const std::vector<std::string>& inputs) {
  struct stat target, input;
  if (::stat(path.c_str(), &target) != 0 || !S_ISREG(target.st_mode)) return std::nullopt;
  for (const std::string& name : inputs)
    if (!name.empty() && ::stat(name.c_str(), &input) == 0 && input.st_dev == target.st_dev &&
        input.st_ino == target.st_ino)
      return Error{ErrorKind::kUsage,
                   option + " " + spillway::quoted(path) + " is the file that is read as " +
                       spillway::quoted(name) + ", and would be overwritten",
                   {},
                   "",
                   "give it another name"};
  return std::nullopt;
}

/// What writing to it would fail with; 0 where nothing speaks against it.
int find_obstacle(const std::string& path) {
  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return EISDIR;
    if (!S_ISREG(there.st_mode)) return ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
    // Not even for root: whoever took the right to write away meant it.
    if ((there.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0) return EACCES;
  } else if (errno != ENOENT) {
    return errno;
  }
  const std::string folder = std::filesystem::path(behind_links(path)).parent_path().string();
  const std::string where = folder.empty() ? "." : folder;
  if (path.ends_with('/')) return EISDIR;
  return ::access(where.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace

ExitCode check_output(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs) {
  if (path.empty()) return kDone;
  if (const auto wrong = overwrites_input(option, path, inputs)) {
    report(*wrong);
    return kWrongUsage;
  }
  const int obstacle = find_obstacle(path);
  return obstacle == 0 ? kDone : not_written(path, obstacle);
}

ExitCode write_output(const std::string& path, const std::string& content) {
  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    if (!S_ISREG(there.st_mode)) return write_into(path, content);  // a device, a pipe
    if (const int obstacle = find_obstacle(path); obstacle != 0) return not_written(path, obstacle);
  }
  // Beside its target, so that renaming it needs no copy.
  const std::string target = behind_links(path);
  const std::string part = target + "." + std::to_string(::getpid()) + ".part";
  std::FILE* const file = std::fopen(part.c_str(), "wbx");
  if (file == nullptr) return not_written(path, errno);
  if (!write_all(file, content) || std::rename(part.c_str(), target.c_str()) != 0) {
    const int number = errno;
    std::remove(part.c_str());
    return not_written(path, number);
  }
  return kDone;
}

}  // namespace spillway
