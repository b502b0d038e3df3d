// A YAML file as a tree in which each node knows its place. Stricter than YAML: one document, no
// anchors, aliases or tags, no deep nesting, nothing large; so a file cannot expand, loop or stall.
// Keys given twice are kept: strict_map.h complains about them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"

namespace spillway {

/// Line and column start at 1. Columns count bytes.
struct TextPosition {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend auto operator<=>(const TextPosition&, const TextPosition&) = default;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  struct Entry;

  Kind kind = Kind::kNull;
  TextPosition at;
  std::string scalar;           ///< as written, without its quotes: no type is guessed
  std::vector<YamlNode> items;  ///< of a sequence
  std::vector<Entry> entries;   ///< of a mapping, in the order of the file
};

struct YamlNode::Entry {
  std::string key;
  TextPosition key_at;
  YamlNode value;
};

struct YamlDocument {
  std::string path;
  std::string text;
  YamlNode root;
};

/// The largest YAML file that is read: a profile has some ten KiB.
inline constexpr Bytes kMaxYamlBytes{1 << 20};

/// Errors: cannot be opened, no regular file, empty, too large, no text, no YAML.
Result<YamlDocument> read_yaml(const std::string& path);
/// `path` is only for messages.
Result<YamlDocument> parse_yaml(std::string text, std::string path);

/// The line at `at`, to be shown beside a message; empty where showing it would not help.
std::string excerpt_of(std::string_view text, TextPosition at);

}  // namespace spillway
