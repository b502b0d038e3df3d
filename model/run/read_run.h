// Reads a profile of whatever kind: its content decides, not its name.
#pragma once

#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/run/measured_run.h"

namespace spillway {

/// Of a file, packed or not, or of a folder that jax.profiler wrote: its latest .xplane.pb, the
/// others a note. `fingerprint` is of the program whose costs are wanted from a PGLE file, as in
/// pgle.h.
Result<MeasuredRun> read_run(const std::string& path, std::string_view fingerprint = "");

}  // namespace spillway
