#include "model/base/read_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/gzip.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::gzip;
using testing::TemporaryFolder;

/// The content, or the message.
std::string content_of(const std::string& path) {
  const auto content = read_file(path);
  return content.ok() ? **content : to_text(content.error());
}

TEST_CASE("files, packed or not, whatever they are called") {
  const TemporaryFolder folder;
  CHECK(content_of(folder.write("a.txt", "text")) == "text");
  CHECK(content_of(folder.write("a.gz", "text")) == "text");
  CHECK(content_of(folder.write("b.txt", gzip("packed"))) == "packed");
  CHECK(content_of(folder.write("c.txt", gzip("one, ") + gzip("two"))) == "one, two");
  CHECK(content_of(folder.write("d.txt", gzip("text") + "left over")) == "text");
  const std::string long_text(3000000, 'x');
  CHECK(content_of(folder.write("e.txt", gzip(long_text))) == long_text);
  CHECK(content_of(folder.write("f.txt", std::string("a\0b", 3))) == std::string("a\0b", 3));
}

TEST_CASE("files that cannot be read") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x");
  SUBCASE("missing") {
    CHECK(content_of(path) == path + ": error: cannot be opened: No such file or directory");
  }
  SUBCASE("a folder in its way") {
    folder.write("x", "text");
    CHECK(content_of(path + "/y") == path + "/y: error: cannot be opened: Not a directory");
  }
  SUBCASE("empty") {
    folder.write("x", "");
    CHECK(content_of(path) == path + ": error: is empty");
  }
  SUBCASE("empty once unpacked") {
    folder.write("x", gzip(""));
    CHECK(content_of(path) == path + ": error: is empty");
  }
  SUBCASE("a folder") {
    CHECK(content_of(folder.path("")) == folder.path("") + ": error: is a folder, not a file");
  }
  SUBCASE("a pipe, which nobody writes to") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(content_of(path) == path + ": error: is a pipe, not a file\n  write it to a file first");
  }
  SUBCASE("a device that never ends") {
    CHECK(content_of("/dev/zero") ==
          "/dev/zero: error: is a device, not a file\n  write it to a file first");
  }
  SUBCASE("not allowed") {
    folder.write("x", "text");
    REQUIRE(::chmod(path.c_str(), 0) == 0);
    if (::geteuid() == 0)
      MESSAGE("skipped: root may read everything");
    else
      CHECK(content_of(path) == path + ": error: cannot be opened: Permission denied");
  }
  SUBCASE("larger than what is read") {
    folder.write("x", "text");
    std::filesystem::resize_file(path, (std::uintmax_t{2} << 30) + 1);  // no blocks are written
    CHECK(content_of(path) ==
          path + ": error: is larger than 2.00 GiB\n  is this the optimised HLO of one program?");
  }
}

TEST_CASE("packed files that are damaged") {
  const TemporaryFolder folder;
  std::string packed = gzip("HloModule toy, and so on, and so forth");
  CHECK(content_of(folder.write("a", packed.substr(0, 2))) ==
        folder.path("a") + ": error: is cut: its gzip data ends after 0 bytes");
  CHECK(content_of(folder.write("a", packed.substr(0, packed.size() - 1))) ==
        folder.path("a") + ": error: is cut: its gzip data ends after 38 bytes");
  packed[packed.size() - 6] ^= 1;  // in its check sum
  CHECK(content_of(folder.write("a", packed)) ==
        folder.path("a") + ": error: is damaged: its gzip data is wrong after 38 bytes");
  packed[3] = '\x7f';
  CHECK(content_of(folder.write("a", packed)) ==
        folder.path("a") + ": error: is damaged: its gzip data is wrong after 0 bytes");
}

TEST_CASE("a file that unpacks to very much more than it holds") {
  const TemporaryFolder folder;
  const std::string bomb = gzip(std::string(std::size_t{100} << 20, ' '));
  CHECK(bomb.size() < 200000);
  CHECK(content_of(folder.write("a", bomb)) ==
        folder.path("a") +
            ": error: unpacks to more than 100 times its size\n  is this the optimised HLO of one "
            "program?");
}

}  // namespace
}  // namespace spillway
