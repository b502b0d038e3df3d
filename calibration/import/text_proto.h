// Protobuf's text format as a tree of fields, without knowing the message: enough for tables that
// are printed by machines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"

namespace spillway::calibration {

struct ProtoNode {
  std::string_view name;
  std::string_view value;  ///< of a number, a word or a string without its quotes
  std::vector<ProtoNode> fields;

  /// The first field of that name; null when there is none.
  const ProtoNode* find(std::string_view field) const;
  std::string_view text(std::string_view field) const;  ///< empty when there is none
  std::optional<double> number(std::string_view field) const;
};

/// The views are of `text`. Comments count nothing; backslashes in strings stay. An error points at
/// what is wrong.
Result<ProtoNode> parse_text_proto(std::string_view text, const std::string& path);

}  // namespace spillway::calibration
