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

/// Names that a MaxText configuration has a key for: the fields of RematAndOffload in its
/// configs/types.py, in one version or another. What none of them has it recomputes.
bool maxtext_has_key(std::string_view name) {
  constexpr std::string_view kKeys[] = {"decoder_layer_input",
                                        "context",
                                        "query_proj",
                                        "key_proj",
                                        "value_proj",
                                        "qkv_proj",
                                        "out_proj",
                                        "mla_q",
                                        "mla_kv",
                                        "mlpwi",
                                        "mlpwi_0",
                                        "mlpwi_1",
                                        "mlpwo",
                                        "moe_mlpwi",
                                        "moe_mlpwi_0",
                                        "moe_mlpwi_1",
                                        "moe_mlpwo",
                                        "attention_out",
                                        "engram"};
  return std::ranges::find(kKeys, name) != std::end(kKeys);
}

void add_maxtext_name(const std::string& name, Choice choice, const std::string& why,
                      std::vector<Setting>& keys) {
  const bool known = maxtext_has_key(name);
  if (!known && choice == Choice::kRecompute) return;
  keys.push_back({name, std::string(maxtext_word(choice)),
                  known ? why : "no key of MaxText's own: give jax.checkpoint the policy below"});
}

std::string python_list(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names)
    text += (text.size() > 1 ? ", " : "") + ("\"" + name + "\"");
  return text + "]";
}

/// What is in neither list jax.checkpoint recomputes. A value with two names is saved when either
/// is, so that both go where it goes.
std::string jax_policy(const PlanResult& plan) {
  std::vector<std::string> saved, offloaded;
  for (std::size_t k = 0; k < plan.handles.size(); ++k) {
    if (!is_name(plan.handles[k]) || plan.best.policy[k] == Choice::kRecompute) continue;
    auto& list = plan.best.policy[k] == Choice::kOffload ? offloaded : saved;
    list.push_back(plan.handles[k].name);
    list.insert(list.end(), plan.handles[k].aliases.begin(), plan.handles[k].aliases.end());
  }
  return fmt::format(
      "jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved={}, "
      "names_which_can_be_offloaded={}, offload_src=\"device\", offload_dst=\"pinned_host\")",
      python_list(saved), python_list(offloaded));
}

/// Where a step moves a state class, as comments for whoever writes the step.
std::string_view state_steps(StateClass kind) {
  return kind == StateClass::kOptimizer
             ? "# Optimizer state: opt = to_pinned_host(opt) before the first step, and\n"
               "# opt = to_device(opt) in the step, in front of the update.\n"
             : "# Parameters: params = to_pinned_host(params) before the first step; each layer\n"
               "# fetches its own, weights = to_device(weights), inside of jax.checkpoint and "
               "scan;\n"
               "# and grads, params = to_device((grads, params)) in front of the update.\n";
}

/// What rewritten steps do to state (sim/rewrite/offload_state.h), as Python that runs.
std::string jax_state(const PlanResult& plan) {
  std::string steps;
  for (std::size_t k = 0; k < plan.handles.size(); ++k)
    if (plan.handles[k].state && plan.best.policy[k] == Choice::kOffload)
      steps += state_steps(*plan.handles[k].state);
  if (steps.empty()) return "";
  return "import jax\n\n"
         "def to_pinned_host(tree):\n"
         "    move = lambda x: jax.device_put(x, x.sharding.with_memory_kind(\"pinned_host\"))\n"
         "    return jax.tree.map(move, tree)\n\n"
         "def to_device(tree):\n"
         "    return jax.device_put(tree, jax.memory.Space.Device)\n\n" +
         steps +
         "# Donate it, and give jax.jit its shardings as out_shardings: results then stay there.\n";
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
    const Choice choice = plan.best.policy[k];
    add_maxtext_name(plan.handles[k].name, choice, "", advice.maxtext);
    for (const std::string& alias : plan.handles[k].aliases)
      add_maxtext_name(alias, choice, "", advice.maxtext);
  }
  for (const std::string& name : context.unmatched)
    add_maxtext_name(name, Choice::kRecompute, "not saved by this program", advice.maxtext);
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
  advice.jax_state = jax_state(plan);
  for (std::size_t k = 0; k < plan.handles.size(); ++k)
    if (plan.handles[k].state && best.policy[k] == Choice::kOffload)
      advice.maxtext.push_back({std::string(maxtext_key(*plan.handles[k].state)), "true", ""});
  return advice;
}

}  // namespace spillway
