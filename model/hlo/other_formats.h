// Files that users take for HLO text: recognised by how they begin, and explained.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/base/result.h"

namespace spillway::hlo {

/// What `text` is instead of HLO text; empty when it may be HLO text.
std::optional<Error> explain_other_format(std::string_view text, const std::string& path);

}  // namespace spillway::hlo
