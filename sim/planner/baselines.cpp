#include "sim/planner/baselines.h"

namespace spillway {
namespace {

/// Every name; state stays as compiled.
Policy all(const std::vector<Handle>& handles, Choice choice) {
  Policy policy = allowed_policy(handles);
  for (std::size_t k = 0; k < handles.size(); ++k)
    if (is_name(handles[k]) && handles[k].fixed_because.empty() &&
        handles[k].device_only_because.empty())
      policy[k] = choice;
  return policy;
}

Policy propose_compiled(const std::vector<Handle>& handles) { return compiled_policy(handles); }
Policy propose_keep(const std::vector<Handle>& handles) { return all(handles, Choice::kKeep); }
Policy propose_offload(const std::vector<Handle>& handles) {
  return all(handles, Choice::kOffload);
}

constexpr Baseline kBaselines[] = {
    {"as compiled", propose_compiled},
    {"keep all", propose_keep},
    {"offload all", propose_offload},
};

}  // namespace

std::span<const Baseline> baselines() { return kBaselines; }

}  // namespace spillway
