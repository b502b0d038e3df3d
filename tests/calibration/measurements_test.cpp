#include "calibration/measurements.h"

#include <doctest/doctest.h>

namespace spillway::calibration {
namespace {

TEST_CASE("names of one device have more words or fewer, and a number") {
  struct Row {
    const char* driver;
    const char* xla;
    bool same;
  };
  const Row rows[] = {{"NVIDIA H200", "NVIDIA H200 141GB HBM3e", true},
                      {"NVIDIA A100", "NVIDIA A100-SXM4-80GB", true},
                      {"NVIDIA GB200", "NVIDIA GB200", true},
                      {"NVIDIA A100-SXM4-80GB MIG 3g.40gb", "NVIDIA A100-SXM4-80GB", true},
                      {"NVIDIA A10", "NVIDIA A100-SXM4-80GB", false},
                      {"NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", false},
                      {"NVIDIA", "NVIDIA H200 141GB HBM3e", false},
                      {"", "NVIDIA GB200", false}};
  for (const Row& row : rows) {
    CAPTURE(row.driver);
    CHECK(is_device(row.driver, row.xla) == row.same);
  }
}

}  // namespace
}  // namespace spillway::calibration
