// The rules on real programs, of which it is known what is wrong with them and what is not.
#include <doctest/doctest.h>

#include <algorithm>

#include "model/diagnostics/diagnostics.h"
#include "model/hlo/read_program.h"
#include "tests/model/diagnostics/diagnose.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

TEST_CASE("the corpus: what is wrong is said, of those and of no others") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* program;
    const char* code;
    bool said;
  };
  const Row rows[] = {
      // The same scan with offloaded residuals, by four versions of XLA.
      {"v0_8_3_scan_off", "reads-wrong-slice", false},
      {"v0_10_2_scan_off", "reads-wrong-slice", true},
      {"v0_11_2_scan_off", "reads-wrong-slice", false},
      {"v0_12_0_1_scan_off", "reads-wrong-slice", false},
      // Attention context kept, offloaded, recomputed.
      {"l8b_b2_dddd", "kernel-runs-again", true},
      {"l8b_b2_oroo", "kernel-runs-again", true},
      {"l8b_b2_ddrd", "kernel-runs-again", false},
      {"l8b_b2_minimal", "kernel-runs-again", false},
      // Unrolled layers; memory fencing and no latency hiding undo the harm.
      {"l8b4_unr_off", "host-bytes-short", true},
      {"l8b4_unr_off", "round-trip-at-peak", true},
      {"l8b4_unr_off_fence", "host-bytes-short", false},
      {"l8b4_unr_off_fence", "round-trip-at-peak", false},
      {"l8b4_unr_off_lhs0", "round-trip-at-peak", false},
      {"l8b4_unr_off_lhs0", "copies-wait", true},
      {"l8b_b2_oorr", "copies-wait", false},
      {"l8b_b2_oorr", "round-trip-at-peak", false},
      // Pipelined copies are no round trips, and hold a layer more.
      {"l8b_fl_pho1", "loops-pipelined", true},
      {"l8b_fl_pho1", "round-trip-at-peak", false},
      {"l8b_b2_oorr", "loops-pipelined", false},
      // State in host memory is fetched long before it is needed.
      {"host_a_device", "state-at-peak", false},
      {"host_b_opt", "state-at-peak", true},
      // XLA's rematerialisation on and off.
      {"l405b_qkvoff_xremat", "xla-remat-clones", true},
      {"l405b_qkvoff", "xla-remat-clones", false},
      {"l8b_ga4_allsaved", "xla-remat-clones", false},  // fills made again are no clones
      {"l405b_qkvoff", "largest-still-kept", true},
      {"l8b_b2_oooo", "largest-still-kept", false},
      // What unrolled layers save, a scan would save too.
      {"l8b_unr32_full", "layers-held", false},
      {"l8b4_unr_allsaved", "layers-held", false},
      {"l405b_qkvoff", "host-pool", true},
      {"l8b_b2_oorr", "host-pool", false},
      {"l405b_full", "nothing-offloaded", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.program);
    CAPTURE(row.code);
    Result<Program> program = read_program((*corpus / row.program).string());
    REQUIRE(program.ok());
    const testing::Inspected inspected = testing::inspect(std::move(program).value());
    CHECK(testing::find_diagnostic(inspected, row.code).has_value() == row.said);
  }
}

}  // namespace
}  // namespace spillway
