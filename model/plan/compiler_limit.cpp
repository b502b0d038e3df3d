#include "model/plan/compiler_limit.h"

#include <algorithm>

namespace spillway {
namespace {

/// Arguments and results on the device, what is both counted once.
Bytes arguments_and_results(const MemoryTotals& totals) {
  return totals.argument + totals.output - totals.alias;
}

}  // namespace

Bytes ahead_of_time_base(Bytes hbm) {
  return Bytes(static_cast<std::int64_t>(0.8 * static_cast<double>(hbm.value())));
}

Bytes scheduler_limit(const MemoryTotals& totals, Bytes base, int slop_percent) {
  const Bytes left = std::max(base - arguments_and_results(totals), Bytes(0));
  return Bytes(left.value() / 100 * slop_percent + left.value() % 100 * slop_percent / 100);
}

Bytes remat_limit(const MemoryTotals& totals, Bytes base, int slop_percent) {
  return scheduler_limit(totals, base, slop_percent) + arguments_and_results(totals);
}

}  // namespace spillway
