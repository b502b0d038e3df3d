// The rules about a log, one a cause; log_findings.cpp applies them in order.
#pragma once

#include <algorithm>

#include "model/base/format.h"
#include "sim/report/log_evidence.h"

namespace spillway::log_rules {

struct Case {
  const log::Log& log;
  const LogEvidence& evidence;
  const std::optional<LogFraction>& fraction;
};

/// A rule adds what it has to say, or nothing. Later ones see what earlier ones said.
using Rule = void (*)(const Case&, std::vector<LogFinding>&);

// log_pool_rules.cpp: which pool could not serve which request, and why.
void second_pool(const Case& c, std::vector<LogFinding>& out);
void host_pool(const Case& c, std::vector<LogFinding>& out);
void refused_by_driver(const Case& c, std::vector<LogFinding>& out);
void pool_state(const Case& c, std::vector<LogFinding>& out);
void program_against_pool(const Case& c, std::vector<LogFinding>& out);
void above_the_pool(const Case& c, std::vector<LogFinding>& out);
// log_compiler_rules.cpp: what the compiler's numbers mean, and what they do not.
void remat_limit(const Case& c, std::vector<LogFinding>& out);
void scheduler_limit(const Case& c, std::vector<LogFinding>& out);
void analysis_meaning(const Case& c, std::vector<LogFinding>& out);
void report_names(const Case& c, std::vector<LogFinding>& out);
void remarks(const Case& c, std::vector<LogFinding>& out);

inline std::string text(Bytes bytes) { return format_bytes(bytes); }
inline std::string text(const log::LoggedBytes& bytes) { return format_bytes(bytes.value); }
inline Bytes over(Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); }

/// Sorted, each once; what is from the command line has no line.
std::vector<log::LineNumber> lines_of(std::initializer_list<log::LineNumber> lines);

}  // namespace spillway::log_rules
