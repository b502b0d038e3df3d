#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "model/base/format.h"
#include "model/base/ids.h"
#include "model/base/result.h"
#include "model/base/units.h"

namespace spillway {
namespace {

TEST_CASE("quantities keep their units") {
  CHECK((Bytes(400) / BytesPerSecond(200)).value() == 2.0);
  CHECK(to_sim_time(Seconds(1e-12)) == SimTime(1));
  CHECK(to_sim_time(Seconds(1.5e-12)) == SimTime(2));
  CHECK(to_seconds(SimTime(2'500'000'000'000)) == Seconds(2.5));
}

TEST_CASE("a time beyond the range is its end") {
  CHECK(to_sim_time(Seconds(1e30)) == SimTime(std::numeric_limits<std::int64_t>::max()));
  CHECK(to_sim_time(Seconds(-1e30)) == SimTime(std::numeric_limits<std::int64_t>::min()));
  CHECK(to_sim_time(Seconds(9.2e6)) == SimTime(9'200'000'000'000'000'000));
}

TEST_CASE("an internal error names its file from the top of the repository") {
  CHECK(std::string(__builtin_FILE()) == "tests/model/base/base_test.cpp");
}

TEST_CASE("numbers read as a person writes them") {
  CHECK(format_bytes(Bytes(496)) == "496 B");
  CHECK(format_bytes(Bytes(37996366704)) == "35.39 GiB");
  CHECK(format_seconds(Seconds(12.3456)) == "12.346 s");
  CHECK(format_seconds(Seconds(0.6042)) == "604.20 ms");
  CHECK(format_seconds(Seconds(5.5e-6)) == "5.5 us");
  CHECK(format_flops(Flops(4.83e16)) == "48.30 PFLOP");
  CHECK(format_count(-1234567) == "-1,234,567");
  CHECK(format_count(123) == "123");
}

TEST_CASE("an error points at the input") {
  const Error error{.text = "'bandwidth' needs a unit",
                    .where = {"h200.yaml", 14, 12},
                    .excerpt = "bandwidth: 4.8",
                    .advice = "for example \"4.8 TB/s\""};
  CHECK(to_text(error) ==
        "h200.yaml:14:12: error: 'bandwidth' needs a unit\n"
        "  14 | bandwidth: 4.8\n"
        "     |            ^ for example \"4.8 TB/s\"");
  CHECK(to_text(Error{
            .text = "cannot be opened", .where = {"x.hlo", {}, {}}, .excerpt = "", .advice = ""}) ==
        "x.hlo: error: cannot be opened");
}

}  // namespace
}  // namespace spillway
