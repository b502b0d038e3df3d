// The model's dimensions in MaxText's keys.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/spec/config_keys.h"
#include "model/spec/model_spec.h"

namespace spillway {

/// Reads the dimensions; what is wrong or missing is a problem of `keys`.
ModelSpec read_model(ConfigKeys& keys);

/// The settings of a known model. An error names models of like names.
Result<YamlDocument> known_model_document(const std::string& name);

}  // namespace spillway
