#include "calibration/import/bandwidth_test.h"

#include <fmt/format.h>

#include "calibration/import/text_scan.h"
#include "model/base/utf8.h"

namespace spillway::calibration {
namespace {

class BandwidthTestReader {
 public:
  BandwidthTestReader(std::string_view text, std::string path)
      : text_(text), path_(std::move(path)) {}

  Result<Measurements> run() {
    each_line(text_, [&](std::string_view line, std::uint32_t number) {
      line_ = number;
      if (!read_csv(trimmed(line))) read_table(trimmed(line));
    });
    if (result_.copies.empty())
      return error_in_file(path_, "no transfer of bandwidthTest between host and device in it");
    if (pageable_)
      result_.warnings.push_back(
          {"pageable",
           "transfers of pageable memory: they say nothing of the link; XLA's buffers "
           "are pinned, run it with --memory=pinned",
           {path_, {}, {}}});
    result_.sources.push_back(
        {path_, "bandwidthTest", fmt::format("{} rates of transfers", result_.copies.size())});
    return std::move(result_);
  }

 private:
  std::optional<CopyDirection> direction_in(std::string_view text) const {
    const auto has = [&](const char* part) { return text.find(part) != std::string_view::npos; };
    if (has("Host to Device") || has("H2D")) return CopyDirection::kHostToDevice;
    if (has("Device to Host") || has("D2H")) return CopyDirection::kDeviceToHost;
    return std::nullopt;
  }

  /// "bandwidthTest-H2D-Pinned, Bandwidth = 12.4 GB/s, Time = 0.00024 s, Size = 3000000 bytes,
  /// NumDevsUsed = 1"
  bool read_csv(std::string_view line) {
    if (!line.starts_with("bandwidthTest-")) return false;
    direction_ = direction_in(line.substr(0, line.find(',')));
    pinned_ = line.find("Pinned") != std::string_view::npos;
    const auto number = [&](std::string_view key) -> std::optional<double> {
      const std::size_t at = line.find(key);
      if (at == std::string_view::npos) return std::nullopt;
      const auto words = words_of(line.substr(at + key.size()));
      return words.empty() ? std::nullopt : to_number(words[0]);
    };
    const bool mega = line.find(" MB/s") != std::string_view::npos;
    const auto rate = number("Bandwidth = "), size = number("Size = ");
    if (rate && size) add(*size, *rate * (mega ? 1e6 : 1e9), mega ? 0.1e6 : 0.1e9);
    return true;
  }

  void read_table(std::string_view line) {
    if (line.starts_with("Device ") && result_.machine.device.empty())
      if (const std::size_t colon = line.find(": "); colon != std::string_view::npos)
        result_.machine.device = printable_line(line.substr(colon + 2));
    if (line.find(" Bandwidth, ") != std::string_view::npos) direction_ = direction_in(line);
    if (line.find("PINNED") != std::string_view::npos) pinned_ = true;
    if (line.find("PAGEABLE") != std::string_view::npos) pinned_ = false;
    if (line.starts_with("Transfer Size")) mega_ = line.find("MB/s") != std::string_view::npos;
    const auto words = words_of(line);
    if (words.size() != 2) return;
    const auto size = to_number(words[0]), rate = to_number(words[1]);
    if (size && rate) add(*size, *rate * (mega_ ? 1e6 : 1e9), mega_ ? 0.1e6 : 0.1e9);
  }

  void add(double bytes, double rate, double resolution) {
    if (!direction_ || bytes < 1 || rate <= 0) return;
    CopySample sample;
    sample.direction = *direction_;
    sample.pages = pinned_ ? HostPages::kPinned : HostPages::kPageable;
    sample.regime = CopyRegime::kQueued;  // ten copies between two events
    sample.bytes = Bytes(static_cast<std::int64_t>(bytes));
    sample.rate = BytesPerSecond(rate);
    sample.resolution = BytesPerSecond(resolution);
    sample.where = {path_, line_, {}};
    pageable_ = pageable_ || !pinned_;
    result_.copies.push_back(sample);
  }

  std::string_view text_;
  std::string path_;
  std::uint32_t line_ = 0;
  std::optional<CopyDirection> direction_;
  bool pinned_ = false, mega_ = false, pageable_ = false;
  Measurements result_;
};

}  // namespace

bool is_bandwidth_test(std::string_view text) {
  return text.find("[CUDA Bandwidth Test]") != std::string_view::npos ||
         text.find("bandwidthTest-H2D") != std::string_view::npos ||
         text.find("bandwidthTest-D2H") != std::string_view::npos;
}

Result<Measurements> read_bandwidth_test(std::string_view text, const std::string& path) {
  return BandwidthTestReader(text, path).run();
}

}  // namespace spillway::calibration
