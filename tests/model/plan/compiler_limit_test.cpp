#include "model/plan/compiler_limit.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

TEST_CASE("limits of the scheduler and of rematerialisation") {
  MemoryTotals totals;
  totals.argument = Bytes(300);
  totals.output = Bytes(200);
  totals.alias = Bytes(100);
  const Bytes base = ahead_of_time_base(Bytes(1000));
  CHECK(base == Bytes(800));
  CHECK(scheduler_limit(totals, base) == Bytes(380));  // 0.95 of 800 - 400
  CHECK(remat_limit(totals, base) == Bytes(780));
  CHECK(scheduler_limit(totals, base, 100) == Bytes(400));
  CHECK(scheduler_limit(totals, base, 1) == Bytes(4));
  // Arguments above the base: no room at all.
  CHECK(scheduler_limit(totals, Bytes(399)) == Bytes(0));
  CHECK(remat_limit(totals, Bytes(399)) == Bytes(400));
}

TEST_CASE("no overflow at the size of real devices") {
  MemoryTotals totals;
  CHECK(scheduler_limit(totals, Bytes(std::int64_t{1} << 60)) ==
        Bytes(1095275429376504627));  // 0.95 of 2^60, rounded down
}

}  // namespace
}  // namespace spillway
