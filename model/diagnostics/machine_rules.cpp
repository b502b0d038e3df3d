// The program on the machine it is meant for: the pool, the block of temporaries in it, and what
// XLA believes about the device.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/flags/flag_names.h"
#include "model/flags/scheduler_choice.h"
#include "model/plan/compiler_limit.h"

namespace spillway::internal {
namespace {

/// Whether the program's file says another device than the machine has.
bool is_for_another(const Evidence& in) {
  const std::string capability = capability_in_name(in.program.path);
  return in.hardware != nullptr && !capability.empty() &&
         capability != in.hardware->device.compute_capability;
}

std::optional<Finding> other_device(const Evidence& in) {
  if (!is_for_another(in)) return std::nullopt;
  return Finding{
      fmt::format("the program was compiled for compute capability {}, and {} has {}.",
                  capability_in_name(in.program.path), in.hardware->device.xla_name,
                  in.hardware->device.compute_capability),
      "XLA chooses other kernels and fusions for another device, and with them other memory: a "
      "Llama 3.1 8B step had 24.17 GiB of temporaries for 10.0 and 14.52 GiB for 9.0.",
      "Compile for the device that it will run on; no GPU is needed for that (examples/jax)."};
}

/// What a step that misses its pool could do.
std::string more_room(const Budget& budget, const Fit& fit) {
  const double roomy = fit.smallest_fraction + 0.02;
  const auto leaves_reserve = [&](double fraction) {
    const auto hbm = static_cast<double>(budget.hbm.value());
    return hbm * fraction + static_cast<double>(budget.reserve.value()) <= hbm;
  };
  if (fit.smallest_fraction > 1)
    return "No pool of this device holds it: offload or recompute more (`spillway plan`), or use "
           "more devices.";
  if (!fit.beside_reserve)
    return fmt::format(
        "XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f} would hold it, but leaves less than "
        "the {} that context, communication and libraries need beside the pool: "
        "offload or recompute more (`spillway plan`), or use more devices.",
        fit.smallest_fraction, format_bytes(budget.reserve));
  if (!leaves_reserve(roomy))
    return fmt::format("XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f} just holds it.",
                       fit.smallest_fraction);
  return fmt::format("XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f} just holds it, {:.2f} with some room.",
                     fit.smallest_fraction, roomy);
}

std::optional<Finding> above_pool(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const Budget& budget = *in.budget;
  const Fit fit = check_fit(in.memory.totals, budget);
  if (fit.over_hbm == Bytes(0)) return std::nullopt;
  return Finding{
      fmt::format("the program needs {} of HBM, {} more than the pool of {} ({:.2f} of {}).",
                  format_bytes(in.memory.totals.total_device), format_bytes(fit.over_hbm),
                  format_bytes(budget.pool), budget.fraction, format_bytes(budget.hbm)),
      "XLA compiles it all the same: memory is asked for when the step runs.",
      more_room(budget, fit)};
}

std::optional<Finding> above_host(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const Fit fit = check_fit(in.memory.totals, *in.budget);
  if (fit.over_host == Bytes(0)) return std::nullopt;
  return Finding{fmt::format("the step needs {} of pinned host memory on each device, {} more than "
                             "the {} there are.",
                             format_bytes(host_bytes(in.memory.totals)),
                             format_bytes(fit.over_host), format_bytes(in.budget->host)),
                 fmt::format("That is {}.", in.budget->host_origin),
                 "Offload less (`spillway plan` says what), or use more hosts."};
}

std::optional<Finding> pool_too_large(const Evidence& in) {
  if (in.budget == nullptr || in.budget->pool + in.budget->reserve <= in.budget->hbm)
    return std::nullopt;
  return Finding{
      fmt::format("a pool of {} ({:.2f} of {}) leaves {} beside it, and the runtime needs "
                  "{}.",
                  format_bytes(in.budget->pool), in.budget->fraction, format_bytes(in.budget->hbm),
                  format_bytes(in.budget->hbm - in.budget->pool), format_bytes(in.budget->reserve)),
      "CUDA's context, NCCL's buffers and workspaces of libraries live there.",
      "Take a smaller fraction."};
}

/// All temporaries are asked for in one piece.
std::optional<Finding> tight_block(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const MemoryTotals& totals = in.memory.totals;
  const Bytes spare = in.budget->pool - totals.total_device;
  if (spare < Bytes(0) || spare.value() > in.budget->pool.value() / 50) return std::nullopt;
  const bool may_grow =
      in.budget->pool + in.budget->reserve + Bytes(in.budget->hbm.value() / 50) <= in.budget->hbm;
  return Finding{
      fmt::format("the largest block, {}, must be free in one piece, and the pool has {} to spare "
                  "beside what the program holds.",
                  format_bytes(totals.largest_allocation), format_bytes(spare)),
      "XLA asks for all temporaries at once: any other array that lies in the middle of the pool "
      "(a "
      "batch in flight, a checkpoint being written) makes it fail although the sum fits.",
      may_grow
          ? fmt::format("A larger pool leaves more room: XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f}.",
                        in.budget->fraction + 0.02)
          : "Hold less in the step (`spillway plan`): a larger pool would take from what the "
            "runtime needs."};
}

/// A live compilation has another limit than one ahead of time. Source: GetSchedulerMemoryLimit in
/// xla/service/gpu/gpu_hlo_schedule.cc, and the memory rules of xla/service/
/// latency_hiding_scheduler.cc, which begin at half of the limit.
std::optional<Finding> other_limit_when_live(const Evidence& in) {
  if (in.budget == nullptr || is_for_another(in)) return std::nullopt;
  const MemoryTotals& totals = in.memory.totals;
  const Bytes ahead = scheduler_limit(totals, ahead_of_time_base(in.budget->hbm));
  const Bytes live = scheduler_limit(totals, in.budget->pool);
  // Below half of its limit the scheduler does not look at memory at all, above both it always
  // does.
  const bool may_differ = ahead != live && totals.temp > Bytes(std::min(ahead, live).value() / 2) &&
                          totals.temp <= std::max(ahead, live);
  if (!may_differ) return std::nullopt;
  return Finding{
      fmt::format("compiled ahead of time the scheduler aims to stay below {} of temporaries, on a "
                  "live device below {}; the program has {}.",
                  format_bytes(ahead), format_bytes(live), format_bytes(totals.temp)),
      "Without a device XLA starts from 0.8 of the HBM, on one from JAX's pool. Above half of the "
      "limit the order of instructions may depend on it, and with it the memory.",
      "Compare with a dump of the live run: `spillway compare`."};
}

/// XLA has no table of matrix products for the device, so that it schedules by fixed costs.
/// Source: the constants of ApproximateLatencyEstimator and GpuLatencyEstimator, of August 2026.
std::optional<Finding> fixed_costs(const Evidence& in) {
  if (in.hardware == nullptr || in.transfers.empty() || is_for_another(in)) return std::nullopt;
  if (!choose_scheduler({}, in.hardware->device, in.program).lacks_table) return std::nullopt;
  return Finding{
      fmt::format(
          "XLA's scheduler goes by fixed costs on {}: it has no table of matrix products for "
          "that device.",
          in.hardware->device.xla_name),
      "Each copy between HBM and host counts as 5000 units whatever its size, each loop fusion as "
      "1000, matrix products in Triton fusions as 1.",
      "A profile with real costs (--" + std::string(flag::kProfile) + ") takes their place."};
}

constexpr Rule kRules[] = {
    {"other-device", Severity::kWarning, other_device},
    {"above-pool", Severity::kWarning, above_pool},
    {"above-host", Severity::kWarning, above_host},
    {"pool-too-large", Severity::kWarning, pool_too_large},
    {"tight-block", Severity::kWarning, tight_block},
    {"other-limit-when-live", Severity::kInfo, other_limit_when_live},
    {"fixed-costs", Severity::kInfo, fixed_costs},
};

}  // namespace

std::span<const Rule> machine_rules() { return kRules; }

}  // namespace spillway::internal
