// XLA's "-memory-usage-report.txt". Newer versions give a total for each memory space; up to jaxlib
// 0.8 there is one total over all, and a list of allocations with their colours. The colour is what
// counts: 0, 1 and 2 are HBM on a GPU and 5 is pinned host memory, whatever name stands beside it.
#pragma once

#include <string>

#include "model/log/log_text.h"

namespace spillway::log {

/// A row of the first table of a memory space: all that ever lies at one offset of its largest
/// allocation, one after another.
struct ReportRow {
  LineNumber line = 0;
  LoggedBytes size;
  std::optional<Bytes> offset;
  std::int64_t values = 0;
  std::string shapes;
};

struct ReportSpace {
  LineNumber line = 0;
  int color = 0;
  std::string xla_name;  ///< as printed; not to be used
  LoggedBytes total;
  std::vector<ReportRow> largest;
};

struct UsageReport {
  LineNumber line = 0;
  std::vector<ReportSpace> spaces;
  /// The older form: its total over all memory spaces. What was listed by colour is in `spaces`.
  std::optional<Bytes> mixed_total;
  std::int64_t unlisted = 0;  ///< allocations of the older form that are not listed
  bool cut = false;           ///< the text ends within a table, or before a total

  /// The sum over the colours that are HBM on a GPU; absent where no total was found.
  std::optional<LoggedBytes> device_total() const;
  std::optional<LoggedBytes> host_total() const;  ///< colour 5; absent where it holds nothing
};
std::vector<UsageReport> find_usage_reports(const std::vector<Line>& lines);

}  // namespace spillway::log
