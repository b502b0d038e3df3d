#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibration/import/nvbandwidth.h"
#include "calibration/import/text_scan.h"
#include "model/base/utf8.h"

namespace spillway::calibration {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  if (found->is_string()) return printable_line(found->get<std::string>());
  return found->is_number() ? found->dump() : "";
}

/// Cells are texts, "55.3412" or "N/A"; sums are numbers.
std::optional<double> number_of(const Json& json) {
  if (json.is_number()) {
    const double value = json.get<double>();
    return std::abs(value) < kNothingMeasures ? std::optional(value) : std::nullopt;
  }
  return json.is_string() ? to_number(trimmed(json.get_ref<const std::string&>())) : std::nullopt;
}

BandwidthTest::State state_of(const std::string& status) {
  if (status == "Passed" || status.empty()) return BandwidthTest::State::kComplete;
  if (status == "Waived" || status == "Not Found") return BandwidthTest::State::kWaived;
  if (status == "Running") return BandwidthTest::State::kCut;
  return BandwidthTest::State::kFailed;
}

/// Test cases are taken as their objects end, so that a file cut in the middle keeps them.
class JsonReader {
 public:
  explicit JsonReader(const std::string& path) {
    run_.path = path;
    run_.format = "JSON";
  }

  /// Whether all of it was JSON.
  bool parse(std::string_view text) {
    const auto on_parsed = [&](int depth, Json::parse_event_t what, Json& parsed) {
      if (what == Json::parse_event_t::object_end && depth == 3 && parsed.contains("name")) {
        take_test(parsed);
        return false;
      }
      if (what == Json::parse_event_t::object_end && depth == 1) take_header(parsed);
      return true;
    };
    try {
      const Json rest = Json::parse(text.begin(), text.end(), on_parsed);
      return true;
    } catch (const Json::exception&) {  // broken off, or a number that is out of range
      return false;
    }
  }

  BandwidthRun take() { return std::move(run_); }
  bool found() const { return !run_.tests.empty() || !run_.version.empty(); }

 private:
  void take_header(const Json& header) {
    run_.version = text_of(header, "version");
    run_.cuda = text_of(header, "CUDA Runtime Version");
    run_.driver = text_of(header, "Driver Version");
    if (const auto list = header.find("GPU Device list"); list != header.end() && list->is_array())
      for (const Json& device : *list)
        if (device.is_string()) run_.devices.push_back(name_of_device(device));
    for (const char* key : {"error", "warning"})
      if (const std::string text = text_of(header, key); !text.empty())
        run_.warnings.push_back({"tool-error", key + (": " + text), {run_.path, {}, {}}});
  }

  /// "0: NVIDIA H100 80GB HBM3 (00000000:0f:00)"
  static std::string name_of_device(const Json& device) {
    const std::string text = printable_line(device.get<std::string>());
    std::string_view name = text;
    const std::size_t colon = name.find(": ");
    if (colon != std::string_view::npos && to_whole(name.substr(0, colon)))
      name = name.substr(colon + 2);
    const std::size_t bus = name.rfind(" (");
    return std::string(bus == std::string_view::npos ? name : name.substr(0, bus));
  }

  void take_test(const Json& json) {
    BandwidthTest test;
    test.name = text_of(json, "name");
    const std::string status = text_of(json, "status");
    test.state = state_of(status);
    if (test.state == BandwidthTest::State::kFailed) test.message = "its status is " + status;
    if (const auto sum = json.find("sum"); sum != json.end()) test.sum = number_of(*sum);
    if (const auto rows = json.find("bandwidth_matrix"); rows != json.end() && rows->is_array())
      for (const Json& row : *rows) {
        test.rows.emplace_back();
        if (row.is_array())
          for (const Json& cell : row) test.rows.back().push_back(cell_of(cell, test));
      }
    run_.tests.push_back(std::move(test));
  }

  /// N/A is a cell of no rate; what is neither that nor a number spoils its test.
  static std::optional<double> cell_of(const Json& json, BandwidthTest& test) {
    const auto number = number_of(json);
    const bool complete = test.state == BandwidthTest::State::kComplete;
    if (!number && complete && !json.is_null() && json != "N/A") {
      test.state = BandwidthTest::State::kFailed;
      test.message = "a cell of it is no rate";
    }
    return number;
  }

  BandwidthRun run_;
};

/// From the brace that opens the object to the one that closes it, or to the end.
std::string_view object_in(std::string_view text) {
  const std::size_t key = text.find("\"nvbandwidth\"");
  const std::size_t begin = key == std::string_view::npos ? key : text.rfind('{', key);
  if (begin == std::string_view::npos) return {};
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return text.substr(begin, at - begin + 1);
  }
  return text.substr(begin);
}

/// The average of no cells is printed as nan, which is no JSON.
std::string without_nan(std::string_view text) {
  std::string result(text);
  for (const std::string_view word : {": -nan", ":-nan", ": nan", ":nan"})
    for (std::size_t at = result.find(word); at != std::string::npos; at = result.find(word, at))
      result.replace(at, word.size(), ": null");
  return result;
}

}  // namespace

bool is_nvbandwidth_json(std::string_view text) {
  return text.find("\"nvbandwidth\"") != std::string_view::npos;
}

Result<BandwidthRun> read_nvbandwidth_json(std::string_view text, const std::string& path) {
  JsonReader reader(path);
  const std::string json = without_nan(object_in(text));
  const bool whole = reader.parse(json);
  if (!reader.found()) return error_in_file(path, "no JSON of nvbandwidth");
  BandwidthRun run = reader.take();
  if (!whole)
    run.warnings.push_back(
        {"cut", "the JSON ends or breaks in the middle: complete tests are kept", {path, {}, {}}});
  return run;
}

}  // namespace spillway::calibration
