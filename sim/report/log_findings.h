// Which number of a log decides, and what to do about it.
#pragma once

#include "sim/report/log_report.h"

namespace spillway {

struct LogVerdict {
  std::vector<LogFinding> findings;  ///< those that decide first
  std::optional<LogFraction> fraction;
};

/// Applies every rule of the table in log_findings.cpp.
LogVerdict judge_log(const log::Log& log, const LogWishes& wishes);

}  // namespace spillway
