#include "cli/capacity_models.h"

#include <memory>

#include "model/spec/config_keys.h"
#include "model/spec/known_models.h"
#include "model/spec/read_maxtext.h"

namespace spillway {
namespace {

bool is_yaml(const std::string& argument) {
  return argument.ends_with(".yml") || argument.ends_with(".yaml");
}

/// "llama3.1-8b" of "configs/llama3.1-8b.yml".
std::string label_of(const std::string& argument) {
  const std::size_t slash = argument.find_last_of('/');
  std::string name = slash == std::string::npos ? argument : argument.substr(slash + 1);
  for (const char* ending : {".yml", ".yaml"})
    if (name.ends_with(ending)) name.erase(name.size() - std::string_view(ending).size());
  return name;
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
  if (known_model(source.argument).empty()) {
    const auto unknown = find_model(source.argument);  // names the nearest
    return usage_error(unknown.error().text, unknown.error().advice);
  }
  Result<YamlDocument> settings = source.settings.empty()
                                      ? parse_yaml("{model_name: default}", source.argument)
                                      : read_yaml(source.settings);
  if (!settings.ok()) return settings;
  YamlDocument document = std::move(settings).value();
  if (document.root.kind == YamlNode::Kind::kMapping)
    set_key(document, "model_name", source.argument);
  return document;
}

}  // namespace

Result<CapacityRequest::Model> find_capacity_model(const CapacityModelSource& source) {
  Result<YamlDocument> read = read_settings(source);
  if (!read.ok()) return read.error();
  const auto document = std::make_shared<YamlDocument>(std::move(read).value());
  const bool is_mapping = document->root.kind == YamlNode::Kind::kMapping;
  const auto lacks = [&](const char* key) {
    return is_mapping && find_entry(document->root, key) == nullptr;
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
  if (replaces_batch) set_key(*document, "per_device_batch_size", "1");
  return CapacityRequest::Model{label_of(source.argument),
                                [document, replaces_sequence](std::int64_t devices) {
                                  if (!replaces_sequence) return read_maxtext(*document, devices);
                                  YamlDocument sized = *document;
                                  set_key(sized, "max_target_length", std::to_string(devices));
                                  return read_maxtext(sized, devices);
                                }};
}

}  // namespace spillway
