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

/// In the order of remat_preset_names.
std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  const std::string all = remat_preset_names();
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(", ", at), all.size());
    names.push_back(all.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

StepSpec with_preset(StepSpec step, const RematPreset& preset) {
  step.policy = preset.name;
  step.saves = {{"decoder_layer_input", SaveChoice::kDevice}};  // whatever a preset says
  for (const std::string_view name : preset.saved) step.saves[std::string(name)] = preset.where;
  return step;
}

/// What becomes of each value of the model: equal for policies that do the same.
std::vector<SaveChoice> effect_of(const StepSpec& step) {
  std::vector<SaveChoice> effect;
  for (const SavedTensor& tensor : list_saved_tensors(step)) {
    SaveChoice choice = SaveChoice::kRecompute;
    if (tensor.is_needed)
      for (const std::string& name : tensor.names) choice = std::max(choice, choice_of(step, name));
    effect.push_back(choice);
  }
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
    wanted = preset_names();
    wanted.emplace_back(kConfigured);
  }
  std::vector<CapacityPolicy> policies;
  std::set<std::vector<SaveChoice>> seen;
  for (const std::string& name : wanted) {
    const RematPreset* const preset = find_remat_preset(name);
    const StepSpec step = preset != nullptr ? with_preset(configured, *preset) : configured;
    if (seen.insert(effect_of(step)).second) add_places(step, name, may_offload_state, policies);
  }
  return policies;
}

}  // namespace spillway
