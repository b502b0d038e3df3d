// Every command of the README runs, the output it shows is what comes out, and the project that
// docs/library.md shows is the one that is built.
#include <doctest/doctest.h>

#include <sstream>
#include <vector>

#include "tests/cli/run.h"
#include "tests/golden.h"

namespace spillway {
namespace {

using testing::read_text;
using testing::Run;
using testing::run_spillway;

std::vector<std::string> readme_commands() {
  std::istringstream lines(read_text(testing::source_path("README.md")));
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("$ spillway ")) commands.push_back(line.substr(11));
  return commands;
}

TEST_CASE("every command of the README answers") {
  const std::vector<std::string> commands = readme_commands();
  CHECK(commands.size() >= 10);
  for (const std::string& command : commands) {
    CAPTURE(command);
    const Run run = run_spillway(command);
    CHECK(run.exit_code <= 1);  // 1: the answer is no
    CHECK(run.exit_code >= 0);
    CHECK_FALSE(run.out.empty());
    CHECK(run.err == "");
  }
}

TEST_CASE("the run that the README shows is what the command prints") {
  const std::string readme = read_text(testing::source_path("README.md"));
  const std::string command = readme_commands().front();
  const std::size_t at = readme.find(command);
  const std::size_t open = readme.find("```\n", readme.find("```", at) + 3);
  REQUIRE(open != std::string::npos);
  const std::size_t start = open + 4;
  const std::string shown = readme.substr(start, readme.find("```", start) - start);
  CHECK(shown == run_spillway(command).out);
}

TEST_CASE("the project that docs/library.md shows is the one in tests/consumer") {
  const std::string page = read_text(testing::source_path("docs/library.md"));
  for (const std::string file : {"CMakeLists.txt", "main.cpp"}) {
    CAPTURE(file);
    const std::string language = file == "main.cpp" ? "cpp" : "cmake";
    const std::string text = read_text(testing::source_path("tests/consumer/" + file));
    CHECK(page.find("```" + language + "\n" + text + "```\n") != std::string::npos);
  }
}

}  // namespace
}  // namespace spillway
