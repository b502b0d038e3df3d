#include "sim/report/merge_shards.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

std::string part(int index, int count, const std::string& cases,
                 const std::string& hardware = "gb200") {
  return "{\"schema\": \"s/1\", \"hardware\": \"" + hardware +
         "\", \"shard\": {\"index\": " + std::to_string(index) +
         ", \"count\": " + std::to_string(count) + "}, \"cases\": [" + cases + "], \"last\": 0.1}";
}

TEST_CASE("cases come back in the order in which they were dealt out") {
  const auto merged =
      merge_shards({{"b", part(2, 3, "1,4")}, {"c", part(3, 3, "2")}, {"a", part(1, 3, "0,3")}});
  REQUIRE(merged.ok());
  CHECK(*merged ==
        "{\n \"schema\": \"s/1\",\n \"hardware\": \"gb200\",\n \"cases\": [\n  0,\n  1,\n  2,\n"
        "  3,\n  4\n ],\n \"last\": 0.1\n}\n");
}

TEST_CASE("what are not the parts of one answer is said") {
  struct Row {
    std::vector<ShardText> shards;
    std::string message;
  };
  const Row rows[] = {
      {{{"a", "[1]"}}, "a: error: is no JSON object"},
      {{{"a", "{\"cases\": []}"}},
       "a: error: is no part of a sharded answer\n  make parts with --shard I/N --json"},
      {{{"a", part(4, 3, "")}},
       "a: error: is no part of a sharded answer\n  make parts with --shard I/N --json"},
      {{{"a", part(1, 2, "0")}, {"b", part(2, 3, "1")}},
       "b: error: is one of 3 parts, and those before are of 2"},
      {{{"a", part(1, 2, "0")}, {"b", part(1, 2, "0")}}, "b: error: is part 1, as 'a' is"},
      {{{"a", part(1, 2, "0")}}, "error: part 2 of 2 is missing\n  name the files of all parts"},
      {{{"a", part(1, 2, "0")}, {"b", part(2, 2, "1", "h100")}},
       "b: error: answers another question than 'a'"},
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
