#include "sim/planner/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/flags/flag_names.h"
#include "model/flags/known_flags.h"
#include "model/plan/compiler_limit.h"

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

/// What makes MaxText put state into pinned host memory.
std::string_view maxtext_key(StateClass kind) {
  return kind == StateClass::kOptimizer ? "optimizer_memory_host_offload"
                                        : "parameter_memory_host_offload";
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
    if (!is_name(plan.handles[k])) continue;
    auto& list = plan.best.policy[k] == Choice::kOffload ? offloaded : saved;
    list.push_back(plan.handles[k].name);
    list.insert(list.end(), plan.handles[k].aliases.begin(), plan.handles[k].aliases.end());
  }
  return fmt::format(
      "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved={}, "
      "names_which_can_be_offloaded={}, offload_src=\"device\", offload_dst=\"pinned_host\")",
      python_list(saved), python_list(offloaded));
}

/// Whether the user has a flag at that value; of a list, whether the value is in it.
bool is_set(const FlagSettings& users, const Setting& flag) {
  const auto found = users.find(flag.name);
  if (found == users.end()) return false;
  if (!adds_up(flag.name)) return found->second == flag.value;
  return ("," + found->second + ",").find("," + flag.value + ",") != std::string::npos;
}

/// XLA's own rematerialisation, where it would act on a plan that offloads: it counts what is
/// pinned on the host against its limit for HBM.
std::optional<Setting> against_rematerialisation(const AdviceContext& context) {
  const Bytes limit = remat_limit(context.planned, context.pool);
  const Bytes counted = context.planned.total_device + host_bytes(context.planned);
  if (counted <= limit) return std::nullopt;
  return Setting{
      std::string(flag::kDisabledPasses), "rematerialization",
      fmt::format("XLA would count {}, pinned host memory among it, against its limit of "
                  "{} and recompute for nothing; what that costs is not simulated",
                  format_bytes(counted), format_bytes(limit))};
}

std::vector<Setting> advise_flags(const PlanResult& plan, const AdviceContext& context) {
  std::vector<Setting> flags;
  if (!context.jaxlib || plan.best.host == Bytes(0)) return flags;
  if (auto remat = against_rematerialisation(context)) flags.push_back(std::move(*remat));
  flags.push_back({std::string(flag::kNoHostCompute), "true",
                   "makes it an error, not a slow step, when something computes on an offloaded "
                   "array; changes nothing else"});
  std::erase_if(flags, [&context](const Setting& flag) {
    return !has_flag(*context.jaxlib, flag.name) || is_set(context.user_flags, flag);
  });
  return flags;
}

/// The policy of names: MaxText's keys, and JAX's.
void advise_names(const PlanResult& plan, const AdviceContext& context, Advice& advice) {
  advice.maxtext.push_back({"remat_policy", "custom", ""});
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    if (!is_name(plan.handles[k])) continue;
    const std::string word(maxtext_word(plan.best.policy[k]));
    advice.maxtext.push_back({plan.handles[k].name, word, ""});
    for (const std::string& alias : plan.handles[k].aliases)
      advice.maxtext.push_back({alias, word, ""});
  }
  for (const std::string& name : context.unmatched)
    advice.maxtext.push_back({name, "remat", "not saved by this program"});
  advice.jax_policy = jax_policy(plan);
}

}  // namespace

Advice advise(const PlanResult& plan, const AdviceContext& context) {
  Advice advice;
  const PolicyCase& best = plan.best;
  advice.flags = advise_flags(plan, context);
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
  if (context.has_names && std::ranges::any_of(plan.handles, is_name))
    advise_names(plan, context, advice);
  for (std::size_t k = 0; k < plan.handles.size(); ++k)
    if (plan.handles[k].state && best.policy[k] == Choice::kOffload)
      advice.maxtext.push_back({std::string(maxtext_key(*plan.handles[k].state)), "true", ""});
  return advice;
}

}  // namespace spillway
