// The probe's logic against a machine that is known, and all the way: probe, file, reader, fit.
#include "calibration/probe/probe.h"

#include <doctest/doctest.h>

#include <set>

#include "calibration/fit/fit.h"
#include "calibration/probe/describe.h"
#include "calibration/probe/probe_json.h"
#include "calibration/read_probe.h"
#include "tests/calibration/probe/fake_device.h"

namespace spillway::calibration {
namespace {

using testing::FakeDevice;
using testing::FakeTruth;
using testing::line_of;
using testing::off;
using testing::shipped_profile;

probe::ProbeRun run(FakeDevice& device, probe::ProbeOptions options = {}) {
  return probe::run_plan(device, probe::make_plan(device.machine(), {}), options);
}

Measurements read_back(const probe::ProbeRun& run) {
  const Result<Measurements> read = read_probe(probe::to_json(run, "2026-11-30"), "probe.json");
  REQUIRE_MESSAGE(read.ok(), to_text(read.error()));
  return *read;
}

TEST_CASE("probe, file, reader and fit find the machine that was measured") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    const FakeTruth truth;
    FakeDevice device(truth, seed);
    const Measurements measurements = read_back(run(device));
    CHECK(device.not_covered == 0);
    CHECK(device.overfull == 0);
    CHECK(device.queued_pageable == 0);
    CHECK(measurements.warnings.empty());
    const Fit fit = calibration::fit(measurements, shipped_profile("h200"), {.draws = 100});
    const HardwareProfile& profile = fit.profile;
    CHECK(off(profile.link.host_to_device.value.value(), truth.in) < 0.02);
    CHECK(off(profile.link.device_to_host.value.value(), truth.out) < 0.02);
    CHECK(off(profile.link.both_directions.value.value(), truth.both) < 0.02);
    CHECK(off(profile.link.copy_latency.value.value(), truth.queued) < 0.1);
    CHECK(off(profile.kernels.launch_floor.value.value(), truth.floor) < 0.05);
    CHECK(off(profile.kernels.gap.value.value(), truth.gap) < 0.2);
    CHECK(off(profile.kernels.elementwise.value.value(), 4.8e12 / truth.hbm) < 0.02);
    CHECK(off(profile.kernels.gemm.at("bf16").value.value(), 989.2e12 / truth.gemm) < 0.02);
    CHECK(off(profile.kernels.gemm_power.at("bf16").value.value(), truth.power) < 0.02);
    CHECK(profile.host.gpus_per_cpu.value == Count(4));  // of which one was seen
    CHECK(fit.warnings.front().code == "hidden-gpus");
    const auto beside = [&](const char* key) {
      const FittedFigure* line = line_of(fit, key);
      REQUIRE_MESSAGE(line != nullptr, key);
      REQUIRE_MESSAGE(line->state == FigureState::kFitted, line->why);
      return line->after;
    };
    CHECK(off(parse_units<Seconds>(beside("copy.isolated_latency.host_to_device"))->value(),
              truth.isolated) < 0.1);
    CHECK(off(parse_units<Seconds>(beside("copy.row.device_to_host"))->value(), truth.row) < 0.1);
    CHECK(off(parse_units<BytesPerSecond>(beside("copy.pageable.host_to_device"))->value(),
              truth.pageable) < 0.02);
    CHECK(off(parse_units<BytesPerSecond>(beside("copy.far_memory.host_to_device"))->value(),
              truth.far) < 0.02);
    CHECK(off(parse_units<Factor>(beside("interference.hbm_traffic"))->value(), 1) < 0.25);
  }
}

TEST_CASE("two GPUs of a CPU: what its memory gives both") {
  FakeTruth truth;
  truth.gpus = 4, truth.gpus_per_cpu = 2;
  truth.in = 200e9, truth.out = 193e9, truth.both = 327e9;
  truth.memory_in = 337e9, truth.memory_out = 364e9, truth.memory_both = 330e9;
  FakeDevice device(truth);
  const Measurements measurements = read_back(run(device));
  CHECK(measurements.machine.gpus_per_cpu == Count(2));
  const HardwareProfile profile =
      fit(measurements, shipped_profile("gb200"), {.draws = 50}).profile;
  CHECK(off(profile.host.memory_bandwidth_read->value.value(), truth.memory_in) < 0.02);
  CHECK(off(profile.host.memory_bandwidth_write->value.value(), truth.memory_out) < 0.02);
  CHECK(off(profile.host.memory_bandwidth.value.value(), truth.memory_both) < 0.02);
}

TEST_CASE("samples of a slow clock are taken again") {
  FakeDevice device({}, 4);
  device.throttle_from = 400, device.throttle_for = 300;
  const probe::ProbeRun slow = run(device);
  int dropped = 0;
  for (const probe::Measured& measured : slow.measured) dropped += measured.slow_clock;
  CHECK(dropped > 20);
  const Measurements measurements = read_back(slow);
  REQUIRE(measurements.warnings.size() == 1);
  CHECK(measurements.warnings.front().code == "throttled");
  const Fit fit = calibration::fit(measurements, shipped_profile("h200"), {.draws = 20});
  CHECK(off(fit.profile.kernels.elementwise.value.value(), 1.2) < 0.02);
}

TEST_CASE("points stop when they are stable, and not before") {
  FakeDevice quiet({}, 1, 0.001), noisy({}, 1, 0.2);
  const probe::ProbeOptions options;
  for (const probe::Measured& measured : run(quiet).measured) {
    CAPTURE(probe::describe(measured.point));
    CHECK(measured.main.seconds.size() >= 12);
  }
  std::size_t most = 0;
  int unstable = 0;
  for (const probe::Measured& measured : run(noisy).measured) {
    most = std::max(most, measured.main.seconds.size());
    unstable += !measured.stable;
  }
  CHECK(most >= 60);
  CHECK(most < 60 + 4);
  CHECK(unstable > 10);
}

