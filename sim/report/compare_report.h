// What `compare` answers, computed once and written down as text or JSON.
#pragma once

#include <string>

#include "model/compare/compare.h"
#include "sim/report/inspect_report.h"

namespace spillway {

struct CompareReport {
  InspectReport first, second;  ///< both scheduled
  Comparison difference;
  /// How much the device total may grow, in percent of the first; none: it may.
  std::optional<double> allowed_growth;

  /// Growth of the device total in percent of the first.
  double growth() const;
  bool grows_too_much() const { return allowed_growth && growth() > *allowed_growth; }
};

/// Compares two scheduled programs. Errors: one has no schedule.
Result<CompareReport> make_compare_report(const Program& first, const NameList& first_names,
                                          const Program& second, const NameList& second_names);

/// For a person at a terminal.
std::string render_text(const CompareReport& report);
/// Schema spillway.compare/1.
std::string render_json(const CompareReport& report);

}  // namespace spillway
