// A binary that was installed knows the profiles beside it, and nothing of the tree it was built
// in.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

TEST_CASE("an installed binary finds the profiles of its own folder and no others") {
  namespace fs = std::filesystem;
  const testing::TemporaryFolder folder;
  const std::string profiles = folder.path("share/spillway/hw_profiles");
  fs::create_directories(folder.path("bin"));
  fs::create_directories(profiles);
  fs::copy_file(SPILLWAY_BINARY, folder.path("bin/spillway"));
  const auto list = [&] {
    const std::string command = "cd '" + folder.path("") + "' && env -u SPILLWAY_HW_PROFILES bin/" +
                                "spillway hw list >out 2>err";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  CHECK(list() == 3);
  CHECK(testing::read_text(folder.path("err")) ==
        "error: no hardware profile lies in " + profiles + "\n");
  fs::copy_file(testing::source_path("hw_profiles/h100.yaml"), profiles + "/h100.yaml");
  CHECK(list() == 0);
  const std::string out = testing::read_text(folder.path("out"));
  CHECK(out.find("h100 ") != std::string::npos);
  CHECK(out.find("gb200") == std::string::npos);
}

}  // namespace
}  // namespace spillway
