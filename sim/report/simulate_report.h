// What `simulate` answers, as text and as JSON.
#pragma once

#include <string>

#include "sim/simulate.h"

namespace spillway {

/// For a person at a terminal.
std::string render_text(const Program& program, const HardwareProfile& profile,
                        const SimResult& result);
/// Schema spillway.simulate/1.
std::string render_json(const Program& program, const HardwareProfile& profile,
                        const SimResult& result);

}  // namespace spillway
