#include "model/hardware/check_profile.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "model/hardware/read_profile.h"
#include "tests/golden.h"

namespace spillway {
namespace {

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += std::string(finding.severity == Finding::Severity::kError ? "error " : "warning ") +
            finding.key + ": " + finding.text + "\n";
  return text;
}

TEST_CASE("figures that do not fit together are found") {
  const Result<HardwareProfile> gb200 =
      read_profile(testing::source_path("hw_profiles/gb200.yaml"));
  REQUIRE_MESSAGE(gb200.ok(), to_text(gb200.error()));
  using P = HardwareProfile;
  using BPS = BytesPerSecond;
  struct Row {
    const char* name;
    std::function<void(P&)> spoil;
    std::string expected;
  };
  const Row rows[] = {
      {"nothing wrong", [](P&) {}, ""},
      {"both directions exceed their sum", [](P& p) { p.link.both_directions.value = BPS(400e9); },
       "error link.both_directions: 400 GB/s exceeds the sum of the directions, 394.2 GB/s\n"
       "error host.memory_bandwidth: 328.3 GB/s is below what one GPU alone copies, 400 GB/s\n"},
      {"both directions below one", [](P& p) { p.link.both_directions.value = BPS(190e9); },
       "error link.both_directions: 190 GB/s is below one direction alone, 200.7 GB/s\n"},
      {"the naive 900 / 2", [](P& p) { p.link.host_to_device.value = BPS(450e9); },
       "error link.host_to_device: 450 GB/s exceeds the cap of a direction, 223.56 GB/s\n"
       "error link.both_directions: 327.4 GB/s is below one direction alone, 450 GB/s\n"
       "error host.memory_bandwidth_read: 337.1 GB/s is below what one GPU alone copies, 450 "
       "GB/s\n"},
      {"a link that trained down", [](P& p) { p.link.device_to_host.value = BPS(20e9); },
       "error link.both_directions: 327.4 GB/s exceeds the sum of the directions, 220.7 GB/s\n"
       "warning link.device_to_host: 20 GB/s is less than half of the cap, 223.56 GB/s: a link "
       "that "
       "trained down, or pageable memory?\n"},
      {"XLA's PCIe field taken for the link", [](P& p) { p.link.kind = LinkKind::kPcie; },
       "warning link.cap_per_direction: 223.56 GB/s is outside the usual 3 GB/s to 130 GB/s\n"},
      {"HBM in GB/s taken for TB/s", [](P& p) { p.device.hbm_bandwidth.value = BPS(7.9e9); },
       "warning device.hbm_bandwidth: 7.9 GB/s is outside the usual 100 GB/s to 50 TB/s\n"
       "error link.cap_per_direction: 223.56 GB/s exceeds the HBM bandwidth, 7.9 GB/s\n"},
      {"a peak with sparsity",
       [](P& p) { p.device.matrix_peak["bf16"].value = FlopsPerSecond(5e15); },
       "warning device.matrix_peak.bf16: 5 PFLOP/s is +108 % off 152 SMs x 8192 FLOP per clock x "
       "1.9259081 GHz, 2398.1 TFLOP/s\n"
       "error device.matrix_peak.f8: 4.7962 PFLOP/s is below that of bf16, 5 PFLOP/s\n"},
      {"half the SMs", [](P& p) { p.device.sm_count.value = Count(76); },
       "warning device.matrix_peak.bf16: 2.3981 PFLOP/s is +100 % off 76 SMs x 8192 FLOP per clock "
       "x "
       "1.9259081 GHz, 1199.1 TFLOP/s\n"
       "warning device.vector_peak.f32: 80.2 TFLOP/s is +100 % off 76 SMs x 256 FLOP per clock x "
       "2.062 GHz, 40.1 TFLOP/s\n"},
      {"an A100, whose SMs do half as many f32 operations",
       [](P& p) {
         p.device.compute_capability = "8.0";
         p.device.sm_count.value = Count(108);
         p.device.clock.value = p.device.matrix_clock.value = Hertz(1.41e9);
         p.device.matrix_peak = {{"bf16", {FlopsPerSecond(312e12), {}}}};
         p.device.vector_peak = {{"f32", {FlopsPerSecond(19.5e12), {}}}};
       },
       ""},
      {"a GPU whose SMs are not known", [](P& p) { p.device.compute_capability = "99.0"; }, ""},
      {"a reserve that leaves little", [](P& p) { p.device.reserve.value = Bytes(60'000'000'000); },
       "warning device.reserve: 60 GB is more than a quarter of the HBM\n"},
      {"no bf16", [](P& p) { p.kernels.gemm.erase("bf16"); },
       "error kernels.gemm: bf16 is missing\n"},
      {"faster than the roofline", [](P& p) { p.kernels.copy.value = Factor(0.5); },
       "warning kernels.copy: 0.5 x is faster than the roofline\n"},
      {"power that speeds up", [](P& p) { p.kernels.gemm_power["bf16"].value = Factor(0.9); },
       "warning kernels.gemm_power.bf16: 0.9 x is faster than the roofline\n"},
      {"an overhead in milliseconds",
       [](P& p) { p.kernels.gemm_shape["bf16"].overhead = Seconds(5e-3); },
       "warning kernels.gemm_shape.bf16.overhead: 5 ms is outside the usual 0 s to 50 us\n"},
      {"few channels faster than all",
       [](P& p) {
         p.scale_up.collective_permute.fits.back().few_channels = {BPS(800e9), Bytes(1000)};
       },
       "error fabric.scale_up.collective_permute: a few channels among 72 GPUs, 800 GB/s, are "
       "faster "
       "than all, 667 GB/s\n"},
      {"a gap in milliseconds", [](P& p) { p.kernels.gap.value = Seconds(1.1e-3); },
       "warning kernels.gap: 1.1 ms is outside the usual 0 s to 50 us\n"},
      {"a group beyond the domain", [](P& p) { p.scale_up.domain_gpus.value = Count(64); },
       "error fabric.scale_up.all_gather: a group of 72 GPUs does not fit the domain of 64\n"
       "error fabric.scale_up.reduce_scatter: a group of 72 GPUs does not fit the domain of 64\n"
       "error fabric.scale_up.all_reduce: a group of 72 GPUs does not fit the domain of 64\n"
       "error fabric.scale_up.all_to_all: a group of 72 GPUs does not fit the domain of 64\n"
       "error fabric.scale_up.collective_permute: a group of 72 GPUs does not fit the domain of "
       "64\n"},
      {"a domain that cuts a host", [](P& p) { p.scale_up.domain_gpus.value = Count(74); },
       "warning fabric.scale_up.domain_gpus: 74 GPUs are no whole number of hosts of 4\n"},
      {"a collective faster than its link",
       [](P& p) { p.scale_up.all_gather.fits.back().bus_bandwidth = BPS(1e12); },
       "error fabric.scale_up.all_gather: 1 TB/s among 72 GPUs exceeds the link, 900 GB/s\n"},
      {"an all-reduce that the switches speed up",
       [](P& p) { p.scale_up.all_reduce.fits.back().bus_bandwidth = BPS(919e9); }, ""},
      {"a network in Gb/s", [](P& p) { p.scale_out.nic_bandwidth.value = BPS(400e9); },
       "error fabric.scale_out.nic_bandwidth: 400 GB/s exceeds the line rate, 50 GB/s\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    HardwareProfile profile = *gb200;
    row.spoil(profile);
    CHECK(text_of(check_profile(profile)) == row.expected);
  }
}

TEST_CASE("a profile that was never filled in is full of findings, and does no harm") {
  CHECK(check_profile(HardwareProfile{}).size() > 10);
}

}  // namespace
}  // namespace spillway
