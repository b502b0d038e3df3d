#include "model/hlo/cursor.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace spillway::hlo {
namespace {

TEST_CASE("blanks and comments stand before everything") {
  const std::string text = " /* a */\t// b\r\n\n/*c*//*d*/ x /e";
  Cursor cursor(text, "x");
  CHECK(cursor.peek() == 'x');
  CHECK(cursor.accept('x'));
  CHECK_FALSE(cursor.at_end());
  CHECK(cursor.peek() == '/');  // a slash alone is no comment
  CHECK_FALSE(cursor.failed());
}

TEST_CASE("a comment that is not closed") {
  const std::string text = "a /* b";
  Cursor cursor(text, "x");
  CHECK(cursor.accept('a'));
  CHECK(cursor.at_end());
  REQUIRE(cursor.failed());
  CHECK(to_text(cursor.error()) ==
        "x:1:3: error: a comment is not closed\n"
        "   1 | a /* b\n"
        "     |   ^ the file may be cut");
}

TEST_CASE("names and words") {
  const std::string text = "%a.b-c_1$:d e-f.g ROOT ROOTs";
  Cursor cursor(text, "x");
  CHECK(cursor.name("a name") == "a.b-c_1$:d");
  CHECK(cursor.word() == "e-f");
  CHECK(cursor.word() == "");
  CHECK(cursor.accept('.'));
  CHECK(cursor.accept_word("g"));
  CHECK(cursor.accept_word("ROOT"));
  CHECK_FALSE(cursor.accept_word("ROOT"));
  CHECK(cursor.accept("ROOT"));
  CHECK(cursor.accept('s'));
  CHECK(cursor.name("a name") == "");
  CHECK(cursor.error().text == "expected a name");
}

TEST_CASE("numbers") {
  struct Row {
    std::string text;
    std::optional<std::int64_t> expected;
  };
  const Row rows[] = {
      {"0", 0},
      {"42,", 42},
      {"000000000000000000000000000007", 7},
      {"999999999999999999", 999999999999999999},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775808", std::nullopt},
      {"-1", std::nullopt},
      {"x", std::nullopt},
      {"", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string text = row.text;
    Cursor cursor(text, "x");
    CHECK(cursor.number() == row.expected);
    if (!row.expected) CHECK(cursor.position() == 0);
  }
}

TEST_CASE("the values of attributes") {
  struct Row {
    std::string text;
    std::string expected;
    bool json = false;
  };
  const Row rows[] = {
      {"kLoop, b=c", "kLoop"},
      {"%fused.1\n  %next = f32[]", "%fused.1"},
      {"{0,1}, b=c", "{0,1}"},
      {"{}, b", "{}"},
      {"[2,4]<=[8], b", "[2,4]<=[8]"},
      {"[8,16]<=[16,8]T(1,0), b", "[8,16]<=[16,8]T(1,0)"},
      {"mesh['axis_0'=8] {'axis_0'}, b", "mesh['axis_0'=8] {'axis_0'}"},
      {"{mesh['<axis> def'=4,'z/w'=2], [{'a}b'}, {?}]}, b",
       "{mesh['<axis> def'=4,'z/w'=2], [{'a}b'}, {?}]}"},
      {"\"a, \\\"b\\\" }\", c", "\"a, \\\"b\\\" }\""},
      {"\"a\\\\\", c", "\"a\\\\\""},
      {"{op_name=\"a}b\" x={1}}\n}", "{op_name=\"a}b\" x={1}}"},
      {"{\"a\":\"{\\\"}\",\"b\":[{}]}, c", "{\"a\":\"{\\\"}\",\"b\":[{}]}", true},
      {"{key: it's // so}, c", "{key: it's // so}", true},
      {"{a /* } */ b}, c", "{a /* } */ b}"},
      {"{a // }\n b}, c", "{a // }\n b}"},
      {"s32[2]{0} {1, 2}, c", "s32[2]{0} {1, 2}"},
      {"f32[] 3.5, c", "f32[] 3.5"},
      {"b01f_01io->b01f, c", "b01f_01io->b01f"},
      {"LT ROOT %r = f32[]", "LT"},
      {"1 %r = f32[]", "1"},
      {"LT }", "LT"},
      {"LT // so", "LT"},
      {"LT\r\n}", "LT"},
      {"true}", "true"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string text = row.text;
    Cursor cursor(text, "x");
    CHECK(cursor.attribute_value(row.json) == row.expected);
    CHECK_FALSE(cursor.failed());
  }
}

TEST_CASE("values that do not end") {
  struct Row {
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"{a", "x:1:1: error: a bracket is not closed\n   1 | {a\n     | ^ the file may be cut"},
      {"{()", "x:1:1: error: a bracket is not closed\n   1 | {()\n     | ^ the file may be cut"},
      {"\"a\\\"",
       "x:1:1: error: a string is not closed\n   1 | \"a\\\"\n     | ^ the file may be cut"},
      {"{\"a}",
       "x:1:2: error: a string is not closed\n   1 | {\"a}\n     |  ^ the file may be cut"},
      {"{/* }",
       "x:1:2: error: a comment is not closed\n   1 | {/* }\n     |  ^ the file may be cut"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string text = row.text;
    Cursor cursor(text, "x");
    CHECK(cursor.attribute_value() == "");
    REQUIRE(cursor.failed());
    CHECK(to_text(cursor.error()) == row.expected);
  }
}

TEST_CASE("a zero within the text is not its end") {
  const std::string text("{a\0b} c", 7);
  Cursor cursor(text, "x");
  CHECK(cursor.balanced().size() == 5);
  CHECK(cursor.peek() == 'c');
}

TEST_CASE("brackets may nest as deep as they like") {
  const std::string text = std::string(1000000, '{') + std::string(1000000, '}') + "x";
  Cursor cursor(text, "x");
  CHECK(cursor.balanced().size() == 2000000);
  CHECK(cursor.peek() == 'x');
}

TEST_CASE("the first mistake is kept, and nothing follows it") {
  const std::string text = "abc";
  Cursor cursor(text, "x");
  cursor.fail(1, "first");
  cursor.fail(2, "second");
  CHECK(cursor.error().text == "first");
  CHECK(cursor.at_end());
  CHECK_FALSE(cursor.accept('a'));
  cursor.move_to(0);
  CHECK(cursor.at_end());
}

}  // namespace
}  // namespace spillway::hlo
