// Rules about state on the host and the growth of its pool. Host compute and the pool's limit are
// in diagnostics_test.cpp.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::kOffloaded;
using testing::ToyScan;
using testing::what_of;

std::string entry(const std::string& lines) { return "ENTRY %main {\n" + lines + "}\n"; }

TEST_CASE("state that is fetched long before it is needed") {
  const std::string header = ", input_output_alias={ {0}: (0, {}, may-alias) }";
  const std::string arguments =
      "  %m = f32[64]{0:S(5)} parameter(0)\n  %x = f32[64]{0} parameter(1)\n";
  const std::string fetch =
      "  %in = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%m)\n  %d = f32[64]{0} "
      "copy-done(%in)\n";
  const std::string peak =
      "  %a = f32[64]{0} tanh(%x)\n  %b = f32[64]{0} negate(%x)\n  %c = f32[64]{0} add(%a, %b)\n";
  const std::string update =
      "  %new = f32[64]{0} add(%d, %c)\n  %out = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) "
      "copy-start(%new)\n  %h = f32[64]{0:S(5)} copy-done(%out)\n"
      "  ROOT %r = (f32[64]{0:S(5)}, f32[64]{0}) tuple(%h, %c)\n";
  CHECK(what_of(inspect(entry(arguments + fetch + peak + update), header), "state-at-peak") ==
        "256 B of 256 B of state that is kept in pinned host memory are in HBM when most is live.");
  CHECK(
      what_of(inspect(entry(arguments + peak +
                            "  %e = f32[128]{0} broadcast(%c), dimensions={0}\n" + fetch + update),
                      header),
              "state-at-peak") == "");
}

TEST_CASE("a host pool that pins much more than it hands out") {
  Inspected scanned = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  CHECK(what_of(scanned, "host-pool-growth") == "");
  const auto host = [&](std::int64_t bytes) {
    scanned.memory.totals.host_temp = Bytes(bytes);
    for (Allocation& allocation : scanned.assignment.allocations)
      if (is_host(allocation.space)) allocation.size = Bytes(bytes);
    return what_of(scanned, "host-pool-growth");
  };
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  CHECK(host(33 * kGibibyte) ==
        "the step needs 33.00 GiB of pinned host memory, for which XLA's pool pins 64.00 GiB.");
  CHECK(host(32 * kGibibyte) == "");
  // The limit cuts the last region.
  CHECK(host(65 * kGibibyte) == "");
}

}  // namespace
}  // namespace spillway
