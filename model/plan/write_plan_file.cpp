#include "model/plan/write_plan_file.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "model/plan/plan_file_fields.h"

namespace spillway {
namespace {

/// What some reader of YAML takes for something other than a word.
bool is_reserved(const std::string& text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  constexpr std::string_view kReserved[] = {"y",    "n",     "yes",  "no",  "on", "off",
                                            "true", "false", "null", "nan", "inf"};
  return std::ranges::find(kReserved, lower) != std::end(kReserved);
}

/// Whether a text is a word to every reader of YAML without quotes.
bool is_plain(const std::string& text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_in_word = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, is_in_word) &&
         !is_reserved(text);
}

class PlanWriter {
 public:
  explicit PlanWriter(YAML::Emitter& out) : out_(out) {}

  template <typename VisitInside>
  void section(std::string_view name, VisitInside visit_inside) {
    key(name);
    out_ << YAML::BeginMap;
    visit_inside();
    out_ << YAML::EndMap;
  }
  template <typename T>
  void field(std::string_view name, const T& value) {
    key(name);
    scalar(value);
  }
  template <typename T>
  void optional_field(std::string_view name, const std::optional<T>& value) {
    if (value) field(name, *value);
  }
  template <typename T>
  void map(std::string_view name, const std::vector<std::pair<std::string, T>>& entries) {
    key(name);
    if (entries.empty()) out_ << YAML::Flow;
    out_ << YAML::BeginMap;
    for (const auto& [word, value] : entries) {
      out_ << YAML::Key;
      scalar(word);
      out_ << YAML::Value;
      scalar(value);
    }
    out_ << YAML::EndMap;
  }
  void names(std::string_view name, const std::vector<std::string>& list) {
    key(name);
    out_ << YAML::Flow << YAML::BeginSeq;
    for (const std::string& item : list) scalar(item);
    out_ << YAML::EndSeq;
  }
  /// One line an item.
  template <typename T, typename Visit>
  void list(std::string_view name, const std::vector<T>& items, const Visit& visit) {
    key(name);
    if (items.empty()) out_ << YAML::Flow;
    out_ << YAML::BeginSeq;
    for (const T& item : items) {
      out_ << YAML::Flow << YAML::BeginMap;
      visit(item, *this);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

 private:
  void key(std::string_view name) { out_ << YAML::Key << std::string(name) << YAML::Value; }

  void scalar(const std::string& text) {
    if (is_plain(text))
      out_ << text;
    else
      out_ << YAML::DoubleQuoted << text;
  }
  void scalar(std::int64_t number) { out_ << std::to_string(number); }
  /// The shortest text that reads back as the same number.
  void scalar(double number) {
    std::array<char, 32> text{};
    const auto [end, failed] = std::to_chars(text.data(), text.data() + text.size(), number);
    check(failed == std::errc(), "a number has no text");
    out_ << std::string(text.data(), end);
  }
  void scalar(bool value) { out_ << (value ? "true" : "false"); }
  void scalar(Bytes bytes) { scalar(bytes.value()); }
  void scalar(Seconds time) { scalar(time.value()); }
  void scalar(BytesPerSecond rate) { scalar(rate.value()); }
  void scalar(Choice choice) { out_ << std::string(name_of(choice)); }
  void scalar(StateClass kind) { out_ << std::string(name_of(kind)); }
  void scalar(const JaxlibVersion& version) { out_ << YAML::DoubleQuoted << to_string(version); }
  void scalar(const HostGrid& grid) { out_ << YAML::DoubleQuoted << to_string(grid); }

  YAML::Emitter& out_;
};

}  // namespace

std::string to_yaml(const PlanFile& plan) {
  YAML::Emitter out;
  PlanWriter writer(out);
  out << YAML::Comment(
      "What was planned, and what a step then holds, moves and takes on one device.\n"
      "For spillway verify; spillway.jax.policy(this file) is the policy for jax.checkpoint.");
  out << YAML::BeginMap << YAML::Key << "schema" << YAML::Value << std::string(kPlanFileSchema);
  visit_plan_file(plan, writer);
  out << YAML::EndMap;
  check(out.good(), "a plan file is no YAML: " + out.GetLastError());
  return std::string(out.c_str()) + "\n";
}

}  // namespace spillway
