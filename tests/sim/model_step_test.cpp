// Steps made from configurations alone, against the programs that XLA made of them.
#include "sim/model_step.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "model/hardware/read_profile.h"
#include "model/plan/compiler_limit.h"
#include "model/spec/memory_estimate.h"
#include "model/spec/read_maxtext.h"
#include "sim/planner/evaluate.h"
#include "tests/golden.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::CsvRow;

/// What score.py gives as well: the settings of a program of the corpus in MaxText's keys.
std::string settings_of(const CsvRow& row) {
  std::string text = "model_name: " + row.at("model") + "\nattention: " + row.at("attention") +
                     "\nuse_iota_embed: true\n";
  std::istringstream notes(row.at("notes"));
  for (std::string word; notes >> word;)
    if (const std::size_t equal = word.find('='); equal != std::string::npos)
      text += word.substr(0, equal) + ": " + word.substr(equal + 1) + "\n";
  return text;
}

bool can_be_described(const CsvRow& row) {
  return row.at("status") == "ok" && row.at("xla_flags").empty() &&
         row.at("scan_layers") == "True" && row.at("generator").starts_with("maxtext") &&
         !row.at("id").ends_with("_xremat");
}

std::int64_t number(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST_CASE("a configuration gives what XLA compiles, without compiling") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::map<std::string, HardwareProfile> profiles;
  for (const char* id : {"gb200", "h100"})
    profiles[id] =
        read_profile(testing::source_path("hw_profiles/" + std::string(id) + ".yaml")).value();
  std::map<std::string, std::vector<double>> by_family, estimated;
  for (const CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    if (!can_be_described(row)) continue;
    CAPTURE(row.at("id"));
    const auto document = parse_yaml(settings_of(row), row.at("id"));
    REQUIRE(document.ok());
    const auto spec = read_maxtext(*document, number(row.at("n_devices")));
    REQUIRE_MESSAGE(spec.ok(), (spec.ok() ? "" : to_text(spec.error())));
    const HardwareProfile& profile = profiles.at(row.at("target"));
    const Topology topology = make_topology(number(row.at("n_devices")), profile);
    const auto step = build_step_program(*spec, step_text_options(profile));
    REQUIRE_MESSAGE(step.ok(), (step.ok() ? "" : to_text(step.error())));
    Budget budget;
    budget.pool = ahead_of_time_base(profile.device.hbm_capacity.value);
    const Evaluator evaluator(step->program, text_schedule(step->program).value(), profile,
                              topology, step->names, budget);
    const auto result = evaluator.evaluate(configured_policy(*spec, evaluator.handles()),
                                           evaluator.default_order());
    REQUIRE(result.ok());
    const double peak = static_cast<double>(number(row.at("ba_total_bytes")));
    const double error = std::abs(static_cast<double>(result->peak_device.value()) / peak - 1);
    const std::string family = row.at("id").substr(0, row.at("id").find('_'));
    by_family[family].push_back(error);
    CHECK(error < 0.07);
    CHECK(result->host.value() == number(row.at("host_temp_bytes")));
    CHECK(sum_totals(evaluator.memory()).argument.value() == number(row.at("arg_bytes")));
    CHECK(result->dot_flops ==
          doctest::Approx(static_cast<double>(number(row.at("dot_flops_per_step")))).epsilon(1e-5));

    const auto closed = estimate_memory(*spec, step_text_options(profile));
    REQUIRE(closed.ok());
    CHECK(closed->host.value() == number(row.at("host_temp_bytes")));
    estimated[family].push_back(
        std::abs(static_cast<double>(closed->device_peak.value()) / peak - 1));
    CHECK(closed->products.value() == doctest::Approx(result->dot_flops).epsilon(0.001));
  }
  for (const auto& [family, errors] : by_family) {
    MESSAGE(fmt::format(
        "{}: {} programs, median {:.3f} %, worst {:.3f} %; estimate {:.1f} %, {:.1f} %", family,
        errors.size(), 100 * median(errors), 100 * *std::ranges::max_element(errors),
        100 * median(estimated[family]), 100 * *std::ranges::max_element(estimated[family])));
    CHECK(median(errors) < 0.05);
  }
}

TEST_CASE("state that a configuration keeps on the host is moved there") {
  const auto document = parse_yaml(
      "{model_name: llama3.1-8b, per_device_batch_size: 1, max_target_length: 2048, "
      "optimizer_memory_host_offload: true}",
      "run.yml");
  const auto spec = read_maxtext(*document, 8);
  REQUIRE(spec.ok());
  const HardwareProfile profile =
      read_profile(testing::source_path("hw_profiles/gb200.yaml")).value();
  const auto step = build_step_program(*spec);
  REQUIRE(step.ok());
  Budget budget;
  budget.pool = ahead_of_time_base(profile.device.hbm_capacity.value);
  const Evaluator evaluator(step->program, text_schedule(step->program).value(), profile,
                            make_topology(8, profile), step->names, budget);
  const Policy policy = configured_policy(*spec, evaluator.handles());
  for (std::size_t k = 0; k < policy.size(); ++k)
    if (evaluator.handles()[k].name == "optimizer") CHECK(policy[k] == Choice::kOffload);
}

}  // namespace
}  // namespace spillway
