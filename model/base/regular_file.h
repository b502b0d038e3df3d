// The bytes of a regular file: pipes and devices may never end.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/base/units.h"

namespace spillway {

/// Errors: cannot be opened, not a regular file, larger than `most`. `advice` goes with the last.
Result<std::string> read_regular_file(const std::string& path, Bytes most,
                                      const std::string& advice);

}  // namespace spillway
