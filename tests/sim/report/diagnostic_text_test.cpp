#include "sim/report/diagnostic_text.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

TEST_CASE("text is broken at blanks, each line behind the indent") {
  CHECK(wrapped("one two three", "  ", 9) == "  one two\n  three\n");
  CHECK(wrapped("one two three", "  ", 8) == "  one\n  two\n  three\n");
  CHECK(wrapped("unbreakable", "", 4) == "unbreakable\n");
  CHECK(wrapped("a unbreakable b", "", 4) == "a\nunbreakable\nb\n");
  CHECK(wrapped("", "  ", 9) == "\n");
  // An arrow is one letter of three bytes.
  CHECK(wrapped("→ ab cd", "", 7) == "→ ab cd\n");
}

TEST_CASE("a diagnostic is what, why and what to do") {
  CHECK(to_text(Diagnostic{"host-pool", Severity::kWarning, "Too much.", "One pool.", "Set it."}) ==
        "  warning  host-pool\n           Too much.\n           One pool.\n           → Set it.\n");
  CHECK(to_text(Diagnostic{"x", Severity::kInfo, "Known.", "", ""}) ==
        "  info     x\n           Known.\n");
  CHECK(Diagnostic{"x", Severity::kInfo, "a.", "", "c."}.message() == "a. c.");
}

}  // namespace
}  // namespace spillway
