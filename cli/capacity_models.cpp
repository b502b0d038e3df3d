#include "cli/capacity_models.h"

#include <filesystem>
#include <memory>

#include "model/spec/config_keys.h"
#include "model/spec/known_models.h"
#include "model/spec/read_hf_config.h"
#include "model/spec/read_maxtext.h"

namespace spillway {
namespace {

bool is_yaml(const std::string& argument) {
  return argument.ends_with(".yml") || argument.ends_with(".yaml");
}

bool is_json(const std::string& argument) { return argument.ends_with(".json"); }

/// "llama3.1-8b" of "configs/llama3.1-8b.yml" and of "llama3.1-8b/config.json".
std::string label_of(const std::string& argument) {
  std::filesystem::path path(argument);
  if (path.filename() == "config.json" && path.has_parent_path()) path = path.parent_path();
  const bool is_file = is_yaml(argument) || path.extension() == ".json";
  return is_file ? path.stem().string() : path.filename().string();
}

void set_key(YamlDocument& document, const char* key, const std::string& value) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.scalar = value;
  std::erase_if(document.root.entries, [&](const auto& entry) { return entry.key == key; });
  document.root.entries.push_back({key, {}, std::move(node)});
}

/// The settings of the run, with the model's name where that is all there is of the model.
Result<YamlDocument> read_settings(const CapacityModelSource& source) {
  if (is_yaml(source.argument)) {
    if (!source.settings.empty())
      return usage_error("--settings is for models that say nothing of a run",
                         spillway::quoted(source.argument) + " says it all itself");
    return read_yaml(source.argument);
  }
  if (!is_json(source.argument) && known_model(source.argument).empty()) {
    const auto unknown = find_model(source.argument);  // names the nearest
    return usage_error(unknown.error().text, unknown.error().advice);
  }
  Result<YamlDocument> settings =
      source.settings.empty() ? parse_yaml("{}", source.argument) : read_yaml(source.settings);
  if (!settings.ok() || is_json(source.argument)) return settings;
  YamlDocument document = std::move(settings).value();
  if (document.root.kind == YamlNode::Kind::kMapping)
    set_key(document, "model_name", source.argument);
  return document;
}

/// Settings, and the model where they do not name it.
struct ModelRun {
  YamlDocument settings;
  std::optional<ModelSpec> model;

  Result<StepSpec> read(std::int64_t devices) const {
    return model ? read_run_settings(settings, *model, devices) : read_maxtext(settings, devices);
  }
};

}  // namespace

Result<CapacityRequest::Model> find_capacity_model(const CapacityModelSource& source) {
  Result<YamlDocument> read = read_settings(source);
  if (!read.ok()) return read.error();
  const auto run = std::make_shared<ModelRun>(ModelRun{std::move(read).value(), {}});
  if (is_json(source.argument)) {
    Result<ModelSpec> model = read_hf_config(source.argument);
    if (!model.ok()) return model.error();
    run->model = std::move(model).value();
  }
  const bool is_mapping = run->settings.root.kind == YamlNode::Kind::kMapping;
  const auto lacks = [&](const char* key) {
    return is_mapping && find_entry(run->settings.root, key) == nullptr;
  };
  if (!source.batch_is_given && lacks("per_device_batch_size"))
    return usage_error(
        "nothing says how many sequences of " + label_of(source.argument) + " a device takes",
        "for example --batch 1,2,4");
  if (!source.sequence_is_given && lacks("max_target_length"))
    return usage_error(
        "nothing says how long the sequences of " + label_of(source.argument) + " are",
        "for example --seq 4096,8192");
  // Any mesh can share these out; cells have batches and sequences of their own.
  const bool replaces_batch = source.batch_is_given && is_mapping;
  const bool replaces_sequence = source.sequence_is_given && is_mapping;
  if (replaces_batch) set_key(run->settings, "per_device_batch_size", "1");
  return CapacityRequest::Model{
      label_of(source.argument), [run, replaces_sequence](std::int64_t devices) {
        if (!replaces_sequence) return run->read(devices);
        ModelRun sized = *run;
        set_key(sized.settings, "max_target_length", std::to_string(devices));
        return sized.read(devices);
      }};
}

}  // namespace spillway
