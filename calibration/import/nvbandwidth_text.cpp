#include <algorithm>

#include "calibration/import/nvbandwidth.h"
#include "calibration/import/text_scan.h"
#include "model/base/utf8.h"

namespace spillway::calibration {
namespace {

/// Goes line by line: "Running NAME.", a description, the numbers of the columns, rows that begin
/// with theirs, "SUM NAME x". A test is complete with its sum.
class TextReader {
 public:
  TextReader(std::string_view text, const std::string& path) : text_(text) {
    run_.path = path;
    run_.format = "text";
  }

  BandwidthRun run() {
    each_line(text_, [&](std::string_view line, std::uint32_t number) { read(line, number); });
    close_test();
    return std::move(run_);
  }

 private:
  void read(std::string_view line, std::uint32_t number) {
    line_ = number;
    const std::string_view bare = trimmed(line);
    if (bare.empty()) return;
    if (read_header(bare) || read_event(bare)) return;
    if (open_) read_table(bare);
  }

  bool read_header(std::string_view line) {
    if (const auto version = value_of(line, "nvbandwidth Version"); !version.empty()) {
      close_test();
      run_.version = version;
      return true;
    }
    for (const char* key : {"CUDA Runtime Version", "CUDA Driver Version"})
      if (line.starts_with(key)) {
        if (run_.cuda.empty()) run_.cuda = value_of(line, key);
        return true;
      }
    if (line.starts_with("Driver Version")) {
      run_.driver = value_of(line, "Driver Version");
      return true;
    }
    if (line.starts_with("Device ") && !open_) {
      const std::size_t colon = line.find(": ");
      if (colon == std::string_view::npos || !to_whole(line.substr(7, colon - 7))) return false;
      const std::string_view name = line.substr(colon + 2);
      // Since 0.3 with the bus id: "NVIDIA H100 (00000000:0f:00)".
      const std::size_t bus = name.rfind(" (");
      run_.devices.emplace_back(name.ends_with(")") ? name.substr(0, bus) : name);
      return true;
    }
    return false;
  }

  bool read_event(std::string_view line) {
    if (line.starts_with("Running ")) {
      close_test();
      std::string_view name = line.substr(8);
      if (name.ends_with('.')) name.remove_suffix(1);
      open_test(name);
      return true;
    }
    if (line.starts_with("Waived:")) {
      close_test();
      open_test(trimmed(line.substr(7)));
      run_.tests.back().state = BandwidthTest::State::kWaived;
      open_ = false;
      return true;
    }
    if (line.starts_with("SUM ")) return read_sum(line);
    if (line.find("CUDA_ERROR") != std::string_view::npos ||
        line.find("NVML_ERROR") != std::string_view::npos ||
        line.starts_with("Invalid value when checking") || line.starts_with("ERROR")) {
      if (!open_) {
        run_.warnings.push_back({"tool-error", printable_line(line), here()});
        return true;
      }
      run_.tests.back().state = BandwidthTest::State::kFailed;
      run_.tests.back().message = printable_line(line);
      open_ = false;
      return true;
    }
    return line.starts_with("NOTE:") || line.starts_with("COEFFICIENT_OF_VARIATION") ||
           line.starts_with("Sample ") || line.starts_with("MIN ") || line.starts_with("MAX ") ||
           line.starts_with("AVG ") || line.starts_with("Built from");
  }

  /// "SUM NAME x" ends a test; in a log of sums alone it is the whole test. Tests of several
  /// matrices have a sum for each.
  bool read_sum(std::string_view line) {
    const auto words = words_of(line);
    const auto value = words.size() == 3 ? to_number(words[2]) : std::nullopt;
    if (!value) return open_;
    const bool ends_open = open_ && words[1].starts_with(run_.tests.back().name);
    if (!ends_open) {
      close_test();
      open_test(words[1]);
    } else if (run_.tests.back().sum) {
      return true;  // a further matrix of the same test
    }
    run_.tests.back().sum = *value;
    columns_ = 0;
    if (!ends_open) open_ = false;
    return true;
  }

  void read_table(std::string_view line) {
    const auto words = words_of(line);
    if (columns_ == 0) {
      for (std::size_t k = 0; k < words.size(); ++k)
        if (to_whole(words[k]) != static_cast<std::int64_t>(k)) return;
      columns_ = words.size();
      return;
    }
    if (words.empty() || !to_whole(words[0])) return;
    std::vector<std::optional<double>> cells;
    for (std::size_t k = 1; k < words.size(); ++k) {
      // "16." of a run that ended while it was written is no number.
      const auto number = words[k].ends_with('.') ? std::nullopt : to_number(words[k]);
      if (!number && words[k] != "N/A") cut_ = true;
      cells.push_back(number);
    }
    cut_ = cut_ || cells.size() != columns_;
    run_.tests.back().rows.push_back(std::move(cells));
  }

  void open_test(std::string_view name) {
    run_.tests.emplace_back();
    run_.tests.back().name = name;
    run_.tests.back().line = line_;
    open_ = true;
    cut_ = false;
    columns_ = 0;
  }

  void close_test() {
    if (open_ && (cut_ || !run_.tests.back().sum))
      run_.tests.back().state = BandwidthTest::State::kCut;
    open_ = false;
  }

  SourceRef here() const { return {run_.path, line_, {}}; }

  std::string_view text_;
  BandwidthRun run_;
  bool open_ = false;  ///< the last test has begun and not ended
  bool cut_ = false;
  std::size_t columns_ = 0;
  std::uint32_t line_ = 0;
};

}  // namespace

bool is_nvbandwidth_text(std::string_view text) {
  if (text.find("nvbandwidth Version") != std::string_view::npos) return true;
  // Logs that somebody filtered: sums of its tests.
  for (const char* test : {"SUM host_to_device", "SUM device_to_host", "SUM all_to_host",
                           "SUM host_to_all", "Running host_to_device", "Running device_to_host"})
    if (text.find(test) != std::string_view::npos) return true;
  return false;
}

BandwidthRun read_nvbandwidth_text(std::string_view text, const std::string& path) {
  return TextReader(text, path).run();
}

}  // namespace spillway::calibration
