#include "tests/cli/run.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "tests/golden.h"

namespace spillway::testing {

namespace {

/// Without lines of progress: whether a command lasts long enough for one is the machine's matter.
std::string without_progress(const std::string& text) {
  static const std::regex kProgress("[0-9]+ (of [0-9]+ )?(cases|policies simulated)\n");
  return std::regex_replace(text, kProgress, "");
}

}  // namespace

Run run_spillway(const std::string& arguments) {
  const auto base =
      std::filesystem::temp_directory_path() / ("spillway_test_" + std::to_string(getpid()));
  const std::string out = base.string() + ".out";
  const std::string err = base.string() + ".err";
  const std::string command = std::string("cd '") + SPILLWAY_SOURCE_DIR +
                              "' && '" SPILLWAY_BINARY "' " + arguments + " >'" + out + "' 2>'" +
                              err + "' </dev/null";
  const int status = std::system(command.c_str());
  Run run{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out),
          without_progress(read_text(err))};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return run;
}

void check_refused(const std::string& arguments, int exit_code, std::string_view message) {
  CAPTURE(arguments);
  const Run run = run_spillway(arguments);
  CHECK(run.exit_code == exit_code);
  CHECK(run.out == "");
  CHECK(run.err == message);
}

}  // namespace spillway::testing
