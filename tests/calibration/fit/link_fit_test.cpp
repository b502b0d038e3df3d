// Copies of machines whose truth is known.
#include "calibration/fit/link_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/calibration/synthetic.h"

namespace spillway::calibration {
namespace {

using testing::copy_of;
using testing::line_of;
using testing::Noise;
using testing::off;
using testing::shipped_profile;

constexpr auto kIn = CopyDirection::kHostToDevice;
constexpr auto kOut = CopyDirection::kDeviceToHost;
constexpr auto kQueued = CopyRegime::kQueued;
constexpr auto kIsolated = CopyRegime::kIsolated;

struct Truth {
  double queued, isolated, rate;  // s, s, B/s
};

/// Sizes of the probe: powers of two and points between, `repetitions` of each.
void add_sweep(Measurements& to, CopyDirection direction, CopyRegime regime, const Truth& truth,
               Noise& noise, int repetitions = 10, int from = 12, int up_to = 30) {
  for (int power = from; power <= up_to; ++power)
    for (int i = 0; i < repetitions; ++i) {
      const Bytes bytes(std::int64_t{1} << power);
      const double start = regime == kQueued ? truth.queued : truth.isolated;
      const Seconds time(start + static_cast<double>(bytes.value()) / truth.rate);
      to.copies.push_back(copy_of(direction, regime, bytes, noise.measured(time)));
    }
}

/// Rates of one size, such as nvbandwidth's.
void add_rates(Measurements& to, CopyDirection direction, bool both_ways, int gpus, double rate,
               Noise& noise, int n = 8) {
  for (int i = 0; i < n; ++i) {
    CopySample sample = copy_of(direction, kQueued, Bytes(std::int64_t{512} << 20),
                                noise.measured(Seconds(536870912 / rate)));
    sample.both_ways = both_ways;
    sample.gpus_at_once = gpus;
    to.copies.push_back(sample);
  }
}

Fit fitted(const Measurements& measurements, const char* base = "h200") {
  return fit(measurements, shipped_profile(base), {.draws = 200});
}

TEST_CASE("start-ups and rates come back, whatever the machine") {
  for (int seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Noise noise(static_cast<std::uint64_t>(seed));
    const Truth in{2e-6 + 4e-6 * noise.uniform(), 8e-6 + 12e-6 * noise.uniform(),
                   20e9 + 30e9 * noise.uniform()};
    const Truth out{in.queued, in.isolated, 20e9 + 30e9 * noise.uniform()};
    Measurements measurements;
    for (const auto& [direction, truth] : {std::pair(kIn, in), std::pair(kOut, out)}) {
      add_sweep(measurements, direction, kQueued, truth, noise);
      add_sweep(measurements, direction, kIsolated, truth, noise);
    }
    const Fit result = fitted(measurements);
    const HostLink& link = result.profile.link;
    CHECK(off(link.host_to_device.value.value(), in.rate) < 0.02);
    CHECK(off(link.device_to_host.value.value(), out.rate) < 0.02);
    CHECK(off(link.copy_latency.value.value(), in.queued) < 0.12);
    const FittedFigure* rate = line_of(result, "link.host_to_device");
    REQUIRE(rate != nullptr);
    CHECK(rate->state == FigureState::kFitted);
    CHECK(rate->samples == 300);  // of 64 KiB and more
    CHECK(rate->median_error < 0.03);
    CHECK(!rate->low.empty());
    CHECK(link.host_to_device.origin.kind == OriginKind::kMeasured);
    CHECK(link.host_to_device.origin.source.find("300 samples, ") != std::string::npos);
    const FittedFigure* isolated = line_of(result, "copy.isolated_latency.host_to_device");
    REQUIRE(isolated != nullptr);
    CHECK(off(parse_units<Seconds>(isolated->after)->value(), in.isolated) < 0.12);
    CHECK(result.curves.size() == 4);
  }
}

TEST_CASE("the interval of the rate holds the truth in most runs") {
  int held = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    Noise noise(static_cast<std::uint64_t>(seed) + 100);
    Measurements measurements;
    add_sweep(measurements, kIn, kQueued, {3e-6, 0, 50e9}, noise);
    const FittedFigure* line = nullptr;
    const Fit result = fitted(measurements);
    line = line_of(result, "link.host_to_device");
    REQUIRE(line != nullptr);
    held += parse_units<BytesPerSecond>(line->low)->value() <= 50e9 &&
            parse_units<BytesPerSecond>(line->high)->value() >= 50e9;
  }
  CHECK(held >= 16);
}

TEST_CASE("the same samples give the same profile, in any order") {
  Noise noise(5);
  Measurements measurements;
  add_sweep(measurements, kIn, kQueued, {3e-6, 0, 50e9}, noise);
  const HardwareProfile first = fitted(measurements).profile;
  CHECK(fitted(measurements).profile == first);
  std::reverse(measurements.copies.begin(), measurements.copies.end());
  CHECK(fitted(measurements).profile == first);
}

TEST_CASE("an outlying size is named, with where it was read") {
  Noise noise(1, 0.005, 0);
  Measurements measurements;
  add_sweep(measurements, kIn, kQueued, {3e-6, 0, 50e9}, noise, 1);
  for (CopySample& sample : measurements.copies)
    if (*sample.bytes == Bytes(std::int64_t{8} << 20)) sample.rate = sample.rate / 4;
  const Fit result = fitted(measurements);
  const FittedFigure* line = line_of(result, "link.host_to_device");
  REQUIRE(line != nullptr);
  REQUIRE(line->outliers.size() == 1);
  CHECK(line->outliers[0].what.starts_with("8.00 MiB at 12."));
  CHECK(line->outliers[0].where.line == 8192);
  CHECK(off(line->outliers[0].residual, 0.25 - 1) < 0.03);
  CHECK(off(result.profile.link.host_to_device.value.value(), 50e9) < 0.01);
}

TEST_CASE("what the samples do not determine is refused, and stays") {
  struct Row {
    const char* name;
    int from, up_to;  // powers of two
    CopyRegime regime;
    const char* key;
    const char* why;
  };
  const Row rows[] = {
      {"one size", 29, 29, kQueued, "link.copy_latency", "all copies are of one size"},
      {"large sizes alone", 26, 30, kQueued, "link.copy_latency",
       "even of the smallest copies, 64.00 MiB, the start-up is only"},
      {"small sizes alone", 12, 15, kQueued, "link.host_to_device", "all copies are below 64 KiB"},
      {"nothing large", 16, 18, kQueued, "link.host_to_device",
       "the largest copies are of 256.00 KiB"},
      {"the host waits", 12, 30, kIsolated, "link.copy_latency", "all copies are isolated"},
  };
  const HardwareProfile base = shipped_profile("h200");
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Noise noise(3, 0.01, 0);
    Measurements measurements;
    add_sweep(measurements, kIn, row.regime, {3e-6, 12e-6, 50e9}, noise, 5, row.from, row.up_to);
    const Fit result = fitted(measurements);
    const FittedFigure* line = line_of(result, row.key);
    REQUIRE(line != nullptr);
    CHECK(line->state == FigureState::kRefused);
    CHECK_MESSAGE(line->why.starts_with(row.why), line->why);
    CHECK(line->after == line->before);
    if (std::string_view(row.key) == "link.copy_latency")
      CHECK(result.profile.link.copy_latency == base.link.copy_latency);
    else
      CHECK(result.profile.link.host_to_device == base.link.host_to_device);
  }
}

