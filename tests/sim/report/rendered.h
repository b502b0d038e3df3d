// What every rendering keeps to.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace spillway::testing {

using Json = nlohmann::json;

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The line that starts with `start`, blanks in front of it left out; the test fails without one.
inline std::string line_with(const std::string& text, std::string_view start) {
  for (const std::string& line : lines_of(text)) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && std::string_view(line).substr(first).starts_with(start))
      return line.substr(first);
  }
  FAIL("no line starts with '" << start << "'");
  return "";
}

/// What a text says that no number is: nan, -inf, …; empty when it says none of it.
inline std::string no_number_in(const std::string& text) {
  static const std::regex kNoNumber("(^|[^A-Za-z0-9_])-?(nan|inf|infinity)([^A-Za-z0-9_]|$)",
                                    std::regex::icase);
  std::smatch found;
  return std::regex_search(text, found, kNoNumber) ? found.str() : "";
}

/// Lines end where they end, numbers are numbers, and nothing disturbs a terminal.
inline void check_text(const std::string& text) {
  CHECK(text.ends_with("\n"));
  CHECK_FALSE(text.ends_with("\n\n"));
  CHECK(text.find("\n\n\n") == std::string::npos);
  CHECK(no_number_in(text) == "");
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    CHECK_FALSE(line.ends_with(" "));
    for (const char c : line) CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
}

/// Below a head that starts with one of these stands at least one row.
inline void check_tables(const std::string& text, const std::vector<std::string>& heads) {
  const auto lines = lines_of(text);
  for (std::size_t k = 0; k < lines.size(); ++k)
    for (const std::string& head : heads)
      if (lines[k].starts_with(head)) {
        CAPTURE(lines[k]);
        REQUIRE(k + 1 < lines.size());
        CHECK(lines[k + 1] != "");
      }
}

enum class Is { kInteger, kNumber, kText, kFlag, kList, kObject, kNull, kIntegerOrNull };

inline bool has_type(const Json& value, Is type) {
  switch (type) {
    case Is::kInteger:
      return value.is_number_integer() && value >= 0;
    case Is::kNumber:
      return value.is_number() && value >= 0;
    case Is::kText:
      return value.is_string();
    case Is::kFlag:
      return value.is_boolean();
    case Is::kList:
      return value.is_array();
    case Is::kObject:
      return value.is_object();
    case Is::kNull:
      return value.is_null();
    case Is::kIntegerOrNull:
      return value.is_null() || (value.is_number_integer() && value >= 0);
  }
  return false;
}

struct Field {
  const char* name;
  Is type;
};

/// Every field is there and of its type. Bytes are whole, seconds are numbers; both are never
/// below zero.
inline void check_fields(const Json& object, const std::vector<Field>& fields) {
  REQUIRE(object.is_object());
  for (const Field& field : fields) {
    CAPTURE(field.name);
    REQUIRE(object.contains(field.name));
    CHECK(has_type(object[field.name], field.type));
  }
}

/// Names carry their unit: what ends in _bytes is whole, what ends in _seconds a number; and no
/// number got lost on the way (JSON has null for NaN).
inline void check_units(const Json& json, const std::string& path = "") {
  for (const auto& [key, value] : json.items()) {
    const std::string here = path + "/" + key;
    CAPTURE(here);
    const bool bytes = json.is_object() && (key == "bytes" || key.ends_with("_bytes"));
    const bool seconds = json.is_object() && (key == "seconds" || key.ends_with("_seconds"));
    if (bytes) CHECK(has_type(value, Is::kInteger));
    if (seconds) CHECK(has_type(value, Is::kNumber));
    if (value.is_structured()) check_units(value, here);
  }
}

}  // namespace spillway::testing
