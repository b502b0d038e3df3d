// Percentages on the command line.
#pragma once

#include <string>
#include <string_view>

#include "model/base/result.h"

namespace spillway {

/// "1%" or "0.5": percent, not below 0. An error names the option.
Result<double> read_percent(const std::string& option, std::string_view text);

}  // namespace spillway
