// The parts of a log with a short meaning for each number, and the same quantity from several parts
// side by side: what make_log_report (log_report.h) puts together.
#pragma once

#include "sim/report/log_report.h"

namespace spillway {

std::vector<LogPart> make_log_parts(const log::Log& log);
std::vector<LogComparison> compare_parts(const log::Log& log);

}  // namespace spillway
