// Reader of nvbandwidth's output: its text and its JSON, of versions 0.2 to 0.10. Tests are told by
// their names, since their numbers and the arrows in their descriptions change with the version.
//
// A test "both ways" measures one direction while the other is busy: two tests are never added.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measurements.h"

namespace spillway::calibration {

/// One test as printed. Rows are the CPU's or the GPU's, columns GPUs; N/A is an empty cell.
struct BandwidthTest {
  enum class State {
    kComplete,
    kCut,     ///< the output ends or breaks inside it
    kWaived,  ///< it cannot run on this machine
    kFailed,  ///< it says so
  };
  std::string name;
  std::vector<std::vector<std::optional<double>>> rows;
  std::optional<double> sum;
  State state = State::kComplete;
  std::string message;  ///< of a failure
  std::optional<std::uint32_t> line;
};

struct BandwidthRun {
  std::string path, version, format;
  std::string cuda, driver;
  std::vector<std::string> devices;  ///< their names, where the output lists them
  std::vector<BandwidthTest> tests;
  std::vector<Warning> warnings;  ///< of the whole output
};

bool is_nvbandwidth_text(std::string_view text);
bool is_nvbandwidth_json(std::string_view text);

BandwidthRun read_nvbandwidth_text(std::string_view text, const std::string& path);
/// Text may stand around the JSON, and it may end in the middle. An error: no JSON of nvbandwidth.
Result<BandwidthRun> read_nvbandwidth_json(std::string_view text, const std::string& path);

/// Samples of what concerns a host link; the rest is skipped with a reason. `gpus` is how many a
/// test sums up where only sums were printed. An error: no test is complete.
Result<Measurements> to_measurements(const BandwidthRun& run, std::optional<int> gpus);

}  // namespace spillway::calibration
