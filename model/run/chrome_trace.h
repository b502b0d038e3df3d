// Reader of the .trace.json.gz that the JAX profiler writes beside its .xplane.pb: the same events
// with their stats as texts. It is capped in size, so prefer the other where there is one.
#pragma once

#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/run/measured_run.h"

namespace spillway {

/// Reads what GPUs ran. A text that ends in the middle gives what stands before, and a note. An
/// error: no JSON of trace events, or no device in it.
Result<MeasuredRun> parse_chrome_trace(std::string_view text, const std::string& path);

}  // namespace spillway
