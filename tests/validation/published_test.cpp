#include "validation/published.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/golden.h"
#include "validation/measures.h"

namespace spillway {
namespace {

const std::string kHead = "schema: spillway.published/1\nrows:\n";
const std::string kRow =
    "  - id: X1\n    source: a paper\n    claim: a step\n    measure: step\n    tier: absolute\n"
    "    step: {machine: h100, mlp_activations: [silu, linear]}\n";

std::string problem_of(const std::string& text) {
  const auto read = parse_published(text, "rows.yaml");
  return read.ok() ? "" : to_text(read.error());
}

TEST_CASE("a row") {
  const auto read = parse_published(
      kHead + kRow +
          "    against: {remat_policy: full}\n"
          "    open: [{what: batch, values: [{b: 1}, {b: 2}]}, {what: type, values: [{t: 3}]}]\n"
          "    published: 15.5\n    unit: s\n    tolerance: 15 %\n    series: H100\n"
          "    calibrates: true\nexcluded: [{rows: X2, why: not stated}]\n",
      "rows.yaml");
  REQUIRE_MESSAGE(read.ok(), problem_of(kHead + kRow));
  REQUIRE(read->rows.size() == 1);
  const PublishedRow& row = read->rows.front();
  CHECK(row.tier == Tier::kAbsolute);
  CHECK(row.step.at("mlp_activations") == "[silu, linear]");
  CHECK(row.against->at("remat_policy") == "full");
  CHECK(row.tolerance.value == doctest::Approx(0.15));
  CHECK(row.tolerance.is_relative);
  CHECK(row.calibrates);
  CHECK(combinations(row.open) ==
        std::vector<Settings>{{{"b", "1"}, {"t", "3"}}, {{"b", "2"}, {"t", "3"}}});
  CHECK(read->excluded.front().why == "not stated");
}

TEST_CASE("what is no row is named with its place") {
  struct Row {
    const char* name;
    std::string text;
    const char* expected;
  };
  const Row rows[] = {
      {"a number is wanted", kHead + kRow + "    published: gains\n",
       "rows.yaml:9:16: error: 'gains' is no number"},
      {"an unknown key", kHead + kRow + "    published: 1\n    publisher: 1\n",
       "rows.yaml:10:5: error: 'publisher' of 'rows' is not a known key"},
      {"a tolerance", kHead + kRow + "    published: 1\n    tolerance: some\n",
       "rows.yaml:10:16: error: 'some' is no tolerance"},
      {"no value", kHead + kRow, "error: 'published' of 'rows' is missing"},
      {"twice", kHead + kRow + "    published: 1\n" + kRow + "    published: 1\n",
       "the row 'X1' is there twice"},
      {"a schema", "schema: other\nrows: []\n", "the schema 'other' is not known"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string problem = problem_of(row.text);
    CAPTURE(problem);
    CHECK(problem.find(row.expected) != std::string::npos);
  }
}

TEST_CASE("tolerances") {
  CHECK(parse_tolerance("0.05 %")->value == doctest::Approx(0.0005));
  CHECK_FALSE(parse_tolerance("1.5")->is_relative);
  CHECK_FALSE(parse_tolerance("-1").has_value());
  CHECK_FALSE(parse_tolerance("%").has_value());
}

TEST_CASE("the project's own rows: each asks for a measure that there is") {
  const auto read = read_published(testing::source_path("validation/published.yaml"));
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
  const auto names = measure_names();
  for (const PublishedRow& row : read->rows) {
    CAPTURE(row.id);
    CHECK(std::ranges::count(names, row.measure) == 1);
    CHECK_FALSE(row.source.empty());
  }
}

}  // namespace
}  // namespace spillway
