#include "sim/capacity/answers.h"

#include <doctest/doctest.h>

#include "sim/report/capacity_sentences.h"
#include "tests/support/toy_capacity.h"

namespace spillway {
namespace {

using testing::toy_capacity;
using testing::toy_cell;

TEST_CASE("the fewest devices, the most, and the nearest where nothing fits") {
  const CapacityReport report = toy_capacity();
  const std::vector<CapacityNeed> needs = find_needs(report);
  REQUIRE(needs.size() == 2);
  // Of batches 1 and 2 on 4 devices both fit, and the second is faster.
  CHECK(report.cells[needs[0].any].key.machine == "big");
  REQUIRE(needs[0].fewest);
  CHECK(report.cells[*needs[0].fewest].key == CapacityKey{"m", "big", 4, 2, 100});
  REQUIRE(needs[0].most);
  CHECK(report.cells[*needs[0].most].key == CapacityKey{"m", "big", 8, 4, 100});
  CHECK_FALSE(needs[0].nearest);
  CHECK(report.cells[*needs[1].fewest].key == CapacityKey{"m", "small", 8, 1, 100});
  CHECK(needs[1].most == needs[1].fewest);

  CapacityReport none;
  none.cells = {toy_cell("big", 4, 1, 0, -50), toy_cell("big", 8, 1, 0, -20),
                toy_cell("big", 16, 1, 0, -30)};
  none.cells[2].impossible = "no";
  const std::vector<CapacityNeed> unmet = find_needs(none);
  REQUIRE(unmet.size() == 1);
  CHECK_FALSE(unmet[0].fewest);
  CHECK(unmet[0].nearest == 1);
}

TEST_CASE("what a batch brings, up to the one that is too large") {
  const CapacityReport report = toy_capacity();
  const std::vector<BatchGain> gains = find_batch_gains(report);
  REQUIRE(gains.size() == 3);  // nothing fits 4 devices of the small machine
  CHECK(report.cells[gains[0].smallest].key == CapacityKey{"m", "big", 4, 1, 100});
  CHECK(report.cells[gains[0].best].key == CapacityKey{"m", "big", 4, 2, 100});
  REQUIRE(gains[0].too_large);
  CHECK(report.cells[*gains[0].too_large].key == CapacityKey{"m", "big", 4, 4, 100});
  CHECK(report.cells[gains[1].best].key == CapacityKey{"m", "big", 8, 4, 100});
  CHECK_FALSE(gains[1].too_large);
  CHECK(gains[2].best == gains[2].smallest);
}

TEST_CASE("a machine against the first") {
  const CapacityReport report = toy_capacity();
  const std::vector<MachineComparison> comparisons = compare_machines(report);
  REQUIRE(comparisons.size() == 1);
  const MachineComparison& c = comparisons[0];
  CHECK(report.cells[c.cell].key.machine == "small");
  CHECK(report.cells[c.first].key.machine == "big");
  CHECK(c.cells == 6);
  CHECK(c.fit == 1);
  CHECK(c.fit_on_first == 5);
  CHECK(c.both_fit == 1);
  CHECK(c.median == 0.5);
  CHECK(c.least == 0.5);
  CHECK(c.most == 0.5);
  CHECK(c.on_host == 1);
  CHECK(c.on_host_on_first == 0);
}

TEST_CASE("the answers as sentences") {
  const std::vector<CapacityAnswer> answers = answer_questions(toy_capacity());
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].question == "How many GPUs are needed?");
  CHECK(answers[0].sentences ==
        std::vector<std::string>{
            "m on big, 100 tokens: 4 devices, with batch 2 and full: 1,200 tokens/s, 300 a device; "
            "a million million tokens take 9,645 days; 8 devices make it 4,000 tokens/s, 500 a "
            "device (+67 %), and 2,894 days",
            "m on small, 100 tokens: 8 devices, with batch 1 and minimal_offloaded: 800 tokens/s, "
            "100 a device; a million million tokens take 14,468 days"});
  CHECK(answers[1].question == "What does a bigger batch bring?");
  CHECK(answers[1].sentences ==
        std::vector<std::string>{
            "m on big, 100 tokens, 4 devices: batch 2 instead of 1 brings +50 % tokens/s (300 a "
            "device) for +20 B of HBM; with 4 HBM is short by 10 B",
            "m on big, 100 tokens, 8 devices: batch 4 instead of 1 brings +150 % tokens/s (500 a "
            "device) for +40 B of HBM",
            "m on small, 100 tokens, 8 devices: no batch above 1 that fits brings more tokens/s; "
            "with 2 HBM is short by 40 B"});
  CHECK(answers[2].question == "What would another machine change?");
  CHECK(answers[2].sentences ==
        std::vector<std::string>{
            "m: small (pcie, 50 GB/s) does 0.50 times the tokens/s of big (nvlink-c2c, 200 GB/s) "
            "in the one size that fits both; 1 of 6 sizes fit small, 5 fit big; "
            "the best policy uses host memory in 1 of those, and in 0"});
}

}  // namespace
}  // namespace spillway
