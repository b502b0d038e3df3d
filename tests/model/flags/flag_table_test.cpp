// The tables of flags agree with each other.
#include "model/flags/flag_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "model/flags/check_values.h"
#include "model/flags/known_flags.h"

namespace spillway {
namespace {

JaxlibVersion version(const char* text) { return parse_jaxlib_version(text).value(); }

TEST_CASE("names stand there once, in order, and live somewhere") {
  const auto flags = known_flags();
  const std::size_t versions = probed_versions().size();
  CHECK(flags.size() > 400);
  CHECK(std::ranges::is_sorted(probed_versions()));
  for (std::size_t k = 0; k < flags.size(); ++k) {
    CAPTURE(flags[k].name);
    CHECK(flags[k].name.starts_with("xla_"));
    if (k > 0) CHECK(flags[k - 1].name < flags[k].name);
    CHECK(flags[k].until <= versions);
    CHECK((flags[k].since < flags[k].until || flags[k].since == versions));
  }
}

TEST_CASE("every flag of the table is one that the newest version knows, with a default it takes") {
  std::set<std::string_view> names;
  for (const FlagInfo& info : flag_table()) {
    CAPTURE(info.name);
    CHECK(names.insert(info.name).second);
    const KnownFlag* const flag = find_known_flag(info.name);
    REQUIRE(flag != nullptr);
    CHECK(knows(*flag, newest_probed()) == Knows::kYes);
    CHECK(info.meaning != "");
    CHECK(info.cost != "");
    for (const FlagDefault& from : info.defaults) {
      if (from.value == nullptr) continue;
      const bool is_value = flag->type != FlagType::kPairs && flag->type != FlagType::kEnumList;
      if (is_value)
        CHECK_FALSE(find_value_fault(*flag, {std::string(info.name), std::string(from.value), ""}));
    }
  }
  for (const EnvironmentInfo& variable : environment_table()) CHECK(variable.meaning != "");
}

TEST_CASE("when a version knows a flag, and when that cannot be said") {
  struct Row {
    const char* flag;
    const char* jaxlib;
    Knows known;
  };
  const Row rows[] = {
      {"xla_gpu_enable_pipelined_host_offloading", "0.8.0", Knows::kNo},
      {"xla_gpu_enable_pipelined_host_offloading", "0.8.1", Knows::kUnsure},
      {"xla_gpu_enable_pipelined_host_offloading", "0.8.3", Knows::kYes},
      {"xla_gpu_experimental_parallel_async_compute_limit", "0.9.2", Knows::kNo},
      {"xla_gpu_experimental_parallel_async_compute_limit", "0.10.0", Knows::kYes},
      {"xla_gpu_experimental_parallel_async_compute_limit", "0.10.1", Knows::kYes},
      {"xla_gpu_enable_triton_softmax_fusion", "0.5.0", Knows::kYes},
      {"xla_gpu_enable_triton_softmax_fusion", "0.5.1", Knows::kUnsure},
      {"xla_gpu_enable_triton_softmax_fusion", "0.5.3", Knows::kNo},
      {"xla_gpu_simplify_all_fp_conversions", "0.4.31", Knows::kNo},
      {"xla_dump_to", "0.12.0.1", Knows::kYes},
  };
  for (const Row& row : rows) {
    CAPTURE(row.flag);
    CAPTURE(row.jaxlib);
    REQUIRE(find_known_flag(row.flag) != nullptr);
    CHECK(knows(*find_known_flag(row.flag), version(row.jaxlib)) == row.known);
  }
  CHECK(find_known_flag("xla_nope") == nullptr);
  CHECK(life_of(*find_known_flag("xla_dump_to")) == "always");
  CHECK(life_of(*find_known_flag("xla_gpu_enable_pipelined_host_offloading")) == "since 0.8.3");
  CHECK(life_of(*find_known_flag("xla_gpu_enable_triton_softmax_fusion")) == "up to 0.5.0");
  CHECK(life_of(*find_known_flag("xla_gpu_simplify_all_fp_conversions")) == "before 0.4.31");
}

TEST_CASE("defaults by version") {
  const FlagInfo& estimator = *find_flag("xla_gpu_enable_analytical_sol_latency_estimator");
  CHECK(default_of(estimator, version("0.7.0")) == "false");
  CHECK(default_of(estimator, version("0.7.2")) == "true");
  CHECK(find_flag("xla_gpu_nope") == nullptr);
}

}  // namespace
}  // namespace spillway
