#include "sim/report/table.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

TEST_CASE("columns are as wide as their widest cell") {
  TextTable table({"name", ">size", "what"});
  table.add({"a", "1", "short"});
  table.add({"longer", "12345", ""});
  CHECK(table.text() ==
        "  name     size  what\n"
        "  a           1  short\n"
        "  longer  12345\n");
  CHECK(table.text(0) ==
        "name     size  what\n"
        "a           1  short\n"
        "longer  12345\n");
}

TEST_CASE("the same as Markdown") {
  TextTable table({"name", ">size"});
  table.add({"a|b", "1"});
  table.add({"longer", ""});
  CHECK(table.markdown() ==
        "| name | size |\n"
        "| --- | ---: |\n"
        "| a\\|b | 1 |\n"
        "| longer |  |\n");
}

TEST_CASE("odd tables") {
  struct Row {
    const char* name;
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    const char* expected;
  };
  const Row rows[] = {
      {"only a head", {"a", ">b"}, {}, "a  b\n"},
      {"a head without words", {"", ">"}, {{"x", "1"}}, "\nx  1\n"},
      {"a row of blanks", {"a", "b"}, {{"", ""}}, "a  b\n\n"},
      {"a short row", {"a", "b", "c"}, {{"x"}}, "a  b  c\nx\n"},
      {"a cell with blanks behind it", {"a"}, {{"x  "}}, "a\nx\n"},
      {"right at the end", {"a", ">b"}, {{"x", "1"}, {"y", "22"}}, "a   b\nx   1\ny  22\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    TextTable table(row.head);
    for (const auto& cells : row.rows) table.add(cells);
    CHECK(table.text(0) == row.expected);
  }
}

TEST_CASE("a letter of several bytes is as wide as one") {
  TextTable table({"name", ">size"});
  table.add({"Größe", "1"});
  table.add({"…", "22"});
  table.add({"plain", "3"});
  CHECK(table.text(0) ==
        "name   size\n"
        "Größe     1\n"
        "…        22\n"
        "plain     3\n");
}

}  // namespace
}  // namespace spillway
