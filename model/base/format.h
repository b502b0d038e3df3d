// Numbers as a person reads them. Formatting only: no arithmetic that decides anything.
#pragma once

#include <string>

#include "model/base/units.h"

namespace spillway {

/// "35.39 GiB", "496 B": binary units, two decimals from KiB on.
std::string format_bytes(Bytes bytes);
/// "12.346 s", "604.20 ms", "5.5 us".
std::string format_seconds(Seconds time);
/// "48.30 PFLOP": decimal units, two decimals from kFLOP on.
std::string format_flops(Flops flops);
/// "35,390,123": digits in groups of three.
std::string format_count(std::int64_t n);

/// A difference with its sign, "+" for none: format is one of the above.
template <typename Quantity>
std::string signed_text(Quantity difference, std::string (*format)(Quantity)) {
  return difference < Quantity(0) ? "-" + format(Quantity(0) - difference)
                                  : "+" + format(difference);
}

}  // namespace spillway
