#include "model/hardware/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "model/base/regular_file.h"
#include "model/base/utf8.h"

namespace spillway {
namespace {

constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxExcerpt = 200;

TextPosition position_of(const YAML::Mark& mark) {  // yaml-cpp counts from 0
  return {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

/// Leaves the parser from inside a callback; caught by parse_yaml.
struct Refused {
  TextPosition at;
  std::string text;
  std::string advice;
};

/// Builds the tree from the parser's events. `open_` is the path from the root to where we are; in
/// a mapping, `key_` holds the key that waits for its value.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    open(mark, "", anchor, YamlNode::Kind::kNull);
    close();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (awaits_key()) {
      refuse_tag_and_anchor(mark, tag, anchor);
      key_.push_back({value, position_of(mark), {}});
      return;
    }
    open(mark, tag, anchor, YamlNode::Kind::kScalar).scalar = value;
    close();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMapping);
  }
  void OnMapEnd() override { close(); }

 private:
  static void refuse_anchor(const YAML::Mark& mark) {
    throw Refused{position_of(mark), "anchors and aliases are not allowed", "write the value out"};
  }
  static void refuse_tag_and_anchor(const YAML::Mark& mark, const std::string& tag,
                                    YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse_anchor(mark);
    if (!tag.empty() && tag != "?" && tag != "!")  // ? is plain, ! is quoted
      throw Refused{position_of(mark), fmt::format("the tag '{}' is not allowed", tag),
                    "write the value without it"};
  }

  /// Whether the next scalar is a key: we are directly in a mapping and no key waits.
  bool awaits_key() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMapping &&
           key_.size() == open_.back().keys_before;
  }

  YamlNode& open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                 YamlNode::Kind kind) {
    refuse_tag_and_anchor(mark, tag, anchor);
    if (awaits_key()) throw Refused{position_of(mark), "a key must be a plain name", ""};
    if (open_.size() == kMaxDepth)
      throw Refused{position_of(mark), "is nested too deep",
                    fmt::format("{} levels are enough for anything read here", kMaxDepth)};
    open_.push_back({.node = {}, .keys_before = key_.size()});
    open_.back().node.kind = kind;
    open_.back().node.at = position_of(mark);
    return open_.back().node;
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == YamlNode::Kind::kMapping) {
      key_.back().value = std::move(node);
      open_.back().node.entries.push_back(std::move(key_.back()));
      key_.pop_back();
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
  }

  struct Open {
    YamlNode node;
    std::size_t keys_before;
  };
  std::vector<Open> open_;
  std::vector<YamlNode::Entry> key_;
  YamlNode root_;
};

Error error_at(const std::string& path, std::string_view text, TextPosition at, std::string message,
               std::string advice) {
  return Error{ErrorKind::kInput,
               std::move(message),
               {path, at.line, at.column},
               excerpt_of(text, at),
               std::move(advice)};
}

/// A byte that no text file has: YAML allows tab and line ends among the control characters.
bool is_binary(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

}  // namespace

std::string excerpt_of(std::string_view text, TextPosition at) {
  for (std::uint32_t line = 1; line < at.line; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() > kMaxExcerpt || at.column > text.size() + 1) return "";
  for (const char c : text)
    if (is_binary(c) || c == '\t') return "";  // the caret would point elsewhere
  return std::string(text);
}

Result<YamlDocument> parse_yaml(std::string text, std::string path) {
  YamlDocument document{std::move(path), std::move(text), {}};
  if (std::ranges::any_of(document.text, is_binary) || !is_utf8(document.text))
    return error_in_file(document.path, "is not text", "a YAML file in UTF-8 is expected");
  std::istringstream stream(document.text);
  TreeBuilder builder;
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return error_in_file(document.path, "is empty");
    document.root = builder.take();
    TreeBuilder second;
    if (parser.HandleNextDocument(second))
      return error_in_file(document.path, "holds more than one YAML document", "remove the '---'");
  } catch (const Refused& refused) {
    return error_at(document.path, document.text, refused.at, refused.text, refused.advice);
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null())
      return error_in_file(document.path, "is not valid YAML: " + error.msg);
    return error_at(document.path, document.text, position_of(error.mark),
                    "is not valid YAML: " + error.msg, "");
  }
  return document;
}

Result<YamlDocument> read_yaml(const std::string& path) {
  Result<std::string> text =
      read_regular_file(path, kMaxYamlBytes, "is this really the YAML file?");
  if (!text.ok()) return text.error();
  return parse_yaml(std::move(text).value(), path);
}

}  // namespace spillway
