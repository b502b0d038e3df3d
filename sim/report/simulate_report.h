// What `simulate` answers, as text and as JSON.
#pragma once

#include <string>

#include "sim/explain/explain.h"
#include "sim/report/measured_report.h"
#include "sim/simulate.h"

namespace spillway {

/// For a person at a terminal.
std::string render_text(const Program& program, const HardwareProfile& profile,
                        const SimResult& result);
/// What one copy was asked about, and the answer.
struct Explained {
  std::string name;
  std::vector<CopyExplanation> copies;
};

/// Schema spillway.simulate/1, with an `explain` object where something was asked and a `measured`
/// one where a run was given.
std::string render_json(const Program& program, const HardwareProfile& profile,
                        const SimResult& result, const Explained* explained = nullptr,
                        const MeasuredReport* measured = nullptr);

}  // namespace spillway
