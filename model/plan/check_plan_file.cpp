#include "model/plan/check_plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "model/hlo/shape_reader.h"

namespace spillway {
namespace {

constexpr const char* kNotEdited = "a plan file is made by plan or whatif, and not edited";

class Check {
 public:
  Check(const PlanFile& plan, const PlanFilePlaces& places, YamlProblems& problems)
      : plan_(plan), places_(places), problems_(problems) {}

  void run() {
    check_choices();
    check_names();
    check_shapes();
    check_entries();
    check_state();
    check_budget();
    check_memory();
    check_times();
    check_phase();
  }

 private:
  void wrong(std::string_view key, std::string text) {
    problems_.add(places_.of(key), std::move(text), kNotEdited);
  }
  void wrong_residual(std::size_t k, std::string text) {
    problems_.add(places_.residuals[k], std::move(text), kNotEdited);
  }

  /// A choice that was edited by hand has predictions of another one beside it.
  void check_choices() {
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k)
      for (const std::string& name : plan_.residuals[k].names) {
        const auto said =
            std::ranges::find(plan_.policy, name, &std::pair<std::string, Choice>::first);
        const Choice choice = plan_.residuals[k].choice;
        if (said == plan_.policy.end())
          wrong_residual(k, fmt::format("{} is not in 'policy'", quoted(name)));
        else if (said->second != choice)
          problems_.add(
              places_.residuals[k],
              fmt::format("{} is to be {} here, and {} in 'policy'", quoted(name), name_of(choice),
                          name_of(said->second)),
              "what it predicts is of one policy only: make another with whatif --set … --out");
      }
  }

  /// What 'policy' says must be of something. A value without a name is called r0, r1, … or, in a
  /// step whose layers are unrolled, u0, u1, …
  void check_names() {
    std::set<std::string> known;
    bool has_unnamed = false;
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k) {
      const std::vector<std::string>& names = plan_.residuals[k].names;
      has_unnamed |= names.empty();
      for (const std::string& name : std::set(names.begin(), names.end()))
        if (std::ranges::count(names, name) > 1)
          wrong_residual(k, fmt::format("{} stands there twice", quoted(name)));
      known.insert(names.begin(), names.end());
    }
    for (const StateClass kind : kStateClasses) known.emplace(name_of(kind));
    for (const auto& [name, choice] : plan_.policy)
      if (!known.contains(name) && !(has_unnamed && is_number_of_value(name)))
        problems_.add(places_.policy.at(name),
                      fmt::format("no residual is called {}", quoted(name)), kNotEdited);
  }

  static bool is_number_of_value(std::string_view name) {
    return name.size() > 1 && (name.front() == 'r' || name.front() == 'u') &&
           name.find_first_not_of("0123456789", 1) == name.npos;
  }

  void check_shapes() {
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k) {
      const PlannedResidual& residual = plan_.residuals[k];
      const std::optional<Bytes> each = bytes_of_array(residual.shape);
      if (!each)
        wrong_residual(k, fmt::format("{} is no shape of an array", quoted(residual.shape)));
      else if (residual.layers > 0 && residual.bytes.value() / each->value() != residual.layers)
        wrong_residual(k, fmt::format("{} bytes are no {} layers of {}", residual.bytes.value(),
                                      residual.layers, residual.shape));
    }
  }

  /// "bf16[1,8]"; empty for what is none or has no byte.
  static std::optional<Bytes> bytes_of_array(const std::string& text) {
    hlo::ShapeReader reader;
    hlo::Cursor cursor(text, "");
    const Shape shape = reader.read(cursor);
    if (cursor.failed() || !cursor.at_end() || !shape.is_array() || shape.bytes() < Bytes(1))
      return std::nullopt;
    return shape.bytes();
  }

  void check_entries() {
    // A name may have several stacks, of different layers or sizes.
    std::set<std::tuple<std::vector<std::string>, std::string, std::int64_t>> seen;
    for (std::size_t k = 0; k < plan_.residuals.size(); ++k) {
      const PlannedResidual& residual = plan_.residuals[k];
      const bool is_new = seen.emplace(residual.names, residual.shape, residual.layers).second;
      if (!residual.names.empty() && !is_new)
        wrong_residual(k, fmt::format("{} stands there twice", quoted(residual.names.front())));
      if (residual.layers < 1 || residual.bytes < Bytes(1))
        wrong_residual(k, "a residual has a layer and a byte at least");
    }
  }

  void check_state() {
    std::set<StateClass> classes;
    Bytes on_host;
    for (std::size_t k = 0; k < plan_.state.size(); ++k) {
      const PlannedState& state = plan_.state[k];
      const auto wrong_state = [&](std::string text) {
        problems_.add(places_.state[k], std::move(text), kNotEdited);
      };
      on_host += state.on_host;
      if (!classes.insert(state.kind).second)
        wrong_state(fmt::format("'{}' stands there twice", name_of(state.kind)));
      if (state.on_host > state.bytes) wrong_state("more is on the host than there is");
      if (state.bytes > plan_.program.arguments)
        wrong_state("the program has fewer bytes of arguments");
    }
    if (on_host > plan_.predicted.memory.host_argument)
      wrong("host_argument_bytes",
            "'host_argument_bytes' of 'predicted' is below what 'state' has "
            "on the host");
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
    if (plan_.topology && plan_.topology->hosts * plan_.topology->gpus != plan_.program.devices)
      wrong("topology", "'topology' has another number of devices than 'program'");
  }

  void check_memory() {
    const MemoryTotals& memory = plan_.predicted.memory;
    struct Order {
      const char *less_key, *more_key;
      Bytes less, more;
    };
    const Order orders[] = {
        {"argument_bytes", "total_device_bytes", memory.argument, memory.total_device},
        {"temp_bytes", "total_device_bytes", memory.temp, memory.total_device},
        {"largest_allocation_bytes", "total_device_bytes", memory.largest_allocation,
         memory.total_device},
        {"live_peak_bytes", "total_device_bytes", plan_.predicted.live_peak, memory.total_device},
        {"alias_bytes", "output_bytes", memory.alias, memory.output},
        {"host_alias_bytes", "host_output_bytes", memory.host_alias, memory.host_output}};
    for (const Order& order : orders)
      if (order.less > order.more)
        wrong(order.less_key,
              fmt::format("'{}' of 'predicted' is above '{}'", order.less_key, order.more_key));
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

  void check_phase() {
    if (std::ranges::find(kPeakPhases, plan_.predicted.peak_phase) == std::end(kPeakPhases))
      wrong("peak_phase",
            fmt::format("{} is no part of a step", quoted(plan_.predicted.peak_phase)));
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
