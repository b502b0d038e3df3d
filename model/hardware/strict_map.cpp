#include "model/hardware/strict_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/base/spelling.h"

namespace spillway {

void YamlProblems::add(TextPosition at, std::string text, std::string advice) {
  problems_.push_back({false, at, std::move(text), std::move(advice)});
}

void YamlProblems::add_missing(TextPosition at, std::string text, std::string advice) {
  problems_.push_back({true, at, std::move(text), std::move(advice)});
}

std::optional<Error> YamlProblems::first() const {
  const auto order = [](const Problem& p) { return std::tuple(p.missing, p.at); };
  const auto first = std::ranges::min_element(problems_, {}, order);
  if (first == problems_.end()) return std::nullopt;
  return Error{ErrorKind::kInput,
               first->text,
               {document_->path, first->at.line, first->at.column},
               excerpt_of(document_->text, first->at),
               first->advice};
}

StrictMap::StrictMap(const YamlNode& node, TextPosition at, std::string name,
                     YamlProblems& problems)
    : node_(&node), at_(at), name_(std::move(name)), problems_(&problems) {
  if (node.kind != YamlNode::Kind::kMapping) {
    problems.add(
        at, name_.empty() ? "a mapping is expected" : fmt::format("'{}' must be a mapping", name_),
        "lines of the form 'key: value'");
    node_ = nullptr;
    return;
  }
  std::map<std::string_view, TextPosition> first;
  for (const YamlNode::Entry& entry : node.entries) {
    const auto [earlier, is_new] = first.emplace(entry.key, entry.key_at);
    if (!is_new)
      problems.add(entry.key_at, fmt::format("{} is given twice", describe(entry.key)),
                   fmt::format("first in line {}", earlier->second.line));
  }
}

std::string StrictMap::describe(std::string_view key) const {
  return name_.empty() ? fmt::format("'{}'", key) : fmt::format("'{}' of '{}'", key, name_);
}

std::optional<StrictMap::Value> StrictMap::find(std::string_view key) {
  known_.emplace_back(key);
  if (node_ == nullptr) return std::nullopt;
  const auto entry = std::ranges::find(node_->entries, key, &YamlNode::Entry::key);
  if (entry == node_->entries.end()) return std::nullopt;
  return Value{&entry->value, entry->key_at};
}

std::optional<StrictMap::Value> StrictMap::require(std::string_view key, std::string_view example) {
  const std::optional<Value> value = find(key);
  if (!value && node_ != nullptr)
    problems_->add_missing(at_, fmt::format("{} is missing", describe(key)),
                           fmt::format("for example {}", example));
  return value;
}

std::optional<StrictMap::Value> StrictMap::require_scalar(std::string_view key,
                                                          std::string_view example) {
  const std::optional<Value> value = require(key, example);
  if (value && (value->node->kind != YamlNode::Kind::kScalar || value->node->scalar.empty())) {
    problems_->add(value->key_at, fmt::format("{} needs a value", describe(key)),
                   fmt::format("for example {}", example));
    return std::nullopt;
  }
  return value;
}

void StrictMap::finish() {
  if (node_ == nullptr) return;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    const std::string_view nearest = nearest_name(entry.key, known_);
    problems_->add(entry.key_at, fmt::format("{} is not a known key", describe(entry.key)),
                   nearest.empty() ? fmt::format("known are {}", fmt::join(known_, ", "))
                                   : fmt::format("did you mean '{}'?", nearest));
  }
}

}  // namespace spillway
