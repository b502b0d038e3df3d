// Reader of the JAX profiler's .xplane.pb: the streams of its device planes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/run/measured_run.h"

namespace spillway {

/// Whether the bytes are an XSpace: another proto has no planes with names.
bool is_xplane(std::string_view bytes);

/// Reads the planes of GPUs. Where a plane has lines of streams, these count and not the lines
/// that somebody derived from them ("XLA Ops"). An error: no XSpace, or no device in it, with what
/// there is instead.
Result<MeasuredRun> parse_xplane(std::string_view bytes, const std::string& path);

}  // namespace spillway
