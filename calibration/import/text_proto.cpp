#include "calibration/import/text_proto.h"

#include "calibration/import/text_scan.h"

namespace spillway::calibration {
namespace {

constexpr int kDeepest = 100;

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<ProtoNode> run() {
    ProtoNode root;
    if (auto error = read_fields(root, 0)) return *error;
    return root;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (std::string_view(" \t\r\n,;").find(text_[at_]) == std::string_view::npos)
        return;
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    const auto stands_in_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.' || c == '-' || c == '+';
    };
    while (stands_in_word(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Error fail(std::string text) const { return error_in_text(path_, text_, at_, std::move(text)); }

  /// Until the brace that closes the message, or the end of the text.
  std::optional<Error> read_fields(ProtoNode& parent, int depth) {
    if (depth > kDeepest) return fail("messages within messages, without end");
    for (skip_space(); at_ < text_.size(); skip_space()) {
      if (peek() == '}' || peek() == '>') {
        if (depth == 0) return fail("a brace that closes nothing");
        ++at_;
        return std::nullopt;
      }
      ProtoNode field;
      field.name = word();
      if (field.name.empty()) return fail("the name of a field expected");
      skip_space();
      if (peek() == ':') ++at_;
      skip_space();
      if (auto error = read_value(field, depth)) return error;
      parent.fields.push_back(std::move(field));
    }
    if (depth > 0) return fail("the text ends inside a message");
    return std::nullopt;
  }

  std::optional<Error> read_value(ProtoNode& field, int depth) {
    if (peek() == '{' || peek() == '<') {
      ++at_;
      return read_fields(field, depth + 1);
    }
    if (peek() == '"' || peek() == '\'') return read_string(field);
    if (peek() == '[') {
      const std::size_t end = text_.find(']', at_);
      if (end == std::string_view::npos) return fail("a list without an end");
      field.value = text_.substr(at_, end + 1 - at_);
      at_ = end + 1;
      return std::nullopt;
    }
    field.value = word();
    if (field.value.empty()) return fail("a value expected");
    return std::nullopt;
  }

  std::optional<Error> read_string(ProtoNode& field) {
    const char quote = peek();
    const std::size_t begin = ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\')
        ++at_;
      else if (text_[at_] == quote) {
        field.value = text_.substr(begin, at_ - begin);
        ++at_;
        return std::nullopt;
      }
    }
    at_ = begin - 1;
    return fail("a string without an end");
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

const ProtoNode* ProtoNode::find(std::string_view field) const {
  for (const ProtoNode& node : fields)
    if (node.name == field) return &node;
  return nullptr;
}

std::string_view ProtoNode::text(std::string_view field) const {
  const ProtoNode* node = find(field);
  return node == nullptr ? std::string_view() : node->value;
}

std::optional<double> ProtoNode::number(std::string_view field) const {
  return to_number(text(field));
}

Result<ProtoNode> parse_text_proto(std::string_view text, const std::string& path) {
  return Parser(text, path).run();
}

}  // namespace spillway::calibration