TEST_CASE("slow copies do not count, and are told") {
  Noise noise(3, 0.01, 0);
  Measurements measurements;
  add_sweep(measurements, kIn, kQueued, {3e-6, 0, 50e9}, noise);
  const std::size_t plain = measurements.copies.size();
  add_sweep(measurements, kIn, kQueued, {9e-6, 0, 12e9}, noise);
  for (std::size_t i = plain; i < measurements.copies.size(); ++i)
    measurements.copies[i].pages = HostPages::kPageable;
  const Fit result = fitted(measurements);
  CHECK(off(result.profile.link.host_to_device.value.value(), 50e9) < 0.02);
  const FittedFigure* pageable = line_of(result, "copy.pageable.host_to_device");
  REQUIRE(pageable != nullptr);
  CHECK(off(parse_units<BytesPerSecond>(pageable->after)->value(), 12e9) < 0.02);
}

TEST_CASE("huge copies that are slower have a second slope") {
  Noise noise(4, 0.01, 0);
  Measurements measurements;
  for (int power = 16; power <= 34; ++power) {
    const double n = std::pow(2.0, power), knee = std::pow(2.0, 30);
    const Seconds time(3e-6 + n / 25e9 + std::max(0.0, n - knee) / 50e9);
    measurements.copies.push_back(
        copy_of(kIn, kQueued, Bytes(std::int64_t{1} << power), noise.measured(time)));
  }
  const Fit result = fitted(measurements);
  CHECK(off(result.profile.link.host_to_device.value.value(), 25e9) < 0.02);
  bool told = false;
  for (const Warning& warning : result.warnings) told = told || warning.code == "second-slope";
  CHECK(told);
}

