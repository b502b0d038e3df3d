// What `simulate` answers, as text and as JSON.
#pragma once

#include <string>

#include "sim/explain/explain.h"
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

/// Schema spillway.simulate/1, with an `explain` object where something was asked.
std::string render_json(const Program& program, const HardwareProfile& profile,
                        const SimResult& result, const Explained* explained = nullptr);

}  // namespace spillway
