#include "model/log/memory_usage_report.h"

#include <algorithm>

namespace spillway::log {
namespace {

constexpr int kPinnedHost = 5;
constexpr std::size_t kKeptRows = 8;

bool is_device(int color) { return color >= 0 && color <= 2; }

/// Cuts the next cell, up to ';' or the end, off `rest`.
std::string_view take_cell(std::string_view& rest) {
  const std::size_t end = rest.find(';');
  const std::string_view cell = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return cell;
}

/// "203.00GiB( 19%);  203.00GiB;            0;               14; bf16[256,1024,7168], …"
std::optional<ReportRow> read_row(const Line& line) {
  std::string_view rest = line.text;
  std::string_view cumulative = take_cell(rest);
  if (!take_bytes(cumulative) || rest.empty()) return std::nullopt;
  ReportRow row;
  row.line = line.number;
  std::string_view size = take_cell(rest);
  const auto bytes = take_bytes(size);
  if (!bytes) return std::nullopt;
  row.size = *bytes;
  std::string_view offset = take_cell(rest);
  if (const auto at = take_integer(offset); at && *at >= 0) row.offset = Bytes(*at);
  std::string_view values = take_cell(rest);
  const auto count = take_integer(values);
  if (!count) return std::nullopt;
  row.values = *count;
  row.shapes = printable(trimmed(rest));
  return row;
}

class Reader {
 public:
  void read(const Line& line) {
    if (auto rest = behind(line.text, "Memory Space: ")) return read_space(line, *rest);
    if (auto rest = behind(line.text, "Total bytes used: ")) return read_mixed_total(line, *rest);
    if (!open_) return;
    if (waits_for_total_) {
      if (auto rest = behind(line.text, "Total bytes: ")) return read_total(line, *rest);
    }
    if (line.text.find("cumulative_size;") != std::string_view::npos) return start_table();
    if (in_table_) read_table_line(line);
  }

  std::vector<UsageReport> finish() {
    end();
    return std::move(found_);
  }

 private:
  UsageReport& report() { return found_.back(); }

  void begin(LineNumber line) {
    end();
    found_.push_back({});
    report().line = line;
    open_ = true;
  }
  void end() {
    if (!open_) return;
    report().cut = report().cut || waits_for_total_ || in_table_;
    open_ = in_table_ = waits_for_total_ = listing_ = false;
    if (report().spaces.empty() && !report().mixed_total) found_.pop_back();
  }

  /// "default (color=0)"
  void read_space(const Line& line, std::string_view rest) {
    const std::string_view name = take_word(rest);
    auto color = behind(rest, "(color=");
    const auto number = color ? take_integer(*color) : std::nullopt;
    if (!number || *number < 0 || *number > 1000) return;
    // A colour that comes again is the next report's.
    const bool again = open_ && (report().mixed_total ||
                                 std::ranges::any_of(report().spaces, [&](const ReportSpace& s) {
                                   return s.color == static_cast<int>(*number);
                                 }));
    if (!open_ || again) begin(line.number);
    in_table_ = false;
    waits_for_total_ = true;
    space_ = ReportSpace{line.number, static_cast<int>(*number), std::string(name), {}, {}};
  }

  void read_total(const Line&, std::string_view rest) {
    const auto bytes = take_bytes(rest);
    if (!bytes || !bytes->exact()) return;
    waits_for_total_ = false;
    space_.total = *bytes;
    report().spaces.push_back(space_);
    tables_ = 0;
  }

  void read_mixed_total(const Line& line, std::string_view rest) {
    const auto bytes = take_bytes(rest);
    if (!bytes || !bytes->exact()) return;
    begin(line.number);
    report().mixed_total = bytes->value;
    tables_ = 0;
  }

  void start_table() {
    // Only the first table is of interest: the list of allocations, or the largest allocation.
    in_table_ = ++tables_ == 1;
    listing_ = in_table_ && report().mixed_total.has_value();
  }

  void read_table_line(const Line& line) {
    if (line.text.find("-----") != std::string_view::npos) return;
    if (auto rest = behind(line.text, "The rest ")) {
      in_table_ = false;
      if (listing_) report().unlisted = take_integer(*rest).value_or(0);
      return;
    }
    if (trimmed(line.text).empty()) {
      in_table_ = false;
      return;
    }
    if (listing_) return read_allocation(line);
    const auto row = read_row(line);
    std::vector<ReportRow>& rows = report().spaces.back().largest;
    if (row && rows.size() < kKeptRows) rows.push_back(*row);
  }

  /// "2.33GiB( 66%);    1.19GiB; allocation 98: size 864.00MiB, color 5, preallocated-temp:"
  void read_allocation(const Line& line) {
    auto rest = behind(line.text, "allocation ");
    auto size = rest ? behind(*rest, ": size ") : std::nullopt;
    const auto bytes = size ? take_bytes(*size) : std::nullopt;
    if (!bytes || bytes->value > Bytes(std::int64_t{1} << 50)) return;
    int color = 0;
    if (size->starts_with(", color ")) {
      size->remove_prefix(8);
      color = static_cast<int>(std::clamp<std::int64_t>(take_integer(*size).value_or(0), 0, 1000));
    }
    if (is_device(color)) return;  // what is left of the total
    const auto same = std::ranges::find(report().spaces, color, &ReportSpace::color);
    if (same == report().spaces.end()) {
      report().spaces.push_back({line.number, color, "", *bytes, {}});
    } else if (same->total.value < Bytes(std::int64_t{1} << 60)) {
      same->total.value += bytes->value;
      same->total.off_by += bytes->off_by;
    }
  }

  std::vector<UsageReport> found_;
  ReportSpace space_;
  bool open_ = false, waits_for_total_ = false, in_table_ = false, listing_ = false;
  std::size_t tables_ = 0;
};

}  // namespace

std::optional<LoggedBytes> UsageReport::device_total() const {
  LoggedBytes total{mixed_total.value_or(Bytes(0))};
  bool found = mixed_total.has_value();
  for (const ReportSpace& space : spaces) {
    if (mixed_total) {
      total.value -= std::min(space.total.value, total.value);
      total.off_by += space.total.off_by;
    } else if (is_device(space.color)) {
      found = true;
      if (total.value.value() > (std::int64_t{1} << 61)) return std::nullopt;
      if (space.total.value.value() > (std::int64_t{1} << 61)) return std::nullopt;
      total.value += space.total.value;
    }
  }
  if (!found) return std::nullopt;
  return total;
}

std::optional<LoggedBytes> UsageReport::host_total() const {
  for (const ReportSpace& space : spaces)
    if (space.color == kPinnedHost) return space.total;
  return std::nullopt;
}

std::vector<UsageReport> find_usage_reports(const std::vector<Line>& lines) {
  Reader reader;
  for (const Line& line : lines) reader.read(line);
  return reader.finish();
}

}  // namespace spillway::log
