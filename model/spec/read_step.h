// From files that a user has to a StepSpec: MaxText's YAML alone, or Hugging Face's config.json
// with the run's settings in MaxText's keys beside it.
#pragma once

#include <string>

#include "model/spec/read_maxtext.h"

namespace spillway {

/// Whether a path is taken for a model's configuration: by its name, .yml, .yaml or .json.
bool is_model_path(const std::string& path);

struct StepFiles {
  std::string model;
  std::string settings;  ///< MaxText's keys; needed beside a config.json, else empty
  std::int64_t devices = 0;
};
Result<StepSpec> read_step(const StepFiles& files);

}  // namespace spillway
