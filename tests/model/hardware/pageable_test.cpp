#include "model/hardware/pageable.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

TEST_CASE("pageable copies have one rate, and never a better one than the link") {
  const HardwareProfile toy = parse_profile(std::string(testing::kToyProfile), "toy.yaml").value();
  const HardwareProfile slow = with_pageable_copies(toy, BytesPerSecond(1));
  CHECK(slow.link.host_to_device.value == BytesPerSecond(1));
  CHECK(slow.link.device_to_host.value == BytesPerSecond(1));
  CHECK(slow.link.both_directions.value == BytesPerSecond(1));
  const HardwareProfile fast = with_pageable_copies(toy, BytesPerSecond(3));
  CHECK(fast.link.host_to_device.value == BytesPerSecond(3));
  CHECK(fast.link.device_to_host.value == BytesPerSecond(2));
  CHECK(fast.link.both_directions.value == BytesPerSecond(3));
  CHECK(fast.device == toy.device);
}

}  // namespace
}  // namespace spillway
