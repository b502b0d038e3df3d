// The program on the machine it is meant for: the pool, the block of temporaries in it, and what
// XLA believes about the device.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/plan/compiler_limit.h"

namespace spillway::internal {
namespace {

std::optional<Finding> above_pool(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const Budget& budget = *in.budget;
  const Bytes need = in.memory.totals.total_device;
  if (need <= budget.pool) return std::nullopt;
  Finding finding{
      fmt::format("the program needs {} of HBM, {} more than the pool of {} ({:.2f} of {}).",
                  format_bytes(need), format_bytes(need - budget.pool), format_bytes(budget.pool),
                  budget.fraction, format_bytes(budget.hbm)),
      "XLA compiles it all the same: memory is asked for when the step runs.", ""};
  const double fraction = smallest_fraction(need, budget.hbm);
  const bool leaves_reserve = fraction <= 1 && budget.hbm - need >= budget.reserve;
  finding.advice =
      leaves_reserve ? fmt::format("XLA_PYTHON_CLIENT_MEM_FRACTION={:.2f} would hold it.", fraction)
                     : fmt::format(
                           "No fraction holds it beside the {} that the runtime needs: offload or "
                           "recompute more (`spillway plan`), or use more devices.",
                           format_bytes(budget.reserve));
  return finding;
}

/// All temporaries are asked for in one piece.
std::optional<Finding> tight_block(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const MemoryTotals& totals = in.memory.totals;
  const Bytes spare = in.budget->pool - totals.total_device;
  if (spare < Bytes(0) || spare.value() > in.budget->pool.value() / 50) return std::nullopt;
  return Finding{
      fmt::format("the largest block, {}, must be free in one piece, and the pool has {} to spare "
                  "beside what the program holds.",
                  format_bytes(totals.largest_allocation), format_bytes(spare)),
      "XLA asks for all temporaries at once: any other array that lies in the middle of the pool "
      "(a "
      "batch in flight, a checkpoint being written) makes it fail although the sum fits.",
      "Leave more room: a larger XLA_PYTHON_CLIENT_MEM_FRACTION, or less in the step."};
}

/// A live compilation has another limit than one ahead of time.
std::optional<Finding> other_limit_when_live(const Evidence& in) {
  if (in.budget == nullptr) return std::nullopt;
  const MemoryTotals& totals = in.memory.totals;
  const Bytes ahead = scheduler_limit(totals, ahead_of_time_base(in.budget->hbm));
  const Bytes live = scheduler_limit(totals, in.budget->pool);
  // Below half of its limit the scheduler does not look at memory at all.
  const Bytes stricter = std::min(ahead, live);
  const bool may_differ = ahead != live && totals.temp > Bytes(stricter.value() / 2);
  if (!may_differ) return std::nullopt;
  return Finding{
      fmt::format("compiled ahead of time the scheduler aims to stay below {} of temporaries, on a "
                  "live device below {}; the program has {}.",
                  format_bytes(ahead), format_bytes(live), format_bytes(totals.temp)),
      "Without a device XLA starts from 0.8 of the HBM, on one from JAX's pool. Above half of the "
      "limit the order of instructions may depend on it, and with it the memory.",
      "Compare with a dump of the live run: `spillway compare`."};
}

/// Devices for which XLA has no table of matrix products, so that it schedules by fixed costs.
std::optional<Finding> fixed_costs(const Evidence& in) {
  constexpr std::array kWithoutTable = {"NVIDIA GB200", "NVIDIA GB300", "NVIDIA B300"};
  if (in.hardware == nullptr || in.transfers.empty()) return std::nullopt;
  if (std::ranges::find(kWithoutTable, in.hardware->device.xla_name) == kWithoutTable.end())
    return std::nullopt;
  return Finding{
      fmt::format("XLA orders this program by fixed costs: it has no table of matrix products for "
                  "{}.",
                  in.hardware->device.xla_name),
      "Each copy between HBM and host counts as 5000 units whatever its size, each loop fusion as "
      "1000, matrix products in Triton fusions as 1.",
      "A profile with real costs (--xla_gpu_pgle_profile_file_or_directory_path) takes their "
      "place."};
}

constexpr Rule kRules[] = {
    {"above-pool", Severity::kWarning, above_pool},
    {"tight-block", Severity::kWarning, tight_block},
    {"other-limit-when-live", Severity::kInfo, other_limit_when_live},
    {"fixed-costs", Severity::kInfo, fixed_costs},
};

}  // namespace

std::span<const Rule> machine_rules() { return kRules; }

}  // namespace spillway::internal