TEST_CASE("when time is up every point has had its first round") {
  FakeDevice device({}, 1, 0.2);
  const probe::ProbeRun hurried = run(device, {.seconds = 0.01});
  CHECK(hurried.failed.empty());
  for (const probe::Measured& measured : hurried.measured) CHECK(measured.main.seconds.size() == 4);
}

TEST_CASE("what fails is said, the rest goes on") {
  FakeDevice device({});
  device.no_gemm = true;
  const probe::ProbeRun partly = run(device);
  CHECK(!partly.failed.empty());
  CHECK(!partly.measured.empty());
  const Measurements measurements = read_back(partly);
  CHECK(measurements.gemms.empty());
  CHECK(measurements.skipped.front().why == "cuBLASLt is not there");
}

TEST_CASE("copies whose data is wrong do not count") {
  FakeDevice device({});
  device.wrong_data = true;
  const Measurements measurements = read_back(run(device));
  for (const CopySample& sample : measurements.copies)
    CHECK(sample.regime == CopyRegime::kIsolated);
  CHECK(measurements.skipped.front().why == "the data that arrived was wrong: byte 17 differs");
}

TEST_CASE("the plan has what a fit asks for") {
  FakeDevice device({});
  const probe::MeasurementPlan plan = probe::make_plan(device.machine(), {});
  std::set<std::string> described;
  for (const probe::Point& point : plan.points) {
    CAPTURE(probe::describe(point));
    described.insert(probe::describe(point) + (point.kind == probe::PointKind::kCopy ? "c" : "k"));
  }
  for (const char* wanted :
       {"4096 bytes host to device, queuedc", "1073741824 bytes device to host, isolatedc",
        "98304 bytes host to device, queuedc",
        "268435456 bytes host to device, queued, beside 1 otherc",
        "33554432 bytes device to host, rows of 512, queuedc",
        "268435456 bytes host to device, pageable, isolatedc",
        "268435456 bytes device to host, node 1, queuedc", "launchesk",
        "bf16 products 8192 x 8192 x 8192k", "f8 products 8192 x 8192 x 8192, lastingk",
        "bf16 products 8192 x 8192 x 8192 of zerosk"})
    CHECK_MESSAGE(described.contains(wanted), wanted);
  REQUIRE(plan.not_planned.size() == 1);
  CHECK(plan.not_planned.front().what == "copies of all GPUs at once");
}

TEST_CASE("sizes of copies") {
  const auto sizes = probe::copy_sizes(std::int64_t{1} << 30, false);
  CHECK(sizes.front() == 4096);
  CHECK(sizes.back() == 1 << 30);
  CHECK(sizes.size() == 26);
  CHECK(probe::copy_sizes(100 << 20, false).back() == 100 << 20);
}

TEST_CASE("the error of a median") {
  CHECK(probe::relative_error({1, 1, 1, 1, 1}) == 0);
  CHECK(probe::relative_error({1, 1, 1}) > 1e9);
  // Quartiles 3 and 7 of 1 .. 9: 1.2533 x 4 / 1.349 / 3 / 5.
  CHECK(off(probe::relative_error({1, 2, 3, 4, 5, 6, 7, 8, 9}), 0.2477) < 0.01);
}

TEST_CASE("the same seed writes the same file") {
  FakeDevice a({}, 7), b({}, 7);
  CHECK(probe::to_json(run(a), "2026-11-30") == probe::to_json(run(b), "2026-11-30"));
}

TEST_CASE("a probe's file that is none") {
  FakeDevice device({});
  const std::string good = probe::to_json(run(device, {.seconds = 0.01}), "2026-11-30");
  CHECK(is_probe_json(good));
  CHECK(!is_probe_json("{\"nvbandwidth\": {}}"));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  struct Row {
    const char* name;
    std::string text;
    const char* error;
  };
  const Row rows[] = {
      {"cut off", good.substr(0, good.size() / 2), "is no JSON"},
      {"another version", with("spillway.probe/1", "spillway.probe/9"),
       "error: the schema 'spillway.probe/9' is not known"},
      {"no machine", with("\"machine\"", "\"engine\""), "error: 'machine' is missing"},
      {"a text for a number", with("\"multiprocessors\": 132", "\"multiprocessors\": \"132\""),
       "error: 'multiprocessors' must be a number"},
      {"an unknown direction", with("\"device_to_host\"", "\"d2h\""),
       "'direction' is 'd2h', and must be one of host_to_device, device_to_host"},
      {"unknown pages", with("\"pinned\"", "\"pined\""),
       "'pages' is 'pined', and must be one of pinned, pageable, registered"},
      {"no point", with("\"measured\": [", "\"measured\": [], \"before\": ["),
       "error: has no point that was measured"},
      {"a negative count", with("\"multiprocessors\": 132", "\"multiprocessors\": -1"),
       "error: 'multiprocessors' must be a whole number from 0 up"},
      {"a list", "[]", "error: is no object"}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<Measurements> read = read_probe(row.text, "probe.json");
    REQUIRE(!read.ok());
    CHECK_MESSAGE(to_text(read.error()).find(row.error) != std::string::npos,
                  to_text(read.error()));
  }
}

TEST_CASE("the schema may stand anywhere") {
  CHECK(is_probe_json("{" + std::string(1000, ' ') + "\"schema\": \"spillway.probe/1\"}"));
  CHECK_FALSE(is_probe_json("{\"schema\": \"spillway.calibrate/1\"}"));
}

}  // namespace
}  // namespace spillway::calibration
