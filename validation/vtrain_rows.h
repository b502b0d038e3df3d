// vTrain's measured steps (Megatron-DeepSpeed on A100, its repository's
// data/ground_truth_multi.csv) as rows: the smallest model calibrates, the others are predicted.
// The file is read where it lies and is no part of this project.
#pragma once

#include <string>

#include "validation/published.h"

namespace spillway {

/// An error: a line that is no row of that file.
Result<PublishedResults> parse_vtrain(const std::string& csv, const std::string& path);

/// Settings of one step: everything recomputed, data, tensor and pipeline parallel.
struct MegatronStep {
  std::int64_t hidden = 0, heads = 0, layers = 0, sequence = 0;
  std::int64_t batch = 0, microbatch = 0;
  std::int64_t tensor = 1, data = 1, pipeline = 1;
};
Settings megatron_settings(const MegatronStep& step);

}  // namespace spillway
