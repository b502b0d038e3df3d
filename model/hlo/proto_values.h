// Shapes, literals and quoted texts of a HloProto, written as HLO text has them.
#pragma once

#include <string>
#include <string_view>

namespace spillway::pb {
class Literal;
class Shape;
}  // namespace spillway::pb

namespace spillway::hlo {

/// "bf16[8,4096]{1,0:S(5)}". What no shape may be comes out as text that the reader of HLO refuses.
void append_shape(std::string& text, const pb::Shape& shape);

/// What stands between the parentheses of a constant: 1, {1, 2}, or {...} as XLA writes what is
/// long; also for types narrower than a byte, and floats as narrow.
void append_literal(std::string& text, const pb::Literal& literal, const pb::Shape& shape);

/// In quotes, with everything escaped that XLA escapes.
void append_quoted(std::string& text, std::string_view content);

/// JSON as it is, anything else in quotes.
void append_json_or_quoted(std::string& text, std::string_view content);

/// "1,0" with `separator` between.
template <typename Numbers>
void append_numbers(std::string& text, const Numbers& numbers, std::string_view separator = ",") {
  bool first = true;
  for (const auto number : numbers) {
    if (!first) text += separator;
    text += std::to_string(number);
    first = false;
  }
}

}  // namespace spillway::hlo
