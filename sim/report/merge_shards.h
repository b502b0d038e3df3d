// The answers of all parts of a sharded command, put together: the same bytes as in one run.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"

namespace spillway {

/// A part: the file it came from, and the JSON in it.
struct ShardText {
  std::string path, json;
};

/// The answer that the command would have given without --shard. Errors: a file that is no such
/// part, parts of different questions, a part that is missing, there twice or without all its
/// cases.
Result<std::string> merge_shards(const std::vector<ShardText>& shards);

}  // namespace spillway
