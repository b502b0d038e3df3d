#include "sim/model_step.h"

#include <algorithm>
#include <cstdlib>

#include "model/spec/remat_policy.h"

namespace spillway {
namespace {

Choice to_choice(SaveChoice choice) {
  switch (choice) {
    case SaveChoice::kDevice:
      return Choice::kKeep;
    case SaveChoice::kHost:
      return Choice::kOffload;
    case SaveChoice::kRecompute:
      break;
  }
  return Choice::kRecompute;
}

Result<Program> order_under(const ModelStep& step, const HardwareProfile& profile,
                            const Topology& topology, const Budget& budget, bool configured) {
  const Evaluator evaluator(step.program, text_schedule(step.program).value(), profile, topology,
                            step.names, budget);
  const Policy policy = configured ? configured_policy(step.spec, evaluator.handles())
                                   : compiled_policy(evaluator.handles());
  return evaluator.rewrite(policy, evaluator.default_order());
}

}  // namespace

StepTextOptions step_text_options(const HardwareProfile& profile) {
  constexpr int kBlackwell = 10;
  return {.keeps_exponentials = std::atoi(profile.device.compute_capability.c_str()) >= kBlackwell};
}

Policy configured_policy(const StepSpec& spec, const std::vector<Handle>& handles) {
  Policy policy;
  for (const Handle& handle : handles) {
    if (handle.state) {
      const bool on_host =
          *handle.state == StateClass::kOptimizer ? spec.optimizer_on_host : spec.params_on_host;
      policy.push_back(on_host && handle.fixed_because.empty() ? Choice::kOffload : Choice::kKeep);
      continue;
    }
    // Of two names on one value the one that saves it wins, and of those the host.
    SaveChoice choice = choice_of(spec, handle.name);
    for (const std::string& alias : handle.aliases)
      choice = std::max(choice, choice_of(spec, alias));
    policy.push_back(to_choice(choice));
  }
  return policy;
}

Result<Program> order_everything_saved(const ModelStep& step, const HardwareProfile& profile,
                                       const Topology& topology, const Budget& budget) {
  return order_under(step, profile, topology, budget, false);
}

Result<Program> order_as_configured(const ModelStep& step, const HardwareProfile& profile,
                                    const Topology& topology, const Budget& budget) {
  return order_under(step, profile, topology, budget, true);
}

}  // namespace spillway
