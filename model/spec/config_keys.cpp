#include "model/spec/config_keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace spillway {

const YamlNode::Entry* find_entry(const YamlNode& mapping, std::string_view key) {
  const YamlNode::Entry* found = nullptr;
  for (const YamlNode::Entry& entry : mapping.entries)
    if (entry.key == key) found = &entry;
  return found;
}

std::optional<double> parse_number(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  if (!digits.empty() && digits.front() == '+') digits.erase(0, 1);
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<ConfigKeys::Found> ConfigKeys::find(std::string_view key) {
  asked_.emplace(key);
  if (const YamlNode::Entry* entry = find_entry(file_->root, key))
    return Found{&entry->value, entry->key_at, true};
  if (!model_) return std::nullopt;
  if (const YamlNode::Entry* entry = find_entry(model_->root, key))
    return Found{&entry->value, entry->key_at, false};
  return std::nullopt;
}

void ConfigKeys::fail(std::string_view key, std::string text, std::string advice) {
  if (problem_) return;
  Error error;
  error.text = std::move(text);
  error.advice = std::move(advice);
  error.where = SourceRef{file_->path, std::nullopt, std::nullopt};
  if (const YamlNode::Entry* entry = find_entry(file_->root, key)) {
    error.where.line = entry->key_at.line;
    error.where.column = entry->key_at.column;
    error.excerpt = excerpt_of(file_->text, entry->key_at);
  }
  problem_ = std::move(error);
}

std::int64_t ConfigKeys::require_size(std::string_view key, std::string_view what) {
  const std::string name(key);
  if (!has(key)) {
    fail(key, "'" + name + "' is missing: " + std::string(what),
         model_ ? "the model of 'model_name' does not say it either"
                : "give it, or a 'model_name' that Spillway knows");
    return 1;
  }
  const std::int64_t value = integer(key, 0);
  if (value >= 1) return value;
  fail(key, "'" + name + "' must be at least 1", "it is " + std::string(what));
  return 1;
}

std::int64_t ConfigKeys::integer(std::string_view key, std::int64_t otherwise) {
  constexpr double kMost = 1e15;
  const double value = number(key, static_cast<double>(otherwise));
  if (std::abs(value) < kMost && value == std::floor(value))
    return static_cast<std::int64_t>(value);
  fail(key, "'" + std::string(key) + "' must be a whole number");
  return otherwise;
}

double ConfigKeys::number(std::string_view key, double otherwise) {
  const auto found = find(key);
  if (!found || found->value->kind == YamlNode::Kind::kNull) return otherwise;
  if (const auto value = parse_number(found->value->scalar)) return *value;
  fail(key, "'" + std::string(key) + "' must be a number");
  return otherwise;
}

bool ConfigKeys::flag(std::string_view key, bool otherwise) {
  const auto found = find(key);
  if (!found || found->value->kind == YamlNode::Kind::kNull) return otherwise;
  std::string word = found->value->scalar;
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (word == "true" || word == "1" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "no") return false;
  fail(key, "'" + std::string(key) + "' must be true or false");
  return otherwise;
}

std::string ConfigKeys::text(std::string_view key, std::string_view otherwise) {
  const auto found = find(key);
  if (!found || found->value->kind == YamlNode::Kind::kNull) return std::string(otherwise);
  return found->value->scalar;
}

std::vector<std::string> ConfigKeys::unread() const {
  std::vector<std::string> keys;
  for (const YamlNode::Entry& entry : file_->root.entries)
    if (!asked_.contains(entry.key)) keys.push_back(entry.key);
  return keys;
}

}  // namespace spillway
