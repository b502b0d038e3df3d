// --shard I/N: one part of the cases, for a cluster. `merge` puts the answers of all parts
// together.
#pragma once

#include <cstddef>
#include <string>

#include "model/base/result.h"

namespace spillway {

/// Part `index` of `count`, from 1. Cases are dealt out in turn, so that parts take equally long.
struct Shard {
  std::size_t index = 1, count = 1;
  /// Whether case number `number`, from 0, is of this part.
  bool owns(std::size_t number) const { return number % count == index - 1; }
};

/// "3/8". An error: no such form, no part of that number, or more than a million parts.
Result<Shard> parse_shard(const std::string& text);

}  // namespace spillway
