#include "model/hardware/write_profile.h"

#include <doctest/doctest.h>

#include "model/hardware/find_profile.h"
#include "model/hardware/read_profile.h"
#include "tests/golden.h"
#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

HardwareProfile parsed(const std::string& text) {
  const Result<HardwareProfile> profile = parse_profile(text, "toy.yaml");
  REQUIRE_MESSAGE(profile.ok(), to_text(profile.error()));
  return *profile;
}

TEST_CASE("every shipped profile reads back as it was written") {
  const ProfileSearchPath shipped{{testing::source_path("hw_profiles")}};
  for (const ProfileEntry& entry : list_profiles(shipped)) {
    CAPTURE(entry.id);
    const HardwareProfile profile = find_profile(entry.id, shipped).value();
    CHECK(parsed(to_yaml(profile, "two\nlines")) == profile);
  }
}

TEST_CASE("quotes, backslashes and control characters survive") {
  HardwareProfile profile = parsed(std::string(testing::kToyProfile));
  profile.name = "a \"quoted\" \\ name,\nof two lines";
  profile.link.host_to_device.origin.source = "bench: 30 samples, 3.5 to 4.25 B/s # no comment";
  const std::string text = to_yaml(profile);
  CHECK(parsed(text) == profile);
  CHECK(text.find("  host_to_device: {value: \"4 B/s\", origin: measured, source: \"bench: 30 "
                  "samples, 3.5 to 4.25 B/s # no comment\"}\n") != std::string::npos);
}

}  // namespace
}  // namespace spillway
