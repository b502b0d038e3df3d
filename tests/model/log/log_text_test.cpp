#include "model/log/log_text.h"

#include <doctest/doctest.h>

namespace spillway::log {
namespace {

TEST_CASE("sizes as XLA writes them") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  struct Row {
    const char* text;
    std::int64_t value, off_by;
    const char* rest;
  };
  const Row rows[] = {
      {"6291456 bytes.", 6291456, 0, "."},
      {"  496B rest", 496, 0, " rest"},
      {"0B", 0, 0, ""},
      {"123", 123, 0, ""},
      {"2.00GiB (x", 2 * kGiB, 5368710, " (x"},
      {"10.64GiB", 11424613007, 5368710, ""},
      {"38.7KiB", 39629, 52, ""},
      {"2GiB", 2 * kGiB, kGiB / 2, ""},
      {"80.5GB", 80500000000, 50000000, ""},
      {"29995136256)requested", 29995136256, 0, ")requested"},
      {"1152921504606846976", std::int64_t{1} << 60, 0, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    std::string_view rest = row.text;
    const auto bytes = take_bytes(rest);
    REQUIRE(bytes);
    CHECK(bytes->value.value() == row.value);
    CHECK(bytes->off_by.value() == row.off_by);
    CHECK(rest == row.rest);
  }
}

TEST_CASE("what is no size, or none that a machine has, is not taken") {
  for (const std::string_view text :
       {"", "GiB", "-1", "12K", "12.5", "10.64Gi", "1.5.2", "18446744073709551615",
        "1152921504606846977", "99999999999GiB", "1e5x", "nan"}) {
    CAPTURE(text);
    std::string_view rest = text;
    CHECK_FALSE(take_bytes(rest));
    CHECK(rest == text);
  }
}

TEST_CASE("of a size given twice the exact one counts; a share is no size") {
  struct Row {
    const char* text;
    std::int64_t value;
    bool exact;
  };
  const Row rows[] = {{"10.64GiB (11428802214 bytes) by", 11428802214, true},
                      {"27.93GiB (rounded to 29995136256)requested", 29995136256, true},
                      {"80.16GiB (86071123456B) on device", 86071123456, true},
                      {"2.00GiB (0.00%)", std::int64_t{2} << 30, false},
                      {"2.00GiB (7%)", std::int64_t{2} << 30, false},
                      {"2.00GiB (", std::int64_t{2} << 30, false}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    std::string_view rest = row.text;
    const auto bytes = take_exact_bytes(rest);
    REQUIRE(bytes);
    CHECK(bytes->value.value() == row.value);
    CHECK(bytes->exact() == row.exact);
  }
}

TEST_CASE("a rounded size may be the exact one, on both sides of the edge") {
  std::string_view rest = "10.64GiB";
  const LoggedBytes rounded = *take_bytes(rest);
  CHECK(may_be_equal(rounded, {Bytes(11428802214)}));
  CHECK(may_be_equal(rounded, {rounded.value + rounded.off_by}));
  CHECK_FALSE(may_be_equal(rounded, {rounded.value + rounded.off_by + Bytes(1)}));
  CHECK_FALSE(may_be_equal({Bytes(1)}, {Bytes(2)}));
}

TEST_CASE("lines end at line ends, and at those written out inside a string") {
  const std::vector<Line> lines = split_lines("a\r\n'b\\nc'\n\nd");
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].text == "a");
  CHECK(lines[1].text == "'b");
  CHECK(lines[2].text == "c'");
  CHECK(lines[2].number == 2);
  CHECK(lines[3].text == "");
  CHECK(lines[4].text == "d");
  CHECK(lines[4].number == 4);
}

TEST_CASE("half a number at the end is none") {
  CHECK(without_half_number("InUse: 123") == "InUse: ");
  CHECK(without_half_number("InUse: 123\n") == "InUse: 123\n");
  CHECK(without_half_number("1.5") == "");
  CHECK(without_half_number("") == "");
}

TEST_CASE("names from a log disturb no screen and end between two letters") {
  CHECK(printable("a\x1b[2Jb\tc") == "a?[2Jb?c");
  CHECK(printable("ab\xc3\x97", 3) == "ab");
}

}  // namespace
}  // namespace spillway::log
