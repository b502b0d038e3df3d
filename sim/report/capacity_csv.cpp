#include <fmt/format.h>

#include "sim/report/capacity_figures.h"
#include "sim/report/capacity_report.h"

namespace spillway {
namespace {

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted_text = "\"";
  for (const char c : text) {
    quoted_text += c;
    if (c == '"') quoted_text += c;
  }
  return quoted_text + '"';
}
std::string field(bool value) { return value ? "true" : "false"; }
std::string field(std::int64_t value) { return std::to_string(value); }
/// As many digits as it takes to read the same number again.
std::string field(double value) { return fmt::format("{}", value); }

}  // namespace

std::string render_csv(const CapacityReport& report) {
  std::string text;
  const CapacityCell none;
  std::size_t columns = 0;  // of what was estimated
  const auto head = [&](const char* name, const auto&) {
    text += (text.empty() ? "" : ",") + std::string(name);
    ++columns;
  };
  visit_key(none, head);
  columns = 0;
  visit_estimate(none, head);
  visit_derived(none, head);
  text += ",impossible\r\n";
  for (const CapacityCell& cell : report.cells) {
    bool is_first = true;
    const auto add = [&](const char*, const auto& value) {
      text += (is_first ? "" : ",") + field(plain(value));
      is_first = false;
    };
    visit_key(cell, add);
    if (cell.is_possible()) {
      visit_estimate(cell, add);
      visit_derived(cell, add);
    } else {
      text.append(columns, ',');
    }
    text += "," + field(cell.impossible) + "\r\n";
  }
  return text;
}

}  // namespace spillway
