// --shard I/N: one part of the cases, for a cluster. `merge` puts the answers of all parts
// together.
#pragma once

#include <string>

#include "model/base/result.h"
#include "sim/shard.h"

namespace spillway {

/// "3/8". An error: no such form, no part of that number, or more than a million parts.
Result<Shard> parse_shard(const std::string& text);

}  // namespace spillway
