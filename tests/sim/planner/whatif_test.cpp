// Flags to try: what of a command line is one, and what a step becomes under them.
#include "sim/planner/whatif.h"

#include <doctest/doctest.h>

#include "model/flags/known_flags.h"
#include "tests/sim/planner/example.h"

namespace spillway {
namespace {

using testing::Example;
using testing::read_example;
using testing::value_or_fail;

constexpr const char* kFencing = "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes";

FlagContext context() { return {newest_probed(), GpuModel{"10.0", "NVIDIA GB200"}}; }

TEST_CASE("a flag is a name and values, one a case") {
  struct Row {
    const char* text;
    std::string name;
    std::vector<std::string> values;
  };
  const Row rows[] = {
      {"xla_gpu_memory_limit_slop_factor=90", "xla_gpu_memory_limit_slop_factor", {"90"}},
      {"--xla_gpu_memory_limit_slop_factor=90,70",
       "xla_gpu_memory_limit_slop_factor",
       {"90", "70"}},
      {"xla_gpu_enable_latency_hiding_scheduler=FALSE",
       "xla_gpu_enable_latency_hiding_scheduler",
       {"FALSE"}},
      {"xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=-1,1048576",
       kFencing,
       {"-1", "1048576"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const FlagChoice choice = value_or_fail(parse_flag_choice(row.text, context()));
    CHECK(choice.name == row.name);
    CHECK(choice.values == row.values);
  }
}

TEST_CASE("every combination of values is a case, behind the one without any") {
  const auto cases = value_or_fail(combine({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}}));
  REQUIRE(cases.size() == 7);
  CHECK(cases[0].empty());
  CHECK(cases[1] == FlagSettings{{"a", "1"}, {"b", "x"}});
  CHECK(cases[2] == FlagSettings{{"a", "1"}, {"b", "y"}});
  CHECK(cases[6] == FlagSettings{{"a", "2"}, {"b", "z"}});
}

TEST_CASE("cases have an end") {
  const std::vector<std::string> eight = {"1", "2", "3", "4", "5", "6", "7", "8"};
  CHECK(value_or_fail(combine({{"a", eight}, {"b", eight}})).size() == kMostCases + 1);
  const auto more = combine({{"a", eight}, {"b", eight}, {"c", {"1", "2"}}});
  REQUIRE_FALSE(more.ok());
  CHECK(to_text(more.error()) == "error: these are more than 64 cases\n  give fewer values");
}

}  // namespace
}  // namespace spillway
