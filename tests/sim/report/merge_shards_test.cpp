#include "sim/report/merge_shards.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace spillway {
namespace {

/// Objects with a figure each; "as_compiled" has one, too.
std::string cases_of(std::initializer_list<int> figures) {
  std::string text;
  for (const int figure : figures)
    text += (text.empty() ? "" : ",") + ("{\"s\":" + std::to_string(figure) + "}");
  return text;
}

std::string part(std::int64_t index, std::int64_t count, int cases, const std::string& items,
                 const std::string& question = "abc") {
  return "{\"schema\": \"s/1\", \"shard\": {\"index\": " + std::to_string(index) +
         ", \"count\": " + std::to_string(count) + ", \"cases\": " + std::to_string(cases) +
         ", \"question\": \"" + question + "\"}, \"as_compiled\": {\"s\": 7}, \"cases\": [" +
         items + "], \"last\": 0.1}";
}

TEST_CASE("cases come back in the order in which they were dealt out") {
  const auto merged = merge_shards({{"b", part(2, 3, 5, cases_of({1, 4}))},
                                    {"c", part(3, 3, 5, cases_of({2}))},
                                    {"a", part(1, 3, 5, cases_of({0, 3}))}});
  REQUIRE(merged.ok());
  const auto json = nlohmann::json::parse(*merged);
  CHECK(json["cases"].dump() == "[" + cases_of({0, 1, 2, 3, 4}) + "]");
  CHECK(json["schema"] == "s/1");
  CHECK(json["last"] == 0.1);
  CHECK_FALSE(json.contains("shard"));
}

TEST_CASE("parts may be more than there are cases") {
  const auto merged = merge_shards(
      {{"a", part(1, 3, 1, cases_of({0}))}, {"b", part(2, 3, 1, "")}, {"c", part(3, 3, 1, "")}});
  REQUIRE(merged.ok());
  CHECK(nlohmann::json::parse(*merged)["cases"].size() == 1);
}

TEST_CASE("what are not the parts of one answer is said") {
  struct Row {
    std::vector<ShardText> shards;
    std::string message;
  };
  const std::string no_part =
      "error: is no part of a sharded answer\n  make parts with --shard "
      "I/N --json";
  const std::string other =
      "error: answers another question than 'a'\n  all parts need the same "
      "files and options, in the same order";
  const std::string again = "\n  make the part again";
  const std::string of_a = part(1, 2, 2, cases_of({0}));
  const std::string unlabelled = "{\"shard\": {\"index\": 1, \"count\": 1}, \"cases\": []}";
  const Row rows[] = {
      {{{"a", "[1]"}}, "a: error: is no JSON object"},
      {{{"a", "{\"cases\": []}"}}, "a: " + no_part},
      {{{"a", unlabelled}}, "a: " + no_part},
      {{{"a", part(4, 3, 0, "")}}, "a: " + no_part},
      {{{"a", part(1, 1'000'001, 0, "")}}, "a: " + no_part},
      {{{"a", part(1, 4'000'000'000, 0, "")}}, "a: " + no_part},
      {{{"a", of_a}, {"b", part(2, 3, 2, cases_of({1}))}},
       "b: error: is one of 3 parts, and those before are of 2"},
      {{{"a", of_a}, {"b", of_a}}, "b: error: is part 1, as 'a' is"},
      {{{"a", of_a}}, "error: part 2 of 2 is missing\n  name the files of all parts"},
      {{{"a", of_a}, {"b", part(2, 2, 2, cases_of({1}), "abd")}}, "b: " + other},
      {{{"a", of_a}, {"b", part(2, 2, 3, cases_of({1}))}}, "b: " + other},
      {{{"a", part(1, 2, 4, cases_of({0}))}},
       "a: error: has 1 cases, and part 1 of 2 has 2 of 4" + again},
      {{{"a", part(1, 2, 2, cases_of({0, 1}))}},
       "a: error: has 2 cases, and part 1 of 2 has 1 of 2" + again},
      {{{"a", part(1, 1, 2, "{\"s\":1}, 5")}},
       "a: error: number 2 of its cases is no JSON object" + again},
      {{{"a", part(1, 1, 1, "{\"s\":\"abc\"}")}},
       "a: error: number 1 of its cases has no 's' as others have" + again},
      {{{"a", part(1, 1, 1, "{}")}},
       "a: error: number 1 of its cases has no 's' as others have" + again},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const auto merged = merge_shards(row.shards);
    REQUIRE(!merged.ok());
    CHECK(to_text(merged.error()) == row.message);
  }
}

}  // namespace
}  // namespace spillway
