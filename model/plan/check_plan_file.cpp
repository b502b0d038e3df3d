#include "model/plan/check_plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace spillway {
namespace {

constexpr const char* kNotEdited = "a plan file is made by plan or whatif, and not edited";

class Check {
 public:
  Check(const PlanFile& plan, const PlanFilePlaces& places, YamlProblems& problems)
      : plan_(plan), places_(places), problems_(problems) {}

  void run() {
    check_choices();
    check_entries();
    check_budget();
    check_times();
  }

 private:
  void wrong(std::string_view key, std::string text) {
    problems_.add(places_.of(key), std::move(text), kNotEdited);
  }

  /// A choice that was edited by hand has predictions of another one beside it.
  void check_choices() {
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k)
      for (const std::string& name : plan_.residuals[k].names) {
        const auto said =
            std::ranges::find(plan_.policy, name, &std::pair<std::string, Choice>::first);
        const Choice choice = plan_.residuals[k].choice;
        if (said == plan_.policy.end())
          problems_.add(places_.residuals[k], fmt::format("{} is not in 'policy'", quoted(name)),
                        kNotEdited);
        else if (said->second != choice)
          problems_.add(
              places_.residuals[k],
              fmt::format("{} is to be {} here, and {} in 'policy'", quoted(name), name_of(choice),
                          name_of(said->second)),
              "what it predicts is of one policy only: make another with whatif --set … --out");
      }
  }

  void check_entries() {
    // A name may have several stacks, of different layers or sizes.
    std::set<std::tuple<std::vector<std::string>, std::string, std::int64_t>> seen;
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k) {
      const PlannedResidual& residual = plan_.residuals[k];
      const bool is_new = seen.emplace(residual.names, residual.shape, residual.layers).second;
      if (!residual.names.empty() && !is_new)
        problems_.add(places_.residuals[k],
                      fmt::format("{} stands there twice", quoted(residual.names.front())),
                      kNotEdited);
      if (residual.layers < 1 || residual.bytes < Bytes(1))
        problems_.add(places_.residuals[k], "a residual has a layer and a byte at least",
                      kNotEdited);
    }
    std::set<StateClass> classes;
    for (std::size_t k = 0; k < plan_.state.size(); ++k) {
      const PlannedState& state = plan_.state[k];
      if (!classes.insert(state.kind).second)
        problems_.add(places_.state[k], fmt::format("'{}' stands there twice", name_of(state.kind)),
                      kNotEdited);
      if (state.on_host > state.bytes)
        problems_.add(places_.state[k], "more is on the host than there is", kNotEdited);
    }
  }

  void check_budget() {
    const PlannedBudget& budget = plan_.budget;
    if (plan_.program.devices < 1) wrong("devices", "a step runs on one device at least");
    if (budget.pool > budget.hbm)
      wrong("pool_bytes", "'pool_bytes' of 'budget' is above 'hbm_bytes'");
    if (budget.usable && *budget.usable > budget.pool)
      wrong("usable_bytes", "'usable_bytes' of 'budget' is above 'pool_bytes'");
    const MemoryTotals& memory = plan_.predicted.memory;
    const bool fits = memory.total_device <= budget.usable.value_or(budget.pool) &&
                      memory.largest_allocation <= budget.block.value_or(budget.hbm) &&
                      host_bytes(memory) <= budget.host;
    if (fits != plan_.fits)
      wrong("fits", fmt::format("'fits' is {}, and what is predicted {} the budget", plan_.fits,
                                fits ? "stays within" : "does not stay within"));
    if (memory.argument > memory.total_device)
      wrong("argument_bytes", "'argument_bytes' of 'predicted' is above 'total_device_bytes'");
  }

  void check_times() {
    const StepTimes& times = plan_.predicted.times;
    const std::pair<const char*, Seconds> parts[] = {
        {"kernel_seconds", times.kernels},
        {"exposed_d2h_seconds", times.exposed_offloads},
        {"exposed_h2d_seconds", times.exposed_reloads},
        {"exposed_collective_seconds", times.exposed_collectives},
        {"exposed_slice_seconds", times.exposed_slices},
        {"idle_seconds", times.idle}};
    for (const auto& [key, part] : parts)
      if (part.value() > times.step.value() * (1 + 1e-9))
        wrong(key, fmt::format("'{}' of 'predicted' is above 'step_seconds'", key));
  }

  const PlanFile& plan_;
  const PlanFilePlaces& places_;
  YamlProblems& problems_;
};

}  // namespace

TextPosition PlanFilePlaces::of(std::string_view key) const {
  const auto found = fields.find(key);
  return found == fields.end() ? TextPosition{} : found->second;
}

void check_plan_file(const PlanFile& plan, const PlanFilePlaces& places, YamlProblems& problems) {
  Check(plan, places, problems).run();
}

}  // namespace spillway
