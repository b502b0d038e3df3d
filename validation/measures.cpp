#include "validation/measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cost/host_rates.h"
#include "model/plan/budget.h"
#include "model/plan/compiler_limit.h"
#include "model/spec/config_keys.h"
#include "model/spec/megatron_memory.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/weights.h"
#include "sim/capacity/model_dimensions.h"
#include "sim/capacity/step_estimate.h"
#include "validation/program_step.h"

namespace spillway {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
double gib(Bytes bytes) { return static_cast<double>(bytes.value()) / kGib; }
Bytes from_gib(double value) { return Bytes(static_cast<std::int64_t>(value * kGib)); }

double number_of(const Settings& settings, const std::string& key, double otherwise) {
  const auto found = settings.find(key);
  return found == settings.end() ? otherwise : parse_number(found->second).value_or(otherwise);
}
std::string text_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

TrainingFlops flops_of(const RunSettings& run) {
  return training_flops(dimensions_of(run.spec.model),
                        {run.spec.batch_per_device, run.spec.sequence, run.spec.accumulation},
                        run.attention_count);
}
double tokens_of(const StepSpec& spec) {
  return spec.batch_per_device * static_cast<double>(spec.sequence * spec.accumulation);
}

/// Device and host memory of a step.
struct Needs {
  Bytes device, host;
};
Result<Needs> needs_of(const RunSettings& run) {
  if (run.by_program) {
    const Result<SimResult> result = simulate_run(run);
    if (!result.ok()) return result.error();
    return Needs{result->memory.total_device, result->memory.host_temp};
  }
  const auto estimator = StepEstimator::make(run.spec, run.profile, run.topology);
  if (!estimator.ok()) return estimator.error();
  const StepEstimate estimate = estimator->estimate(run.spec);
  return Needs{estimate.device, estimate.host};
}

Result<Measured> fits(const RunSettings& run) {
  const Result<Needs> needs = needs_of(run);
  if (!needs.ok()) return needs.error();
  const Result<Budget> budget =
      make_budget(run.profile, run.topology, {.fraction = run.memory_fraction});
  if (!budget.ok()) return budget.error();
  MemoryTotals totals;
  totals.temp = totals.total_device = totals.no_fragmentation = needs->device;
  totals.host_temp = needs->host;
  return Measured{check_fit(totals, *budget).fits ? 1.0 : 0.0};
}

Result<Measured> closed_form(std::string_view name, const Settings& settings) {
  const auto whole = [&](const std::string& key, double otherwise) {
    return static_cast<std::int64_t>(number_of(settings, key, otherwise));
  };
  const MegatronShape shape{whole("hidden", 0),   whole("heads", 0),      whole("layers", 0),
                            whole("sequence", 0), whole("microbatch", 1), whole("tensor", 1),
                            whole("pipeline", 1), whole("virtual", 1)};
  if (name == "megatron_state_gib") return Measured{megatron_state_bytes(shape) / kGib};
  const std::string recompute = text_of(settings, "recompute");
  const MegatronRecompute how = recompute == "full"        ? MegatronRecompute::kFull
                                : recompute == "selective" ? MegatronRecompute::kSelective
                                                           : MegatronRecompute::kNone;
  const bool split = text_of(settings, "sequence_parallel") == "true";
  return Measured{megatron_activation_bytes(shape, how, split) / kGib};
}

Measured remat_limit_of(const Settings& settings) {
  MemoryTotals totals;
  totals.argument = from_gib(number_of(settings, "arguments_gib", 0));
  // remat_limit counts what the scheduler's limit left out on top; the log has the limit alone.
  const Bytes limit = scheduler_limit(totals, from_gib(number_of(settings, "base_gib", 0)),
                                      static_cast<int>(number_of(settings, "slop", 95)));
  return {gib(limit)};
}

Measured copy_ms(const Settings& settings, const HardwareProfile& profile) {
  const HostRates rates = host_rates(
      profile,
      make_topology(static_cast<std::int64_t>(number_of(settings, "devices", 1)), profile));
  const std::string direction = text_of(settings, "direction");
  const BytesPerSecond rate = direction == "offload"  ? rates.device_to_host
                              : direction == "reload" ? rates.host_to_device
                                                      : rates.each_of_both;
  const Bytes bytes(static_cast<std::int64_t>(number_of(settings, "bytes", 0)));
  return {1e3 * (bytes / rate + profile.link.copy_latency.value).value()};
}

Measured fits_beside_pool(const Settings& settings, const HardwareProfile& profile) {
  const Bytes hbm = profile.device.hbm_capacity.value;
  const double beside = (1 - number_of(settings, "fraction", 0.75)) * gib(hbm);
  const double needed = gib(profile.device.reserve.value) + number_of(settings, "beside_gib", 0);
  return {beside >= needed ? 1.0 : 0.0};
}

constexpr std::string_view kOfTime[] = {"step", "tokens_per_second", "sequences_per_second",
                                        "tflops"};
constexpr std::string_view kOfMemory[] = {"device_gib", "state_gib",  "host_gib",
                                          "fits",       "step_tflop", "token_gflop"};
constexpr std::string_view kOthers[] = {
    "gain",    "fits_beside_pool",   "remat_limit_gib",
    "copy_ms", "megatron_state_gib", "megatron_activations_gib"};

template <typename Table>
bool is_one_of(std::string_view name, const Table& table) {
  return std::ranges::find(table, name) != std::end(table);
}

}  // namespace

