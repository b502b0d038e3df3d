#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"

namespace spillway {
namespace {

using testing::inspect;
using testing::what_of;

/// Two arguments, one with a result of its shape.
const std::string kStep =
    "ENTRY %main {\n  %state = f32[1048576]{0} parameter(0)\n  %batch = s32[16]{0} parameter(1)\n  "
    "%new = f32[1048576]{0} negate(%state)\n  %loss = f32[] constant(1)\n  ROOT %r = "
    "(f32[1048576]{0}, "
    "f32[]) tuple(%new, %loss)\n}\n";
const std::string kAlias = ", input_output_alias={ {0}: (0, {}, may-alias) }";

TEST_CASE("a donation is permission; only the alias table saves") {
  struct Row {
    std::string name;
    std::string header;
    std::string unused;
    std::string twice;
  };
  const char* kTwice =
      "1 result has the shape of arguments that are not donated (4.00 MiB): both are held.";
  const Row rows[] = {
      {"nothing donated", "", "", kTwice},
      {"donated and taken", kAlias, "", ""},
      {"both listed", kAlias + ", buffer_donor={ (0, {}) }", "", ""},
      {"given away for nothing", ", buffer_donor={ (1, {}) }",
       "1 donated argument (64 B) may be overwritten, and no result takes the place of it; the "
       "largest is s32[16].",
       kTwice},
      {"two given away, one taken", kAlias + ", buffer_donor={ (0, {}), (1, {}) }",
       "1 donated argument (64 B) may be overwritten, and no result takes the place of it; the "
       "largest is s32[16].",
       ""},
      {"two for nothing", ", buffer_donor={ (0, {}), (1, {}) }",
       "2 donated arguments (4.00 MiB) may be overwritten, and no result takes the place of them; "
       "the largest is f32[1048576].",
       ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto inspected = inspect(kStep, row.header);
    CHECK(what_of(inspected, "donation-unused") == row.unused);
    CHECK(what_of(inspected, "state-held-twice") == row.twice);
  }
}

TEST_CASE("a donation that finds no result saves not a byte") {
  const auto total = [](const std::string& header) {
    return inspect(kStep, header).memory.totals.total_device;
  };
  CHECK(total(", buffer_donor={ (0, {}) }") == total(""));
  CHECK(total(kAlias) == total("") - Bytes(4 << 20));
}

TEST_CASE("one argument serves one result") {
  const std::string twice =
      "ENTRY %main {\n  %s = f32[1048576]{0} parameter(0)\n  %a = f32[1048576]{0} negate(%s)\n  %b "
      "= "
      "f32[1048576]{0} tanh(%s)\n  ROOT %r = (f32[1048576]{0}, f32[1048576]{0}) tuple(%a, %b)\n}\n";
  CHECK(what_of(inspect(twice), "state-held-twice").starts_with("1 result has the shape"));
}

}  // namespace
}  // namespace spillway
