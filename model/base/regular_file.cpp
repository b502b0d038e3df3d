#include "model/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/format.h"

namespace spillway {
namespace {

/// A file descriptor that closes itself.
class OpenFile {
 public:
  /// Does not wait for the other end of a pipe.
  explicit OpenFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// What a file is when it is not a regular one.
const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder, not a file";
  if (S_ISFIFO(mode)) return "is a pipe, not a file";
  if (S_ISSOCK(mode)) return "is a socket, not a file";
  return "is a device, not a file";
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, Bytes most,
                                      const std::string& advice) {
  const OpenFile file(path);
  if (file.descriptor() < 0)
    return error_in_file(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0)
    return error_in_file(path, std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return error_in_file(path, kind_of(status.st_mode),
                         S_ISDIR(status.st_mode) ? "" : "write it to a file first");
  if (status.st_size > most.value())
    return error_in_file(path, "is larger than " + format_bytes(most), advice);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = ::read(file.descriptor(), bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_in_file(path, std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) break;  // it became shorter
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace spillway