TEST_CASE("both ways, and what the GPUs of a CPU share") {
  Noise noise(6, 0.005, 0.02);
  Measurements measurements;  // GB200's figures, in GB/s
  add_rates(measurements, kIn, false, 1, 200e9, noise);
  add_rates(measurements, kOut, false, 1, 193e9, noise);
  add_rates(measurements, kIn, true, 1, 164e9, noise);
  add_rates(measurements, kOut, true, 1, 162e9, noise);
  add_rates(measurements, kIn, false, 4, 168e9, noise);
  add_rates(measurements, kOut, false, 4, 182e9, noise);
  add_rates(measurements, kIn, true, 4, 82e9, noise);
  add_rates(measurements, kOut, true, 4, 81e9, noise);
  const HardwareProfile profile = fitted(measurements, "gb200").profile;
  CHECK(off(profile.link.both_directions.value.value(), 326e9) < 0.01);
  CHECK(off(profile.link.host_to_device_beside->value.value(), 164e9) < 0.01);
  CHECK(off(profile.host.memory_bandwidth.value.value(), 326e9) < 0.01);
  CHECK(off(profile.host.memory_bandwidth_read->value.value(), 336e9) < 0.01);
  CHECK(off(profile.host.memory_bandwidth_write->value.value(), 364e9) < 0.01);
}

TEST_CASE("memory that slows nobody is not what bound") {
  Noise noise(6, 0.005, 0);
  Measurements measurements;
  add_rates(measurements, kIn, false, 1, 55e9, noise);
  add_rates(measurements, kIn, false, 8, 54.9e9, noise);
  const Fit result = fitted(measurements);
  CHECK(!result.profile.host.memory_bandwidth_read.has_value());
  const FittedFigure* line = line_of(result, "host.memory_bandwidth_read");
  REQUIRE(line != nullptr);
  CHECK(line->state == FigureState::kRefused);
  CHECK(line->why.starts_with("4 GPUs at once are not slowed"));
}

TEST_CASE("half of what both ways need is no sum") {
  Noise noise(6);
  Measurements measurements;
  add_rates(measurements, kIn, true, 1, 52e9, noise);
  const Fit result = fitted(measurements);
  const FittedFigure* line = line_of(result, "link.both_directions");
  REQUIRE(line != nullptr);
  CHECK(line->state == FigureState::kRefused);
  CHECK(line->why ==
        "both ways at once: only host to device was measured, and its share of the "
        "sum is not known");
}

TEST_CASE("rows cost time beside their bytes") {
  Noise noise(8, 0.01, 0);
  Measurements measurements;
  add_sweep(measurements, kIn, kQueued, {3e-6, 0, 50e9}, noise);
  for (const std::int64_t row : {512, 4096, 32768, 262144})
    for (int i = 0; i < 10; ++i) {
      const Bytes bytes(std::int64_t{64} << 20);
      const std::int64_t rows = bytes.value() / row;
      const Seconds time(3e-6 + static_cast<double>(bytes.value()) / 50e9 +
                         static_cast<double>(rows) * 20e-9);
      CopySample sample = copy_of(kIn, kQueued, bytes, noise.measured(time));
      sample.rows = Rows{Bytes(row), Bytes(row * 4), Count(rows)};
      measurements.copies.push_back(sample);
    }
  const Fit result = fitted(measurements);
  const FittedFigure* line = line_of(result, "copy.row.host_to_device");
  REQUIRE(line != nullptr);
  CHECK(off(parse_units<Seconds>(line->after)->value(), 20e-9) < 0.05);
  CHECK(off(result.profile.link.host_to_device.value.value(), 50e9) < 0.02);
}

