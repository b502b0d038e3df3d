#include "calibration/import/possible.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/describe_measurements.h"

namespace spillway::calibration {
namespace {

using testing::describe_skipped;

TEST_CASE("samples that no machine gives are left out, and said") {
  struct Row {
    double seconds;
    bool stays;
  };
  const Row rows[] = {{1e-6, true},    {10, true},
                      {1e-300, false}, {1e300, false},
                      {0, false},      {std::numeric_limits<double>::quiet_NaN(), false}};
  for (const Row& row : rows) {
    CAPTURE(row.seconds);
    Measurements measurements;
    measurements.launches.push_back({LaunchCost::kFloor, Seconds(2e-6), {}});
    CopySample copy;
    copy.rate = BytesPerSecond(1e6 / row.seconds);
    measurements.copies.push_back(copy);
    measurements.traffic.push_back(
        {TrafficKernel::kCopy, Bytes(1000000), Seconds(row.seconds), {}});
    GemmSample gemm;
    gemm.time = Seconds(row.seconds);
    measurements.gemms.push_back(gemm);
    const Result<Measurements> read = only_possible(measurements, "log");
    REQUIRE(read.ok());
    CHECK(read->launches.size() == 1);
    const std::size_t n = row.stays ? 1 : 0;
    CHECK(read->copies.size() == n);
    CHECK(read->traffic.size() == n);
    CHECK(read->gemms.size() == n);
    const char* const why = ": faster or slower than anything is: no measurement\n";
    CHECK(describe_skipped(*read) == (row.stays
                                          ? ""
                                          : std::string("1 copies") + why + "1 matrix products" +
                                                why + "1 memory-bound kernels" + why));
  }
}

TEST_CASE("a file of nothing else is an error, one of nothing at all is not") {
  Measurements measurements;
  CHECK(only_possible(measurements, "log").ok());
  measurements.link_caps.push_back({BytesPerSecond(1e300), "C2C", true, {}});
  const Result<Measurements> none = only_possible(measurements, "log");
  REQUIRE_FALSE(none.ok());
  CHECK(to_text(none.error()) ==
        "log: error: all its figures are faster or slower than anything is\n"
        "  give the file as the tool wrote it");
}

TEST_CASE("texts can be written into a profile") {
  Measurements measurements;
  measurements.machine.device = "NVIDIA H100 \xe9";
  measurements.sources.push_back({"log", "nvbandwidth v0.8\x01", "2 copies"});
  const Result<Measurements> read = only_possible(measurements, "log");
  REQUIRE(read.ok());
  CHECK(read->machine.device == "NVIDIA H100 ?");
  CHECK(read->sources.front().format == "nvbandwidth v0.8?");
}

}  // namespace
}  // namespace spillway::calibration
