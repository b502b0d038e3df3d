// MaxText's configuration: a flat YAML in its keys, whose model_name may bring a model's dimensions
// along. A dimension that nobody gives is an error which names its key; what is no dimension has
// MaxText's default (base.yml at e591f30).
//
// Refused, since no program is made of it: layers of other kinds (multi-token prediction, vision,
// audio, linear attention), scaled dimensions (global_parameter_scale).
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/hardware/yaml_document.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// `devices` decides what an axis of -1 is. Errors carry path, line and column where there are any.
Result<StepSpec> read_maxtext(const std::string& path, std::int64_t devices);
/// The same of a text; `path` is only for messages.
Result<StepSpec> read_maxtext(const YamlDocument& document, std::int64_t devices);

/// How a model that comes from elsewhere is run: the same keys, of which those of the model are
/// refused.
Result<StepSpec> read_run_settings(const std::string& path, ModelSpec model, std::int64_t devices);

/// A model by its name in MaxText.
Result<ModelSpec> find_model(const std::string& name);

}  // namespace spillway
