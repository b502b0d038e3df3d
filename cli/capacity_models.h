// A MODEL of `capacity`: a MaxText YAML, the name of a model that MaxText ships, or a Hugging Face
// config.json; --batch and --seq take the place of what it says of them.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "sim/capacity/capacity.h"

namespace spillway {

struct CapacityModelSource {
  std::string argument;
  std::string settings;  ///< path of a YAML in MaxText's keys for models that say nothing of a run
  bool batch_is_given = false, sequence_is_given = false;
};

/// Reads files; what depends on the number of devices is found when it is asked for. Errors: no
/// such file, no such model, a batch or a sequence that nobody says.
Result<CapacityRequest::Model> find_capacity_model(const CapacityModelSource& source);

}  // namespace spillway
