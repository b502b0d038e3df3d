#include "model/plan/budget.h"

#include <algorithm>
#include <cmath>

namespace spillway {

Budget make_budget(const HardwareProfile& profile, const BudgetWishes& wishes) {
  Budget budget;
  budget.hbm = profile.device.hbm_capacity.value;
  budget.reserve = profile.device.reserve.value;
  budget.fraction = wishes.fraction.value_or(kDefaultMemoryFraction);
  const auto hbm = static_cast<double>(budget.hbm.value());
  budget.pool = Bytes(static_cast<std::int64_t>(hbm * budget.fraction));
  if (wishes.hbm_limit) {
    budget.pool = *wishes.hbm_limit;
    budget.fraction = static_cast<double>(budget.pool.value()) / hbm;
  }
  budget.host = wishes.host_limit.value_or(memory_per_gpu(profile.host));
  budget.host_origin =
      wishes.host_limit ? "the limit given" : "the GPU's share of its CPU's memory";
  return budget;
}

Bytes host_bytes(const MemoryTotals& totals) {
  return totals.host_temp + totals.host_argument + totals.host_output - totals.host_alias;
}

Fit check_fit(const MemoryTotals& totals, const Budget& budget) {
  Fit fit;
  const auto over = [](Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); };
  fit.over_hbm = over(totals.total_device, budget.pool);
  fit.over_host = over(host_bytes(totals), budget.host);
  fit.fits = fit.over_hbm == Bytes(0) && fit.over_host == Bytes(0);
  fit.smallest_fraction = std::ceil(ratio(totals.total_device, budget.hbm) * 100) / 100;
  fit.beside_reserve = fit.smallest_fraction * static_cast<double>(budget.hbm.value()) +
                           static_cast<double>(budget.reserve.value()) <=
                       static_cast<double>(budget.hbm.value());
  return fit;
}

}  // namespace spillway
