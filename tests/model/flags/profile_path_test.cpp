// What is said about the profile that a flag names. What XLA does with each was tried with
// 0.12.0.1.
#include "model/flags/profile_path.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "model/flags/check_flags.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

TEST_CASE("names that XLA may read a profile from") {
  for (const char* path : {"a.pbtxt", "a.pb", "folder", "/v1.2/folder", "runs/v1.2", "a/b.c/d"}) {
    CAPTURE(path);
    CHECK(is_profile_path(path));
  }
  for (const char* path : {"", "a.txt", "a.pbtxt.gz", "a.textproto", "folder.x/a.json"}) {
    CAPTURE(path);
    CHECK_FALSE(is_profile_path(path));
  }
}

TEST_CASE("what stands at the path is looked at") {
  const testing::TemporaryFolder folder;
  const std::string text = "costs { name: \"fusion.1\" cost_us: 1 }\n";
  const std::string good = folder.write("good.pbtxt", text);
  const std::string torn = folder.write("torn.pbtxt", "costs { name: \"fu");
  const std::string misnamed = folder.write("text.pb", text);
  const std::string other = folder.write("text.txt", text);
  const std::string root = std::filesystem::path(good).parent_path().string();
  std::filesystem::create_directory(root + "/empty");
  struct Row {
    std::string path;
    std::string what;  ///< empty: nothing
  };
  const Row rows[] = {
      {"", ""},
      {good, ""},
      {root, ""},
      {torn, "XLA cannot read it: a string without an end"},
      {misnamed, "XLA cannot read it: no profile in protobuf's wire format"},
      {other, "XLA passes over '" + other + "' without a word"},
      {root + "/none.pbtxt", "there is no file '" + root + "/none.pbtxt' here"},
      {root + "/empty", "'" + root + "/empty' is a folder without a profile"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const auto fault = read_profile_fault(row.path);
    CHECK((fault ? fault->what : "") == row.what);
  }
}

TEST_CASE("a line of flags says so") {
  const FlagContext context{.jaxlib = {{0, 12, 0, 1}}, .gpu = GpuModel{"9.0", "NVIDIA H200"}};
  const auto flags =
      read_flags_or_file("--xla_gpu_pgle_profile_file_or_directory_path=/nowhere/step.pbtxt");
  REQUIRE(flags.ok());
  const auto found = check_flags(*flags, context);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "profile-not-read");
  CHECK(
      found[0].message() ==
      "--xla_gpu_pgle_profile_file_or_directory_path: there is no file '/nowhere/step.pbtxt' here. "
      "XLA goes on without a profile. Where the step is compiled it has to be there.");
}

}  // namespace
}  // namespace spillway
