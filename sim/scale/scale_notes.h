// What a reader must know about a resized program, as sentences: what it was made from, how well
// that does where the truth is known, and what of it is not certain.
#pragma once

#include <string>
#include <vector>

#include "sim/scale/scale_program.h"

namespace spillway {

/// About the step at `size`. Runs the memory model on the programs that it compares.
std::vector<std::string> scale_notes(const ProgramScaler& scaler, const Program& first,
                                     const Program& second, double size,
                                     const ScaledProgram& scaled);

}  // namespace spillway
