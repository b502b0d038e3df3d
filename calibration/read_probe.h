// Reads what spillway-probe wrote (schema spillway.probe/1): each raw sample becomes one sample of
// Measurements.
#pragma once

#include <string>

#include "calibration/measurements.h"

namespace spillway::calibration {

/// Whether the text is such a file, by its schema.
bool is_probe_json(std::string_view text);

/// `path` is for messages and for where samples come from.
Result<Measurements> read_probe(const std::string& text, const std::string& path);

}  // namespace spillway::calibration
