#include "sim/planner/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"

namespace spillway {
namespace {

/// In MaxText's words.
std::string_view maxtext_word(Choice choice) {
  switch (choice) {
    case Choice::kKeep:
      return "device";
    case Choice::kOffload:
      return "offload";
    case Choice::kRecompute:
      return "remat";
  }
  return "";
}

std::string python_list(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names)
    text += (text.size() > 1 ? ", " : "") + ("\"" + name + "\"");
  return text + "]";
}

std::string jax_policy(const PlanResult& plan) {
  std::vector<std::string> saved, offloaded;
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    auto& list = plan.best.policy[k] == Choice::kOffload ? offloaded : saved;
    list.push_back(plan.handles[k].name);
    list.insert(list.end(), plan.handles[k].aliases.begin(), plan.handles[k].aliases.end());
  }
  return fmt::format(
      "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved={}, "
      "names_which_can_be_offloaded={}, offload_src=\"device\", offload_dst=\"pinned_host\")",
      python_list(saved), python_list(offloaded));
}

}  // namespace

Advice advise(const PlanResult& plan, bool has_names, const std::vector<std::string>& unmatched) {
  Advice advice;
  const PolicyCase& best = plan.best;
  if (best.host > Bytes(0)) {
    advice.flags.push_back({"xla_disable_hlo_passes", "rematerialization",
                            "XLA's own rematerialisation counts pinned host memory as HBM and "
                            "would recompute for nothing"});
    advice.flags.push_back(
        {"xla_disable_automatic_host_compute_offload", "true",
         "makes it an error, not a slow step, when something computes on an offloaded array"});
  }
  if (best.fit.smallest_fraction > kDefaultMemoryFraction && best.fit.smallest_fraction <= 1)
    advice.environment.push_back(
        {"XLA_PYTHON_CLIENT_MEM_FRACTION", fmt::format("{:.2f}", best.fit.smallest_fraction),
         fmt::format("the step allocates {}; JAX takes {} of the HBM by default",
                     format_bytes(best.peak_device), kDefaultMemoryFraction)});
  if (best.host > kDefaultHostPool)
    advice.environment.push_back(
        {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", std::to_string(host_pool_gib(best.host)),
         fmt::format("the step pins {} of host memory a device; XLA's pool has {} GiB by default",
                     format_bytes(best.host), host_pool_gib(kDefaultHostPool))});
  if (!has_names || plan.handles.empty()) return advice;
  advice.maxtext.push_back({"remat_policy", "custom", ""});
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    const std::string word(maxtext_word(best.policy[k]));
    advice.maxtext.push_back({plan.handles[k].name, word, ""});
    for (const std::string& alias : plan.handles[k].aliases)
      advice.maxtext.push_back({alias, word, ""});
  }
  for (const std::string& name : unmatched)
    advice.maxtext.push_back({name, "remat", "not saved by this program"});
  advice.jax_policy = jax_policy(plan);
  return advice;
}

}  // namespace spillway
