#include "sim/report/capacity_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "model/run/sqlite_file.h"
#include "sim/report/merge_shards.h"
#include "sim/report/sqlite_writer.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/toy_capacity.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::toy_capacity;
using testing::toy_cell;

/// With a cell that cannot be, whose reason has every letter that some form has to escape.
CapacityReport odd_capacity() {
  CapacityReport report = toy_capacity();
  report.cells[2].impossible = "no, \"none\" <of> it | at & all";
  return report;
}

TEST_CASE("every form of a report, to the byte") {
  const CapacityReport report = odd_capacity();
  check_golden("capacity/toy.txt", render_text(report));
  check_golden("capacity/toy.md", render_markdown(report));
  check_golden("capacity/toy.html", render_html(report));
  check_golden("capacity/toy.csv", render_csv(report));
  check_golden("capacity/toy.json", render_json(report));
}

TEST_CASE("JSON that is read and written again is the same") {
  CapacityReport report = odd_capacity();
  // Numbers that no short decimal is.
  report.cells[0].step.step = Seconds(1.0 / 3);
  report.cells[0].tokens_per_second = 2e22 / 7;
  report.cells[1].step.device = Bytes((std::int64_t{1} << 53) + 1);
  const std::string json = render_json(report);
  CHECK(is_capacity_json(json));
  const auto read = read_capacity_json(json, "a.json");
  REQUIRE(read.ok());
  CHECK(render_json(*read) == json);
  CHECK(render_html(*read) == render_html(report));
  CHECK(render_csv(*read) == render_csv(report));
  CHECK(render_sqlite(*read) == render_sqlite(report));

  for (const std::string& text :
       {std::string("[]"), std::string("{}"), std::string("{\"schema\": 1}"), std::string("{"),
        json.substr(0, json.size() - 5),
        std::string("{\"schema\": \"spillway.capacity/1\", \"cells\": [1]}")}) {
    CAPTURE(text);
    const auto wrong = read_capacity_json(text, "a.json");
    REQUIRE_FALSE(wrong.ok());
    CHECK(to_text(wrong.error()) ==
          "a.json: error: is no answer of capacity\n  make it with capacity --json");
  }
  auto broken = nlohmann::ordered_json::parse(json);
  broken["cells"][0]["step_seconds"] = "1 s";
  CHECK_FALSE(read_capacity_json(broken.dump(), "a.json").ok());
  broken["cells"][0].erase("step_seconds");
  CHECK_FALSE(read_capacity_json(broken.dump(), "a.json").ok());
}

TEST_CASE("parts put together are read as the whole") {
  const CapacityReport report = odd_capacity();
  std::vector<ShardText> parts;
  for (std::size_t part = 1; part <= 5; ++part) {
    CapacityReport shard = report;
    shard.cells.clear();
    for (std::size_t c = part - 1; c < report.cells.size(); c += 5)
      shard.cells.push_back(report.cells[c]);
    shard.shard = ShardLabel{{part, 5}, report.cells.size(), "q"};
    parts.push_back({"part", render_json(shard)});
  }
  const auto merged = merge_shards(parts);
  REQUIRE(merged.ok());
  const auto read = read_capacity_json(*merged, "whole");
  REQUIRE(read.ok());
  CHECK(render_json(*read) == render_json(report));
}

TEST_CASE("the database has every cell") {
  const testing::TemporaryFolder folder;
  const CapacityReport report = odd_capacity();
  const auto file = SqliteFile::open(folder.write("a.sqlite", render_sqlite(report)));
  REQUIRE(file.ok());
  CHECK(std::set(file->tables().begin(), file->tables().end()) ==
        std::set<std::string>{"answers", "assumptions", "cells", "machines"});
  const auto number = [&](const std::string& query) {
    std::optional<std::int64_t> value;
    CHECK_FALSE(file->each(query, [&](const SqliteRow& row) { value = row.integer(0); }));
    return value;
  };
  CHECK(number("SELECT count(*) FROM cells") == 12);
  CHECK(number("SELECT sum(fits) FROM cells") == 6);
  CHECK(number("SELECT count(*) FROM cells WHERE impossible IS NOT NULL AND hbm_bytes IS NULL") ==
        1);
  CHECK(number("SELECT hbm_headroom_bytes FROM cells WHERE machine = 'big' AND devices = 8 AND "
               "batch_sequences_per_device = 4") == 30);
  CHECK(number("SELECT count(*) FROM answers") == 6);
  CHECK(number("SELECT domain_gpus FROM machines WHERE id = 'small'") == 8);
}

TEST_CASE("a page stands alone, and its tags are closed") {
  const std::string html = render_html(odd_capacity());
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"}) {
    CAPTURE(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
  const auto count = [&](const std::string& what) {
    std::size_t times = 0;
    for (std::size_t at = html.find(what); at != std::string::npos; at = html.find(what, at + 1))
      ++times;
    return times;
  };
  for (const std::string tag : {"table", "tr", "td", "th", "div", "ul", "li", "h2", "h3", "p", "b",
                                "i", "span", "style", "body", "html"}) {
    CAPTURE(tag);
    CHECK(count("<" + tag + ">") + count("<" + tag + " ") == count("</" + tag + ">"));
  }
  // What does not fit can be told without colours.
  CHECK(count("✕ too large") == 5);
  CHECK(html.find("<of>") == std::string::npos);
}

TEST_CASE("a large grid shows the best batch of each row, and says so") {
  CapacityReport report;
  for (int devices = 1; devices <= 100; ++devices)
    for (const double batch : {1, 2, 3})
      report.cells.push_back(
          toy_cell("big", devices, batch, 10 * batch * devices, 30 - 12 * static_cast<int>(batch)));
  const std::string text = render_text(report);
  CHECK(text.find("Of 300 cells the best batch of each model, machine, number of devices and "
                  "sequence is shown; --csv and --sqlite have all.") != std::string::npos);
  // Batch 3 would be faster, and does not fit.
  CHECK(text.find("      50      2     100  yes ") != std::string::npos);
  CHECK(text.find("      50      1     100") == std::string::npos);
  for (int devices = 101; devices <= 200; ++devices)
    report.cells.push_back(toy_cell("big", devices, 1, 10, 10));
  CHECK(render_text(report).find("is shown, and of those 80 more are left out; --csv") !=
        std::string::npos);
  const std::string csv = render_csv(report);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 401);
}

TEST_CASE("nothing fits") {
  CapacityReport report = toy_capacity();
  CHECK(fits_anywhere(report));
  std::erase_if(report.cells, &CapacityCell::fits);
  CHECK_FALSE(fits_anywhere(report));
  CHECK(render_text(report).find("\nNothing fits.\n") != std::string::npos);
  CHECK(render_markdown(report).find("\nNothing fits.\n") != std::string::npos);
}

TEST_CASE("a database of our own making") {
  SqliteWriter writer;
  writer.add_table("a \"b\"", {"x", "y z"}, {{std::int64_t{1}, std::string("o'hara")}, {2.5, {}}});
  writer.add_table("empty", {"x"}, {});
  const testing::TemporaryFolder folder;
  const auto file = SqliteFile::open(folder.write("a.sqlite", writer.bytes()));
  REQUIRE(file.ok());
  std::vector<std::string> found;
  CHECK_FALSE(file->each("SELECT x, \"y z\" FROM \"a \"\"b\"\"\"", [&](const SqliteRow& row) {
    found.push_back(std::string(row.text(0)) + "/" + std::string(row.text(1)));
  }));
  CHECK(found == std::vector<std::string>{"1/o'hara", "2.5/"});
  CHECK(file->columns("empty") == std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace spillway
