#include "model/hardware/find_profile.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

using testing::kToyProfile;
using testing::toy_with;

/// Two folders: `mine` has toy and tor, `theirs` has another toy and one whose id is another.
struct Folders {
  Folders()
      : root((std::filesystem::temp_directory_path() / "spillway_find_profile_test").string()),
        mine(root + "/mine"),
        theirs(root + "/theirs") {
    std::filesystem::create_directories(mine + "/folder.yaml");
    std::filesystem::create_directories(theirs);
    std::ofstream(mine + "/toy.yaml") << kToyProfile;
    std::ofstream(mine + "/tor.yaml") << toy_with("id: toy", "id: tor");
    std::ofstream(mine + "/notes.txt") << "no profile";
    std::ofstream(theirs + "/toy.yaml") << toy_with("Toy machine", "Their toy");
    std::ofstream(theirs + "/odd.yaml") << toy_with("id: toy", "id: even");
  }
  ~Folders() { std::filesystem::remove_all(root); }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;

  std::string root, mine, theirs;
};

std::string error_of(const Result<HardwareProfile>& profile) {
  REQUIRE_FALSE(profile.ok());
  return to_text(profile.error());
}

TEST_CASE("profiles are listed once, in alphabetical order") {
  const Folders folders;
  const auto entries = list_profiles({{folders.mine, folders.root + "/none", folders.theirs}});
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].id == "odd");
  CHECK(entries[1].id == "tor");
  CHECK(entries[2].id == "toy");
  CHECK(entries[2].path == folders.mine + "/toy.yaml");
}

TEST_CASE("an id is looked up in the folders, the first one wins") {
  const Folders folders;
  CHECK(find_profile("toy", {{folders.mine, folders.theirs}})->name == "Toy machine");
  CHECK(find_profile("toy", {{folders.theirs, folders.mine}})->name == "Their toy");
  CHECK(find_profile("tor", {{folders.theirs, folders.mine}})->id == "tor");
}

TEST_CASE("a path is read as it is") {
  const Folders folders;
  CHECK(find_profile(folders.theirs + "/odd.yaml", {})->id == "even");
  CHECK(error_of(find_profile("nowhere.yaml", {})) ==
        "nowhere.yaml: error: cannot be opened: No such file or directory");
  CHECK(error_of(find_profile(folders.mine + "/", {})) ==
        folders.mine + "/: error: is a folder, not a file");
}

TEST_CASE("an id that nobody knows lists the known ones") {
  const Folders folders;
  const ProfileSearchPath search{{folders.mine}};
  const Result<HardwareProfile> profile = find_profile("TOYS", search);
  CHECK(error_of(profile) ==
        "error: no hardware profile is called 'TOYS'\n"
        "  did you mean 'toy'? known are tor, toy; or give a path to a .yaml file");
  CHECK(profile.error().kind == ErrorKind::kUsage);
  CHECK(error_of(find_profile("gb200", search)) ==
        "error: no hardware profile is called 'gb200'\n"
        "  known are tor, toy; or give a path to a .yaml file");
  CHECK(error_of(find_profile("gb200", {{folders.root + "/none"}})) ==
        "error: no hardware profile is called 'gb200'\n  no profile lies in " + folders.root +
            "/none");
  CHECK(error_of(find_profile("gb200", {})) ==
        "error: no hardware profile is called 'gb200'\n"
        "  no folder was searched; give the path of a profile");
}

TEST_CASE("a file found by its id must carry it") {
  const Folders folders;
  CHECK(error_of(find_profile("odd", {{folders.theirs}})) ==
        folders.theirs +
            "/odd.yaml: error: the profile's id is 'even'\n"
            "  in this folder a file is named after its id: even.yaml");
}

}  // namespace
}  // namespace spillway
