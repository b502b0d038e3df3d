#include "tests/golden.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace spillway::testing {

bool& update_goldens() {
  static bool update = false;
  return update;
}

std::string source_path(std::string_view relative) {
  return std::string(SPILLWAY_SOURCE_DIR) + "/" + std::string(relative);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), "cannot read " << path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void check_golden(std::string_view name, std::string_view text) {
  const std::string path = source_path("tests/golden/" + std::string(name));
  if (update_goldens()) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  const std::string want = read_text(path);
  if (want == text) return;
  std::istringstream got_lines{std::string(text)};
  std::istringstream want_lines(want);
  std::string got_line;
  std::string want_line;
  for (int line = 1;; ++line) {
    const bool more_got = static_cast<bool>(std::getline(got_lines, got_line));
    const bool more_want = static_cast<bool>(std::getline(want_lines, want_line));
    if (!more_got) got_line = "(end of output)";
    if (!more_want) want_line = "(end of golden)";
    if (got_line != want_line || more_got != more_want) {
      FAIL_CHECK(path << ":" << line << ": differs\n  want: " << want_line
                      << "\n  got:  " << got_line << "\n(spillway_tests --update rewrites it)");
      return;
    }
    if (!more_got) break;
  }
  FAIL_CHECK(path << ": differs in line ends only");
}

}  // namespace spillway::testing
