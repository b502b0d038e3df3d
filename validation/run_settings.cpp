#include "validation/run_settings.h"

#include <fmt/format.h>

#include "model/spec/config_keys.h"
#include "model/spec/read_maxtext.h"

namespace spillway {
namespace {

/// Takes a setting out of the list.
std::string take(Settings& settings, const std::string& key, const std::string& otherwise) {
  const auto found = settings.find(key);
  if (found == settings.end()) return otherwise;
  std::string value = found->second;
  settings.erase(found);
  return value;
}

NarrowProducts narrow_of(const std::string& word) {
  if (word == "mlp") return NarrowProducts::kMlp;
  return word == "layers" ? NarrowProducts::kLayers : NarrowProducts::kNone;
}

}  // namespace

Result<RunSettings> make_run(const Settings& settings, const ProfileSearchPath& profiles) {
  Settings rest = settings;
  RunSettings run;
  const std::string machine = take(rest, "machine", "");
  const double devices = parse_number(take(rest, "devices", "1")).value_or(0);
  run.by_program = take(rest, "by", "estimate") == "program";
  run.hides_latencies = take(rest, "latency_hiding", "true") == "true";
  run.pipelines_copies = take(rest, "pipelined", "false") == "true";
  run.has_profile = take(rest, "pgle", "false") == "true";
  run.narrow = narrow_of(take(rest, "narrow_products", "none"));
  run.narrow_type = take(rest, "narrow_type", "f8e4m3fn");
  run.memory_fraction = parse_number(take(rest, "fraction", "0.75")).value_or(0.75);
  if (take(rest, "attention_count", "causal") == "all_pairs")
    run.attention_count = AttentionCount::kAllPairs;
  const auto network = parse_number(take(rest, "network", ""));
  Result<HardwareProfile> profile = find_profile(machine, profiles);
  if (!profile.ok()) return profile.error();
  run.profile = std::move(profile).value();
  if (network) run.profile.scale_out.nic_bandwidth.value = BytesPerSecond(*network * 1e9);
  run.topology = make_topology(static_cast<std::int64_t>(devices), run.profile);

  std::string text;
  for (const auto& [key, value] : rest) text += fmt::format("{}: {}\n", key, value);
  const Result<YamlDocument> document = parse_yaml(text, "published.yaml, MaxText's settings");
  if (!document.ok()) return document.error();
  Result<StepSpec> spec = read_maxtext(*document, static_cast<std::int64_t>(devices));
  if (!spec.ok()) return spec.error();
  run.spec = std::move(spec).value();
  return run;
}

}  // namespace spillway
