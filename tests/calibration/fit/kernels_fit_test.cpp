// Kernels, products, launches, interference and collectives of machines whose truth is known.
#include <doctest/doctest.h>

#include <cmath>

#include "calibration/fit/fit.h"
#include "calibration/fit/gemm_surface.h"
#include "tests/calibration/synthetic.h"

namespace spillway::calibration {
namespace {

using testing::line_of;
using testing::Noise;
using testing::off;
using testing::shipped_profile;

Fit fitted(const Measurements& measurements, const char* base = "h200") {
  return fit(measurements, shipped_profile(base), {.draws = 200});
}

void add_gemms(Measurements& to, const Surface& truth, const HardwareProfile& machine, Noise& noise,
               Operands operands = Operands::kRandom, bool lasting = false, double slower = 1) {
  for (const std::int64_t m : {256, 1024, 4096, 8192})
    for (const std::int64_t n : {256, 1024, 4096, 8192})
      for (const std::int64_t k : {256, 1024, 4096, 16384}) {
        GemmSample sample;
        sample.type = "bf16";
        sample.m = Count(m), sample.n = Count(n), sample.k = Count(k);
        sample.operands = operands;
        sample.lasting = lasting;
        sample.time = noise.measured(surface_time(sample, truth, machine) * slower);
        to.gemms.push_back(sample);
      }
}

TEST_CASE("the surface of matrix products comes back") {
  const HardwareProfile machine = shipped_profile("h200");
  for (int seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Noise noise(static_cast<std::uint64_t>(seed), 0.02, 0.05);
    const Surface truth = {1.1 + 0.3 * noise.uniform(), 4e-6 + 3e-6 * noise.uniform(),
                           1e-6 + 1e-6 * noise.uniform(), 0.3 + 0.4 * noise.uniform(),
                           0.4 + 0.5 * noise.uniform()};
    Measurements measurements;
    add_gemms(measurements, truth, machine, noise);
    const Fit result = fitted(measurements);
    const KernelCosts& kernels = result.profile.kernels;
    CHECK(off(kernels.gemm.at("bf16").value.value(), truth[0]) < 0.02);
    const GemmShape& shape = kernels.gemm_shape.at("bf16");
    CHECK(off(shape.overhead.value(), truth[1]) < 0.1);
    CHECK(off(shape.depth.value(), truth[2]) < 0.1);
    CHECK(off(shape.operands.value(), truth[3]) < 0.35);
    CHECK(off(shape.result.value(), truth[4]) < 0.35);
    CHECK(shape.origin.source.find("64 samples, overhead ") != std::string::npos);
    const FittedFigure* line = line_of(result, "kernels.gemm.bf16");
    REQUIRE(line != nullptr);
    CHECK(line->samples == 64);
    CHECK(line->median_error < 0.03);
    CHECK(!line->low.empty());
  }
}

TEST_CASE("intervals of the surface hold the truth in most runs") {
  const HardwareProfile machine = shipped_profile("h200");
  const Surface truth = {1.2, 5e-6, 1.5e-6, 0.47, 0.62};
  int held = 0;
  constexpr int kRuns = 12;
  for (int seed = 1; seed <= kRuns; ++seed) {
    Noise noise(static_cast<std::uint64_t>(seed) + 40, 0.02, 0);
    Measurements measurements;
    add_gemms(measurements, truth, machine, noise);
    std::vector<const GemmSample*> samples;
    for (const GemmSample& sample : measurements.gemms) samples.push_back(&sample);
    const SurfaceFit surface = fit_surface(samples, {1, 4e-6, 1e-6, 0.5, 0.5}, machine);
    for (std::size_t i = 0; i < truth.size(); ++i)
      held += surface.range[i] && surface.range[i]->low <= truth[i] &&
              surface.range[i]->high >= truth[i];
  }
  CHECK(held >= 48);  // of 60
}

TEST_CASE("lasting load is a factor of its own, zeros do not count") {
  const HardwareProfile machine = shipped_profile("h200");
  const Surface truth = {1.1, 5e-6, 1.5e-6, 0.47, 0.62};
  Noise noise(3, 0.01, 0);
  Measurements measurements;
  add_gemms(measurements, truth, machine, noise);
  add_gemms(measurements, truth, machine, noise, Operands::kRandom, true, 1.12);
  add_gemms(measurements, truth, machine, noise, Operands::kZeros, false, 0.8);
  const Fit result = fitted(measurements);
  CHECK(off(result.profile.kernels.gemm.at("bf16").value.value(), 1.1) < 0.02);
  CHECK(off(result.profile.kernels.gemm_power.at("bf16").value.value(), 1.12) < 0.02);
}

TEST_CASE("what products do not determine is refused") {
  const HardwareProfile machine = shipped_profile("h200");
  const Surface truth = {1.3, 5e-6, 1.5e-6, 0.47, 0.62};
  Noise noise(3, 0.01, 0);
  Measurements zeros;
  add_gemms(zeros, truth, machine, noise, Operands::kZeros);
  Measurements unknown_type;
  add_gemms(unknown_type, truth, machine, noise);
  for (GemmSample& sample : unknown_type.gemms) sample.type = "f4";
  Measurements tiny;
  add_gemms(tiny, truth, machine, noise);
  std::erase_if(tiny.gemms, [](const GemmSample& s) {
    return s.m > Count(256) || s.n > Count(256) || s.k > Count(1024);
  });
  struct Row {
    const char* name;
    const Measurements& measurements;
    const char* key;
    const char* why;
  };
  const Row rows[] = {
      {"zeros", zeros, "kernels.gemm.bf16", "all products are of zeros"},
      {"a type without a peak", unknown_type, "kernels.gemm.f4", "the base profile has no"},
      {"tiny shapes", tiny, "kernels.gemm.bf16", "memory and start-up decide these shapes"}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Fit result = fitted(row.measurements);
    const FittedFigure* line = line_of(result, row.key);
    REQUIRE(line != nullptr);
    CHECK(line->state == FigureState::kRefused);
    CHECK_MESSAGE(line->why.starts_with(row.why), line->why);
    CHECK(result.profile.kernels == machine.kernels);
  }
}

TEST_CASE("memory-bound kernels, launches and gaps come back") {
  Noise noise(9, 0.02, 0.05);
  Measurements measurements;
  for (const std::int64_t gib : {1, 2, 4, 8})
    for (int i = 0; i < 8; ++i) {
      const Bytes bytes(gib << 30);
      const Seconds truth(4e-6 + 1.2 * (bytes / BytesPerSecond(4.8e12)).value());
      measurements.traffic.push_back(
          {TrafficKernel::kElementwise, bytes, noise.measured(truth), {}});
    }
  for (int i = 0; i < 40; ++i) {
    measurements.launches.push_back({LaunchCost::kFloor, noise.measured(Seconds(2e-6)), {}});
    measurements.launches.push_back({LaunchCost::kGap, noise.measured(Seconds(0.9e-6)), {}});
  }
  const KernelCosts kernels = fitted(measurements).profile.kernels;
  CHECK(off(kernels.elementwise.value.value(), 1.2) < 0.02);
  CHECK(off(kernels.launch_floor.value.value(), 2e-6) < 0.02);
  CHECK(off(kernels.gap.value.value(), 0.9e-6) < 0.02);
  CHECK(kernels.transpose == shipped_profile("h200").kernels.transpose);
}

TEST_CASE("kernels that fit into the caches say nothing of memory") {
  Measurements measurements;
  measurements.traffic.push_back({TrafficKernel::kCopy, Bytes(1 << 20), Seconds(3e-6), {}});
  const Fit result = fitted(measurements);
  const FittedFigure* line = line_of(result, "kernels.copy");
  REQUIRE(line != nullptr);
  CHECK(line->state == FigureState::kRefused);
}

TEST_CASE("what copies take of memory, and when that cannot be said") {
  const auto with_slowdown = [](double per_byte, double spread) {
    Noise noise(11, spread, 0);
    Measurements measurements;
    for (int i = 0; i < 30; ++i) {
      InterferenceSample sample;
      sample.host_to_device = true;
      sample.copy_rate = BytesPerSecond(200e9);
      sample.kernel_traffic = BytesPerSecond(4e12);
      const double slow = 1 / (1 - per_byte * 200e9 / 4e12);
      sample.kernel_slowdown = Factor(noise.measured(Seconds(slow)).value());
      measurements.interference.push_back(sample);
    }
    return fitted(measurements);
  };
  const Fit clear = with_slowdown(1.5, 0.005);
  const FittedFigure* line = line_of(clear, "interference.hbm_traffic");
  REQUIRE(line != nullptr);
  CHECK(off(parse_units<Factor>(line->after)->value(), 1.5) < 0.1);
  CHECK(clear.warnings.front().code == "hbm-traffic");
  CHECK(line_of(clear, "interference.memory_kernel.host_to_device.kernel") != nullptr);
  const Fit noisy = with_slowdown(1.5, 0.2);
  CHECK(line_of(noisy, "interference.hbm_traffic")->state == FigureState::kRefused);
}

TEST_CASE("collectives come back by group size") {
  Noise noise(13, 0.03, 0.03);
  Measurements measurements;
  for (const std::int64_t gpus : {2, 8})
    for (int power = 16; power <= 30; ++power)
      for (int i = 0; i < 5; ++i) {
        const Bytes bytes(std::int64_t{1} << power);
        const double t =
            static_cast<double>(bytes.value()) * double(gpus - 1) / double(gpus) / 350e9;
        const Seconds truth(15e-6 + t + 2 * std::sqrt(3e-6 * t));
        measurements.collectives.push_back(
            {Collective::kAllGather, Count(gpus), bytes, noise.measured(truth), {}});
      }
  const Fit result = fitted(measurements);
  const CollectiveCosts& costs = result.profile.scale_up.all_gather;
  const CollectiveCosts before = shipped_profile("h200").scale_up.all_gather;
  REQUIRE(costs.fits.size() == 3);
  CHECK(costs.fits[1] == before.fits[1]);  // of 4 GPUs, which nobody measured
  CHECK(costs.origin.source.find("150 samples") != std::string::npos);
  CHECK(costs.origin.source.find("; groups of 4 as in the base: " + before.origin.source) !=
        std::string::npos);
  const FittedFigure* line = line_of(result, "fabric.scale_up.all_gather.8_gpus");
  REQUIRE(line != nullptr);
  CHECK(line->change ==
        doctest::Approx(ratio(costs.fits[2].bus_bandwidth, before.fits[2].bus_bandwidth) - 1));
  for (const CollectiveFit& fit : {costs.fits[0], costs.fits[2]}) {
    CHECK(off(fit.latency.value(), 15e-6) < 0.1);
    CHECK(off(fit.bus_bandwidth.value(), 350e9) < 0.05);
    CHECK(off(fit.pipeline.value(), 3e-6) < 0.5);
  }
  CHECK(result.profile.scale_up.all_reduce == shipped_profile("h200").scale_up.all_reduce);
}

TEST_CASE("another machine's samples are said to be that") {
  Measurements measurements;
  measurements.machine.device = "NVIDIA GB200";
  measurements.machine.sm_count = Count(152);
  measurements.machine.gpus_per_cpu = Count(2);
  const Fit result = fitted(measurements);
  CHECK(result.warnings.size() == 2);
  CHECK(result.warnings.front().code == "other-device");
  CHECK(result.profile.host.gpus_per_cpu.value == Count(2));
}

TEST_CASE("no samples, no change") {
  const Fit result = fitted({});
  CHECK(result.profile == shipped_profile("h200"));
  CHECK(result.warnings.empty());
  for (const FittedFigure& figure : result.figures) {
    CHECK(figure.state == FigureState::kKept);
    CHECK(figure.after == figure.before);
  }
}

}  // namespace
}  // namespace spillway::calibration
