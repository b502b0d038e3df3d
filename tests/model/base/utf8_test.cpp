#include "model/base/utf8.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

TEST_CASE("what would disturb a terminal is not printed; lines and tabs are") {
  CHECK(printable_lines("a\tb\nc → é\n") == "a\tb\nc → é\n");
  CHECK(printable_lines("\x1b[31mred\x07") == "?[31mred?");
  CHECK(printable_lines("a\xff"
                        "b\xc3(\xe2\x82") == "a?b?(??");
  CHECK(printable_lines("turned\xe2\x80\xae") == "turned?");
  CHECK(printable_lines(std::string_view("\0", 1)) == "?");
  CHECK(printable_lines("").empty());
}

TEST_CASE("what must stay one line is one line") {
  CHECK(printable_line("two\nlines\x1b[2J é") == "two?lines?[2J é");
}

}  // namespace
}  // namespace spillway
