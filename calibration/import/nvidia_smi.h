// Reader of what nvidia-smi prints: `-q` (links, clocks, MIG), `c2c -s` (links to a Grace CPU),
// `topo -m` (which GPU stands at which CPU); and of the c2c elements of NCCL's topology XML. They
// measure nothing: they say what the wires carry, and what to doubt.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measurements.h"

namespace spillway::calibration {

bool is_nvidia_smi(std::string_view text);

/// Several outputs may stand in one file. An error: none of them says anything of use.
Result<Measurements> read_nvidia_smi(std::string_view text, const std::string& path);

/// Of one direction, behind the coding of the line; empty for generations and widths that are not
/// known. Gen 3 to 5 lose 2 of 130 bits, gen 6 sends frames.
std::optional<BytesPerSecond> pcie_rate(int generation, int lanes);

}  // namespace spillway::calibration
