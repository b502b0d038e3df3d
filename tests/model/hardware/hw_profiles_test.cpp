// The profiles that come with Spillway.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/hardware/check_profile.h"
#include "model/hardware/find_profile.h"
#include "model/hardware/read_profile.h"
#include "tests/golden.h"

namespace spillway {
namespace {

ProfileSearchPath shipped() { return {{testing::source_path("hw_profiles")}}; }

HardwareProfile profile_of(std::string_view id) {
  Result<HardwareProfile> profile = find_profile(id, shipped());
  REQUIRE_MESSAGE(profile.ok(), to_text(profile.error()));
  return std::move(profile).value();
}

TEST_CASE("every profile reads and checks clean") {
  const std::vector<ProfileEntry> entries = list_profiles(shipped());
  CHECK(entries.size() == 9);
  for (const ProfileEntry& entry : entries) {
    CAPTURE(entry.id);
    const HardwareProfile profile = profile_of(entry.id);
    for (const Finding& finding : check_profile(profile))
      FAIL_CHECK(finding.key << ": " << finding.text);
  }
}

/// The link model of docs/hardware-profiles.md: a GPU takes at most H, D and B, the GPUs of a CPU
/// at most M together. What one of them then copies into the device, in GB/s.
TEST_CASE("GB200's link explains what nvbandwidth measured") {
  const HardwareProfile gb200 = profile_of("gb200");
  const double one_gpu = gb200.link.both_directions.value.value() / 2 / 1e9;
  CHECK(one_gpu == doctest::Approx(164.8).epsilon(0.01));
  const double shared = 2.0 * static_cast<double>(gb200.host.gpus_per_cpu.value.value()) * 1e9;
  CHECK(gb200.host.memory_bandwidth.value.value() / shared == doctest::Approx(82.0).epsilon(0.01));
  CHECK(gb200.host.memory_bandwidth_read->value.value() / 2e9 ==
        doctest::Approx(168.5).epsilon(0.01));
  CHECK(gb200.host.memory_bandwidth_write->value.value() / 2e9 ==
        doctest::Approx(182.1).epsilon(0.01));
}

TEST_CASE("what others count on") {
  struct Row {
    const char* id;
    const char* xla_name;
    const char* compute_capability;
    Bytes hbm;
    LinkKind link;
    int gpus_per_cpu, gpus_per_host, domain;
  };
  const Row rows[] = {
      {"a100", "NVIDIA A100-SXM4-80GB", "8.0", Bytes(85'100'068'864), LinkKind::kPcie, 4, 8, 8},
      {"gh200", "NVIDIA GH200 480GB", "9.0", Bytes(102'005'473'280), LinkKind::kNvlinkC2c, 1, 1, 1},
      {"vr200", "NVIDIA VR NVL72", "10.7", Bytes(299'103'551'488), LinkKind::kNvlinkC2c, 2, 4, 72},
      {"b200", "NVIDIA B200", "10.0", Bytes(191'514'411'008), LinkKind::kPcie, 4, 8, 8},
      {"gb300", "NVIDIA GB300", "10.3", Bytes(297'021'079'552), LinkKind::kNvlinkC2c, 2, 4, 72},
      {"gb200", "NVIDIA GB200", "10.0", Bytes(197'897'748'480), LinkKind::kNvlinkC2c, 2, 4, 72},
      {"h100", "NVIDIA H100 80GB HBM3", "9.0", Bytes(84'942'979'072), LinkKind::kPcie, 4, 8, 8},
      {"h200", "NVIDIA H200 141GB HBM3e", "9.0", Bytes(151'397'597'184), LinkKind::kPcie, 4, 8, 8},
      {"rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell", "12.0", Bytes(103'079'215'104),
       LinkKind::kPcie, 4, 8, 8}};
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const HardwareProfile profile = profile_of(row.id);
    CHECK(profile.device.xla_name == row.xla_name);
    CHECK(profile.device.compute_capability == row.compute_capability);
    CHECK(profile.device.hbm_capacity.value == row.hbm);
    CHECK(profile.link.kind == row.link);
    CHECK(profile.host.gpus_per_cpu.value == Count(row.gpus_per_cpu));
    CHECK(gpus_per_host(profile.host) == Count(row.gpus_per_host));
    CHECK(profile.scale_up.domain_gpus.value == Count(row.domain));
  }
}

TEST_CASE("C2C is 225 GB/s for a GPU, not 450 or 900") {
  const HostLink link = profile_of("gb200").link;
  CHECK(link.cap_per_direction.value < BytesPerSecond(225e9));
  CHECK(link.host_to_device.value == BytesPerSecond(200.7e9));
  CHECK(link.device_to_host.value == BytesPerSecond(193.5e9));
}

}  // namespace
}  // namespace spillway
