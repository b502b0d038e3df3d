#include "model/spec/read_step.h"

#include "model/spec/read_hf_config.h"

namespace spillway {

bool is_model_path(const std::string& path) {
  return path.ends_with(".yml") || path.ends_with(".yaml") || path.ends_with(".json");
}

Result<StepSpec> read_step(const StepFiles& files) {
  if (!files.model.ends_with(".json")) {
    if (!files.settings.empty())
      return usage_error("--settings is for a config.json: a MaxText YAML says it all itself");
    return read_maxtext(files.model, files.devices);
  }
  Result<ModelSpec> model = read_hf_config(files.model);
  if (!model.ok()) return model.error();
  if (files.settings.empty())
    return usage_error("a config.json says nothing about the run",
                       "give --settings RUN.yml with per_device_batch_size, max_target_length and "
                       "what else MaxText's keys have to say");
  return read_run_settings(files.settings, std::move(model).value(), files.devices);
}

}  // namespace spillway
