#include "validation/series.h"

#include <doctest/doctest.h>

#include "tests/golden.h"
#include "validation/tables.h"
#include "validation/vtrain_rows.h"

namespace spillway {
namespace {

struct Run {
  double kernels, exposed, bubble;
};

/// Rows of steps whose published time is a x kernels + b x exposed.
struct Steps {
  std::vector<PublishedRow> rows;
  std::vector<GradedRow> graded;
  std::vector<const GradedRow*> all;
};
Steps steps_of(const std::vector<Run>& runs, double a, double b) {
  Steps steps;
  steps.rows.resize(runs.size());
  steps.graded.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& [kernels, exposed, bubble] = runs[i];
    steps.rows[i].measure = "step";
    steps.rows[i].published = std::to_string((a * kernels + b * exposed) * bubble);
    steps.graded[i].row = &steps.rows[i];
    steps.graded[i].measured = {
        {(kernels + exposed) * bubble, kernels, exposed, bubble, false, kernels * 1e12}};
    steps.all.push_back(&steps.graded[i]);
  }
  return steps;
}

TEST_CASE("a series with three rows finds what its machine does to kernels and to waits") {
  const Steps steps = steps_of({{4, 0, 1}, {2, 3, 1}, {4, 4, 1.5}}, 1.5, 2);
  const SeriesFit fit = fit_series(steps.all);
  REQUIRE(fit.parts.has_value());
  CHECK(fit.parts->first == doctest::Approx(1.5).epsilon(1e-4));
  CHECK(fit.parts->second == doctest::Approx(2).epsilon(1e-4));
  CHECK(calibrated_value(fit, {12, 8, 4, 1, false, 0}) == doctest::Approx(20).epsilon(1e-4));
}

TEST_CASE("no part is ever negative") {
  const Steps steps = steps_of({{4, 1, 1}, {4, 4, 1}, {4, 8, 1}}, 2, -0.1);
  const SeriesFit fit = fit_series(steps.all);
  REQUIRE(fit.parts.has_value());
  CHECK(fit.parts->first >= 0);
  CHECK(fit.parts->second >= 0);
}

TEST_CASE("with fewer rows one factor does, between what they say") {
  const Steps steps = steps_of({{4, 0, 1}, {2, 2, 1}}, 2, 2);
  const SeriesFit fit = fit_series(steps.all);
  CHECK_FALSE(fit.parts.has_value());
  CHECK(fit.factor == doctest::Approx(2));
  CHECK(calibrated_value(fit, {3, 0, 0, 1, false, 0}) == doctest::Approx(6));
  CHECK(calibrated_value(fit, {3, 0, 0, 1, true, 0}) == doctest::Approx(1.5));
  CHECK(fit_series({}).factor == 1);
}

TEST_CASE("the tables replace what stands between the markers, and nothing else") {
  const std::string begin(kBeginMarker), end(kEndMarker);
  const auto page =
      replace_between_markers("a\n" + begin + "\nold\n" + end + "\nb\n", "new\n", "p");
  REQUIRE(page.ok());
  CHECK(*page == "a\n" + begin + "\n\nnew\n" + end + "\nb\n");
  CHECK_FALSE(replace_between_markers(end + begin, "new", "p").ok());
  CHECK_FALSE(replace_between_markers("no markers", "new", "p").ok());
}

TEST_CASE("vTrain's file") {
  const auto read = parse_vtrain(
      "titles\n3.6,64,512,8,3072,32,30,2048,1,64,1,3566.5\n18.4,256,1024,2,6144,48,40,2048,8,8,4,"
      "10926.4\n",
      "v.csv");
  REQUIRE(read.ok());
  REQUIRE(read->rows.size() == 2);
  CHECK(read->rows[0].calibrates);
  CHECK(read->rows[0].published == "3.5665");
  const Settings& step = read->rows[1].step;
  CHECK_FALSE(read->rows[1].calibrates);
  CHECK(step.at("gradient_accumulation_steps") == "64");  // 1024 / (2 x 8)
  CHECK(step.at("per_device_batch_size") == "0.0625");    // 2 / (8 x 4)
  CHECK(step.at("devices") == "256");
  CHECK_FALSE(parse_vtrain("titles\n1,2,3\n", "v.csv").ok());
}

TEST_CASE("measures that need no program") {
  Measures measures({{testing::source_path("hw_profiles")}});
  const auto limit = measures.measure(
      "remat_limit_gib", {{"base_gib", "100"}, {"arguments_gib", "20"}, {"slop", "50"}}, {});
  REQUIRE(limit.ok());
  CHECK(limit->value == doctest::Approx(40));
  const Settings pool{{"machine", "gb200"}, {"beside_gib", "0"}, {"fraction", "0.99"}};
  CHECK(measures.measure("fits_beside_pool", pool, {})->value == 0);
  CHECK(measures.measure("fits_beside_pool", merged(pool, {{"fraction", "0.5"}}), {})->value == 1);
  CHECK_FALSE(measures.measure("speed", {}, {}).ok());
  CHECK_FALSE(measures.measure("gain", {}, {}).ok());
  CHECK_FALSE(measures.measure("step", {{"machine", "no such"}}, {}).ok());
}

}  // namespace
}  // namespace spillway
