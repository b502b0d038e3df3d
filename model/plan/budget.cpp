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
  budget.margin = wishes.margin.value_or(0);
  budget.block = wishes.block_limit;
  if (budget.block && *budget.block > budget.pool)
    return Error{ErrorKind::kUsage,
                 "--largest-block " + format_bytes(*budget.block) + " is above the pool, " +
                     format_bytes(budget.pool),
                 {},
                 "",
                 "leave it out where one block may take all of the pool"};
  const std::int64_t sharing = gpus_sharing_cpu(topology, profile);
  budget.host = wishes.host_limit.value_or(profile.host.memory_per_cpu.value / sharing);
  budget.node_host_is_stated = wishes.node_host_limit.has_value();
  budget.devices_per_node = topology.gpus_per_host;
  const std::int64_t cpus = (topology.gpus_per_host + sharing - 1) / sharing;
  budget.node_host = wishes.node_host_limit.value_or(profile.host.memory_per_cpu.value * cpus);
  budget.host_origin = wishes.host_limit ? "the limit given"
                       : sharing > 1     ? "the GPU's share of its CPU's memory"
                                         : "its CPU's memory, which it has to itself";
  return budget;
}

Bytes Budget::room() const {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(pool.value()) * (1 - margin)));
}

Bytes Budget::host_room() const {
  return node_host ? std::min(host, *node_host / devices_per_node) : host;
}

Fit check_fit(const MemoryTotals& totals, const Budget& budget) {
  Fit fit;
  const auto over = [](Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); };
  fit.over_hbm = over(totals.total_device, budget.room());
  if (budget.block) fit.over_block = over(totals.largest_allocation, *budget.block);
  fit.over_host = over(host_bytes(totals), budget.host);
  fit.node_host = host_bytes(totals) * budget.devices_per_node;
  if (budget.node_host) fit.over_node = over(fit.node_host, *budget.node_host);
  fit.fits = missed(fit, budget) == Bytes(0);
  const double with_holes = static_cast<double>(totals.total_device.value()) / (1 - budget.margin);
  fit.smallest_fraction =
      smallest_fraction(Bytes(static_cast<std::int64_t>(std::ceil(with_holes))), budget.hbm);
  fit.beside_reserve = pool_of(budget.hbm, fit.smallest_fraction) + budget.reserve <= budget.hbm;
  return fit;
}

Bytes missed(const Fit& fit, const Budget& budget) {
  const std::int64_t devices = budget.devices_per_node;
  const Bytes node_share((fit.over_node.value() + devices - 1) / devices);
  return fit.over_hbm + fit.over_block + std::max(fit.over_host, node_share);
}

std::vector<std::string> misses_of(const Fit& fit) {
  std::vector<std::string> misses;
  const auto add = [&misses](const char* what, Bytes over) {
    if (over > Bytes(0)) misses.push_back(what + (" by " + format_bytes(over)));
  };
  add("HBM", fit.over_hbm);
  add("the largest block", fit.over_block);
  add("host", fit.over_host);
  add("the node's host memory", fit.over_node);
  return misses;
}

}  // namespace spillway