TEST_CASE("a cap read from an idle link is no cap") {
  Measurements measurements;
  measurements.link_caps.push_back({BytesPerSecond(4e9), "PCIe gen 1 x16", false, {}});
  const Fit idle = fitted(measurements);
  const FittedFigure* line = line_of(idle, "link.cap_per_direction");
  REQUIRE(line != nullptr);
  CHECK(line->state == FigureState::kRefused);
  measurements.link_caps.push_back({BytesPerSecond(63e9), "PCIe gen 5 x16", true, {}});
  CHECK(fitted(measurements).profile.link.cap_per_direction.value == BytesPerSecond(63e9));
}

TEST_CASE("a cap below rates: those measured raise it, those of the base refuse it") {
  struct Row {
    const char* name;
    double in, out;  // measured, in GB/s; 0: not
    const char* warning;
    double cap;
  };
  const Row rows[] = {{"no copies", 0, 0, "other-link", 63},
                      {"one way", 27, 0, "other-link", 63},
                      {"both ways", 27, 26, "", 31.51},
                      {"faster than the cap", 27, 40, "above-cap", 40}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Noise noise(6, 0, 0);
    Measurements measurements;
    measurements.link_caps.push_back({BytesPerSecond(31.51e9), "PCIe gen 5 x8", true, {}});
    if (row.in > 0) add_rates(measurements, kIn, false, 1, row.in * 1e9, noise);
    if (row.out > 0) add_rates(measurements, kOut, false, 1, row.out * 1e9, noise);
    const Fit result = fitted(measurements);
    const BytesPerSecond cap = result.profile.link.cap_per_direction.value;
    CHECK(off(cap.value(), row.cap * 1e9) < 1e-4);
    CHECK(line_of(result, "link.cap_per_direction")->after == to_units_text(cap));
    for (const std::string_view code : {"other-link", "above-cap"})
      CHECK(std::ranges::any_of(result.warnings, [&](const Warning& warning) {
              return warning.code == code;
            }) == (code == row.warning));
  }
}

TEST_CASE("both ways of directions that changed apart stay within each") {
  Noise noise(6, 0, 0);
  Measurements measurements;
  add_rates(measurements, kIn, false, 1, 40e9, noise);
  add_rates(measurements, kOut, false, 1, 50e9, noise);
  const Fit result = fitted(measurements);
  CHECK(result.profile.link.host_to_device_beside->value <= BytesPerSecond(40e9));
  CHECK_FALSE(result.impossible);
}

TEST_CASE("the error and the interval of one size are those of its samples") {
  const auto of_gpus = [](std::vector<double> gigabytes) {
    Measurements measurements;
    for (const double rate : gigabytes) {
      CopySample sample;
      sample.regime = kQueued;
      sample.rate = BytesPerSecond(rate * 1e9);
      measurements.copies.push_back(sample);
    }
    return fitted(measurements);
  };
  const Fit near = of_gpus({54, 55, 55, 56, 55, 54, 56, 55});
  const FittedFigure* line = line_of(near, "link.host_to_device");
  REQUIRE(line != nullptr);
  CHECK(line->worst_error == doctest::Approx(1.0 / 55));
  CHECK_FALSE(line->low.empty());
  const Fit apart = of_gpus({55, 55, 55, 55, 20, 20, 20, 20});
  line = line_of(apart, "link.host_to_device");
  REQUIRE(line != nullptr);
  CHECK(line->state == FigureState::kRefused);
  CHECK(line->why.ends_with("the samples disagree"));
}

}  // namespace
}  // namespace spillway::calibration