std::vector<std::string_view> measure_names() {
  std::vector<std::string_view> names(std::begin(kOfTime), std::end(kOfTime));
  names.insert(names.end(), std::begin(kOfMemory), std::end(kOfMemory));
  names.insert(names.end(), std::begin(kOthers), std::end(kOthers));
  return names;
}

Result<Measured> Measures::time(const Settings& settings) {
  if (const auto known = times_.find(settings); known != times_.end()) return known->second;
  const Result<RunSettings> run = make_run(settings, profiles_);
  if (!run.ok()) return run.error();
  Measured result;
  if (run->by_program) {
    const Result<SimResult> simulated = simulate_run(*run);
    if (!simulated.ok()) return simulated.error();
    result.value = simulated->step.value();
    result.kernels = simulated->compute_busy.value();
    result.exposed = result.value - result.kernels;
  } else {
    const auto estimator = StepEstimator::make(run->spec, run->profile, run->topology);
    if (!estimator.ok()) return estimator.error();
    const StepEstimate estimate = estimator->estimate(run->spec);
    result.value = estimate.step.value();
    result.kernels = estimate.kernels.value();
    result.exposed = (estimate.exposed_collectives + estimate.exposed_copies).value();
    result.bubble = result.value / (result.kernels + result.exposed);
  }
  const double passes = run->spec.policy == "full" ? 4.0 / 3 : 1;
  result.flops = flops_of(*run).total.value() * passes;
  times_[settings] = result;
  return result;
}

Result<Measured> Measures::measure_step(std::string_view name, const Settings& settings) {
  Result<Measured> measured = time(settings);
  if (!measured.ok() || name == "step") return measured;
  const RunSettings run = make_run(settings, profiles_).value();
  Measured result = *measured;
  result.is_rate = true;
  const double step = result.value;
  if (name == "tflops") result.value = flops_of(run).total.value() / step / 1e12;
  if (name == "tokens_per_second") result.value = tokens_of(run.spec) / step;
  if (name == "sequences_per_second")
    result.value = run.spec.batch_per_device * static_cast<double>(run.spec.accumulation) *
                   static_cast<double>(run.topology.devices) / step;
  return result;
}

Result<Measured> Measures::measure_memory(std::string_view name, const Settings& settings) {
  const Result<RunSettings> run = make_run(settings, profiles_);
  if (!run.ok()) return run.error();
  const double flops = flops_of(*run).total.value();
  if (name == "step_tflop") return Measured{flops / 1e12};
  if (name == "token_gflop") return Measured{flops / tokens_of(run->spec) / 1e9};
  if (name == "fits") return fits(*run);
  if (name == "host_gib") return Measured{gib(count_saved(run->spec).host)};
  if (name == "state_gib") {
    const Result<StateBytes> state = count_state(run->spec);
    if (!state.ok()) return state.error();
    return Measured{gib(state->params + state->optimizer + state->other)};
  }
  const Result<Needs> needs = needs_of(*run);
  if (!needs.ok()) return needs.error();
  return Measured{gib(needs->device)};
}

Result<Measured> Measures::measure(std::string_view name, const Settings& step,
                                   const std::optional<Settings>& against) {
  if (is_one_of(name, kOfTime)) return measure_step(name, step);
  if (is_one_of(name, kOfMemory)) return measure_memory(name, step);
  if (name.starts_with("megatron_")) return closed_form(name, step);
  if (name == "remat_limit_gib") return remat_limit_of(step);
  if (name == "gain") {
    if (!against) return usage_error("'gain' needs 'against'");
    const Result<Measured> one = time(step), other = time(*against);
    if (!one.ok()) return one.error();
    if (!other.ok()) return other.error();
    return Measured{100 * (other->value / one->value - 1)};
  }
  if (name != "copy_ms" && name != "fits_beside_pool")
    return usage_error(fmt::format("the measure {} is not known", quoted(name)));
  const Result<HardwareProfile> profile = find_profile(text_of(step, "machine"), profiles_);
  if (!profile.ok()) return profile.error();
  return name == "copy_ms" ? copy_ms(step, *profile) : fits_beside_pool(step, *profile);
}

}  // namespace spillway
