#include "model/plan/budget.h"

#include <algorithm>
#include <cmath>

#include "model/base/format.h"

namespace spillway {
namespace {

/// What JAX's allocator takes of the HBM.
Bytes pool_of(Bytes hbm, double fraction) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(hbm.value()) * fraction));
}

}  // namespace

double smallest_fraction(Bytes need, Bytes hbm) {
  // In floating point the next hundredth up from the quotient may be one too many, or its pool a
  // byte too small.
  const double up = std::ceil(ratio(need, hbm) * 100);
  for (const double hundredths : {up - 1, up})
    if (pool_of(hbm, hundredths / 100) >= need) return hundredths / 100;
  return (up + 1) / 100;
}

std::int64_t host_pool_gib(Bytes need) {
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  return (need.value() + kGibibyte - 1) / kGibibyte;
}

Result<Budget> make_budget(const HardwareProfile& profile, const Topology& topology,
                           const BudgetWishes& wishes) {
  Budget budget;
  budget.hbm = profile.device.hbm_capacity.value;
  budget.reserve = profile.device.reserve.value;
  budget.fraction = wishes.fraction.value_or(kDefaultMemoryFraction);
  budget.pool = pool_of(budget.hbm, budget.fraction);
  budget.pool_is_stated = wishes.fraction || wishes.hbm_limit;
  if (wishes.hbm_limit && *wishes.hbm_limit > budget.hbm)
    return Error{ErrorKind::kUsage,
                 "--hbm-limit " + format_bytes(*wishes.hbm_limit) + " is above the HBM of " +
                     profile.id + ", " + format_bytes(budget.hbm),
                 {},
                 "",
                 "leave it out for JAX's share of the HBM, or give what the step may allocate"};
  if (wishes.hbm_limit) {
    budget.pool = *wishes.hbm_limit;
    budget.fraction = ratio(budget.pool, budget.hbm);
  }
  const std::int64_t sharing = gpus_sharing_cpu(topology, profile);
  budget.host = wishes.host_limit.value_or(profile.host.memory_per_cpu.value / sharing);
  budget.host_origin = wishes.host_limit ? "the limit given"
                       : sharing > 1     ? "the GPU's share of its CPU's memory"
                                         : "its CPU's memory, which it has to itself";
  return budget;
}

Fit check_fit(const MemoryTotals& totals, const Budget& budget) {
  Fit fit;
  const auto over = [](Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); };
  fit.over_hbm = over(totals.total_device, budget.pool);
  fit.over_host = over(host_bytes(totals), budget.host);
  fit.fits = fit.over_hbm == Bytes(0) && fit.over_host == Bytes(0);
  fit.smallest_fraction = smallest_fraction(totals.total_device, budget.hbm);
  fit.beside_reserve = pool_of(budget.hbm, fit.smallest_fraction) + budget.reserve <= budget.hbm;
  return fit;
}

}  // namespace spillway
