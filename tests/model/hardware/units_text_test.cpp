#include "model/hardware/units_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

namespace spillway {
namespace {

TEST_CASE("quantities read as people write them") {
  CHECK(*parse_units<Bytes>("480 GB") == Bytes(480'000'000'000));
  CHECK(*parse_units<Bytes>("60GiB") == Bytes(std::int64_t{60} << 30));
  CHECK(*parse_units<Bytes>("197897748480 B") == Bytes(197'897'748'480));
  CHECK(*parse_units<Bytes>("9.7 GiB") == Bytes(10'415'295'693));
  CHECK(*parse_units<Bytes>("1e3 kB") == Bytes(1'000'000));
  CHECK(*parse_units<Bytes>("-1 B") == Bytes(-1));
  CHECK(*parse_units<BytesPerSecond>("200.7 GB/s") == BytesPerSecond(200.7e9));
  CHECK(*parse_units<BytesPerSecond>("1 GiB/s") == BytesPerSecond(1073741824));
  CHECK(*parse_units<FlopsPerSecond>("989.2 TFLOP/s") == FlopsPerSecond(989.2e12));
  CHECK(*parse_units<Seconds>("8 us") == Seconds(8e-6));
  CHECK(*parse_units<Seconds>("0 s") == Seconds(0));
  CHECK(*parse_units<Hertz>("2.062 GHz") == Hertz(2.062e9));
  CHECK(*parse_units<Factor>("1.25 x") == Factor(1.25));
  CHECK(*parse_units<Count>("132") == Count(132));
}

template <typename Q>
std::string problem(std::string_view text) {
  const Result<Q> result = parse_units<Q>(text);
  if (result) return "read";
  return result.error().text + "; " + result.error().advice;
}

TEST_CASE("an error says what would be right") {
  CHECK(problem<BytesPerSecond>("4.8") == "needs a unit; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("4.8 TB") ==
        "is in 'TB', which is no unit of a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("4.8 tb/s") ==
        "is in 'tb/s'; write bytes, an eighth of the bits; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("400 Gbit/s") ==
        "is in 'Gbit/s'; write bytes, an eighth of the bits; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("fast") == "is 'fast', not a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("") == "is '', not a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("nan GB/s") ==
        "is 'nan GB/s', not a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("inf") == "is 'inf', not a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("0x10 GB/s") ==
        "is in 'x10 GB/s', which is no unit of a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("1,5 GB/s") ==
        "is in ',5 GB/s', which is no unit of a rate; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("1e400 GB/s") == "is out of range; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("1e300 TiB/s") == "is out of range; for example \"4.8 TB/s\"");
  CHECK(problem<BytesPerSecond>("1e999999999999 GB/s") ==
        "is out of range; for example \"4.8 TB/s\"");
  CHECK(problem<Bytes>("9000 TiB") == "is out of range; for example \"480 GB\"");
  CHECK(problem<Bytes>("1 TB/s") ==
        "is in 'TB/s', which is no unit of a size; for example \"480 GB\"");
  CHECK(problem<Seconds>("3 min") ==
        "is in 'min', which is no unit of a duration; for example \"8 us\"");
  CHECK(problem<Hertz>("2 ghz") ==
        "is in 'ghz', which is no unit of a frequency; for example \"2.062 GHz\"");
  CHECK(problem<FlopsPerSecond>("989 TFLOPS") ==
        "is in 'TFLOPS', which is no unit of a compute rate; for example \"989.2 TFLOP/s\"");
  CHECK(problem<Factor>("1.25") == "needs a unit; for example \"1.25 x\"");
  CHECK(problem<Count>("8 GPUs") == "is '8 GPUs', not a whole number; for example \"132\"");
  CHECK(problem<Count>("1.5") == "is '1.5', not a whole number; for example \"132\"");
  CHECK(problem<Count>("99999999999999999999") == "is out of range; for example \"132\"");
}

TEST_CASE("quantities are written in the unit that reads best") {
  CHECK(to_units_text(Bytes(0)) == "0 B");
  CHECK(to_units_text(Bytes(135'528'448)) == "132352 KiB");
  CHECK(to_units_text(Bytes(std::int64_t{1} << 40)) == "1 TiB");
  CHECK(to_units_text(Bytes(480'000'000'000)) == "480 GB");
  CHECK(to_units_text(Bytes(-12)) == "-12 B");
  CHECK(to_units_text(BytesPerSecond(200.7e9)) == "200.7 GB/s");
  CHECK(to_units_text(BytesPerSecond(0.5)) == "0.5 B/s");
  CHECK(to_units_text(BytesPerSecond(7928.064e9)) == "7.928064 TB/s");
  CHECK(to_units_text(FlopsPerSecond(989.2e12)) == "989.2 TFLOP/s");
  CHECK(to_units_text(Seconds(0)) == "0 s");
  CHECK(to_units_text(Seconds(8e-6)) == "8 us");
  CHECK(to_units_text(Seconds(90)) == "90 s");
  CHECK(to_units_text(Seconds(2.5e-14)) == "0.025 ps");
  CHECK(to_units_text(Hertz(1.9259081e9)) == "1.9259081 GHz");
  CHECK(to_units_text(Factor(1.25)) == "1.25 x");
  CHECK(to_units_text(Count(132)) == "132");
}

template <typename Q>
void check_round_trip(Q value) {
  const std::string text = to_units_text(value);
  CAPTURE(text);
  const Result<Q> read = parse_units<Q>(text);
  REQUIRE(read.ok());
  CHECK(*read == value);
}

TEST_CASE("what is written reads back as the same number") {
  constexpr unsigned kSeed = 20250302;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    const double mantissa = std::uniform_real_distribution(1.0, 10.0)(random);
    const int exponent = std::uniform_int_distribution(-30, 30)(random);
    const double value = mantissa * std::pow(10.0, exponent);
    check_round_trip(BytesPerSecond(value));
    check_round_trip(FlopsPerSecond(-value));
    check_round_trip(Seconds(value));
    check_round_trip(Hertz(value));
    check_round_trip(Factor(value));
    check_round_trip(Bytes(std::uniform_int_distribution<std::int64_t>(
        0, std::int64_t{1} << std::uniform_int_distribution(0, 53)(random))(random)));
    check_round_trip(Count(static_cast<std::int64_t>(random())));
  }
}

}  // namespace
}  // namespace spillway
