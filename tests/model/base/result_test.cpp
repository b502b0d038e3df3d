#include "model/base/result.h"

#include <doctest/doctest.h>

#include <string>

namespace spillway {
namespace {

TEST_CASE("an error in a text knows its line and column") {
  struct Row {
    std::string name;
    std::string content;
    std::size_t offset;
    std::string expected;
  };
  const Row rows[] = {
      {"the first line", "abc\ndef\n", 1,
       "x:1:2: error: wrong\n"
       "   1 | abc\n"
       "     |  ^ so"},
      {"a later line", "abc\ndef\n", 4,
       "x:2:1: error: wrong\n"
       "   2 | def\n"
       "     | ^ so"},
      {"Windows line ends", "abc\r\ndef\r\nghi", 7,
       "x:2:3: error: wrong\n"
       "   2 | def\n"
       "     |   ^ so"},
      {"line ends of old Macs", "abc\rdef\rghi", 8,
       "x:3:1: error: wrong\n"
       "   3 | ghi\n"
       "     | ^ so"},
      {"the end of a line", "abc\ndef\n", 3,
       "x:1:4: error: wrong\n"
       "   1 | abc\n"
       "     |    ^ so"},
      {"behind the last line there is nothing to show", "abc\n", 4,
       "x:2:1: error: wrong\n"
       "  so"},
      {"an offset behind the end is the end", "abc", 99,
       "x:1:4: error: wrong\n"
       "   1 | abc\n"
       "     |    ^ so"},
      {"a tab is one column", "\tab", 2,
       "x:1:3: error: wrong\n"
       "   1 |  ab\n"
       "     |   ^ so"},
      {"columns count bytes, the caret counts characters", "äöü x", 7,
       "x:1:8: error: wrong\n"
       "   1 | äöü x\n"
       "     |     ^ so"},
      {"what would change the terminal is not printed", "a\x1b[31mb\x07\x7f\xc2\x9bz", 7,
       "x:1:8: error: wrong\n"
       "   1 | a?[31mb?"
       "?"
       "?z\n"
       "     |        ^ so"},
      {"bytes that are no UTF-8", "a\xff\xc3(\xe2\x82", 4,
       "x:1:5: error: wrong\n"
       "   1 | a?"
       "?("
       "?"
       "?\n"
       "     |     ^ so"},
      {"text that would turn its direction", "a\xe2\x80\xae x", 5,
       "x:1:6: error: wrong\n"
       "   1 | a? x\n"
       "     |    ^ so"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(to_text(error_in_text("x", row.content, row.offset, "wrong", "so")) == row.expected);
  }
}

std::string ruler(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('0' + i % 10);
  return text;
}

TEST_CASE("of a long line only what stands around the column is shown") {
  const std::string line = ruler(1000);
  CHECK(to_text(error_in_text("x", line, 500, "wrong")) ==
        "x:1:501: error: wrong\n"
        "   1 | …" +
            line.substr(452, 96) + "…\n" + "     |  " + std::string(48, ' ') + "^");
  CHECK(to_text(error_in_text("x", line, 0, "wrong")) ==
        "x:1:1: error: wrong\n"
        "   1 | " +
            line.substr(0, 96) + "…\n" + "     | ^");
  CHECK(to_text(error_in_text("x", line, 1000, "wrong")) ==
        "x:1:1001: error: wrong\n"
        "   1 | …" +
            line.substr(904) + "\n" + "     |  " + std::string(96, ' ') + "^");
  const std::string just_fits = ruler(160);
  CHECK(to_text(error_in_text("x", just_fits, 159, "wrong")) ==
        "x:1:160: error: wrong\n"
        "   1 | " +
            just_fits + "\n" + "     | " + std::string(159, ' ') + "^");
}

TEST_CASE("an error keeps little of a very long line") {
  const std::string line(std::size_t{16} << 20, 'x');
  CHECK(error_in_text("x", line, 10, "wrong").excerpt.size() == 10 + 256);
  CHECK(error_in_text("x", line, line.size() - 1, "wrong").excerpt.empty());
  CHECK(to_text(error_in_text("x", line, line.size() - 1, "wrong")) ==
        "x:1:16777216: error: wrong");
}

TEST_CASE("names from the input are quoted, and no longer than a line") {
  CHECK(quoted("fusion.12") == "'fusion.12'");
  CHECK(quoted(ruler(81)) == "'" + ruler(80) + "…'");
}

TEST_CASE("what stands in the message cannot disturb the terminal either") {
  const Error error{
      .text = "unknown \x1b[2J", .where = {"a\nb", {}, {}}, .excerpt = "", .advice = "\b"};
  CHECK(to_text(error) == "a?b: error: unknown ?[2J\n  ?");
}

}  // namespace
}  // namespace spillway
