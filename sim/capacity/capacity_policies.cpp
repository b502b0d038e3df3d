#include "sim/capacity/capacity_policies.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "model/spec/remat_policy.h"
#include "model/spec/saved_tensors.h"

namespace spillway {
namespace {

constexpr std::string_view kConfigured = "configured";

/// What becomes of each value of the model: equal for policies that do the same.
std::vector<SaveChoice> effect_of(const StepSpec& step) {
  std::vector<SaveChoice> effect;
  for (const SavedTensor& tensor : list_saved_tensors(step))
    effect.push_back(tensor.is_needed ? choice_of(step, tensor) : SaveChoice::kRecompute);
  return effect;
}

/// Where the state may lie beyond what is configured.
struct Place {
  bool optimizer, params;
  const char* label;
};
constexpr Place kPlaces[] = {
    {false, false, ""},
    {true, false, ", optimizer on the host"},
    {false, true, ", parameters on the host"},
    {true, true, ", optimizer and parameters on the host"},
};

void add_places(const StepSpec& step, const std::string& label, bool may_offload_state,
                std::vector<CapacityPolicy>& out) {
  const std::size_t first = out.size();
  for (const Place& place : kPlaces) {
    const bool moves = place.optimizer || place.params;
    const bool is_known =
        (place.optimizer && step.optimizer_on_host) || (place.params && step.params_on_host);
    if (moves && (!may_offload_state || is_known)) continue;
    CapacityPolicy policy{label + place.label, step, first};
    policy.step.optimizer_on_host |= place.optimizer;
    policy.step.params_on_host |= place.params;
    out.push_back(std::move(policy));
  }
}

}  // namespace

std::optional<Error> check_capacity_policies(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name != kConfigured && find_remat_preset(name) == nullptr)
      return usage_error("there is no remat_policy " + spillway::quoted(name),
                         "known are configured, " + remat_preset_names());
  return std::nullopt;
}

std::vector<CapacityPolicy> list_capacity_policies(const StepSpec& configured,
                                                   const std::vector<std::string>& names,
                                                   bool may_offload_state) {
  std::vector<std::string> wanted = names;
  if (wanted.empty()) {
    for (const RematPreset& preset : remat_presets()) wanted.emplace_back(preset.name);
    wanted.emplace_back(kConfigured);
  }
  std::vector<CapacityPolicy> policies;
  std::set<std::vector<SaveChoice>> seen;
  for (const std::string& name : wanted) {
    StepSpec step = configured;
    if (const RematPreset* preset = find_remat_preset(name)) apply_preset(step, *preset);
    if (seen.insert(effect_of(step)).second) add_places(step, name, may_offload_state, policies);
  }
  return policies;
}

}  // namespace spillway
