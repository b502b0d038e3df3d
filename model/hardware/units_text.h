// Quantities as people write them: "200.7 GB/s", "8 us", "2.062 GHz", "480 GB", "9.7 GiB", "1.25
// x". Both ways, and exactly: the text that `to_units_text` writes reads back as the same number.
// Rounded numbers for people to look at are model/base/format.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "model/base/units.h"

namespace spillway {

using Hertz = Quantity<struct HertzTag, double>;
/// How many times as long as the formula says: written "1.25 x".
using Factor = Quantity<struct FactorTag, double>;
/// How many there are: a bare whole number.
using Count = Quantity<struct CountTag, std::int64_t>;

/// A number and its unit, with or without a space between. Decimal (GB) and binary (GiB) units are
/// told apart, bits are refused. The error's text continues the name of what was read ("needs a
/// unit"), so that the reader can put it there together with the place.
/// Defined for Bytes, BytesPerSecond, FlopsPerSecond, Seconds, Hertz, Factor and Count.
template <typename Q>
Result<Q> parse_units(std::string_view text);

/// What a value of that kind looks like, for messages: "4.8 TB/s".
template <typename Q>
std::string_view example_of();

std::string to_units_text(Bytes bytes);
std::string to_units_text(BytesPerSecond rate);
std::string to_units_text(FlopsPerSecond rate);
std::string to_units_text(Seconds time);
std::string to_units_text(Hertz frequency);
std::string to_units_text(Factor factor);
std::string to_units_text(Count count);

}  // namespace spillway
