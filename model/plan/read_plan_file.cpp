#include "model/plan/read_plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "model/hardware/pageable.h"
#include "model/hardware/strict_map.h"
#include "model/plan/check_plan_file.h"
#include "model/plan/plan_file_fields.h"

namespace spillway {
namespace {

/// Bytes and counts are exact in a double (verify_report.h); a quadrillion bytes are a petabyte.
constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;
/// Thirty years.
constexpr double kMostSeconds = 1e9;
/// Of FLOPs, the largest figures: a step of a year on 100,000 devices has some 1e27 in all.
constexpr double kMost = 1e30;

constexpr Choice kChoices[] = {Choice::kKeep, Choice::kOffload, Choice::kRecompute};

/// Reads every field that visit_plan_file names.
class PlanReader {
 public:
  PlanReader(const YamlDocument& document, YamlProblems& problems) : problems_(problems) {
    open_.emplace_back(document.root, TextPosition{}, "", problems);
    const auto schema = map().require_scalar("schema", fmt::format("schema: {}", kPlanFileSchema));
    if (schema && schema->node->scalar != kPlanFileSchema)
      problems_.add(schema->node->at,
                    fmt::format("the schema {} is not known", quoted(schema->node->scalar)),
                    fmt::format("this version reads {}", kPlanFileSchema));
  }

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    if (const auto value = map().require(key, fmt::format("'{}:' with its fields below", key)))
      inside(*value->node, value->key_at, std::string(key), visit_inside);
  }

  template <typename T>
  void field(std::string_view key, T& out) {
    if (const auto value = map().require_scalar(key, fmt::format("{}: {}", key, example(out)))) {
      places_.fields[std::string(key)] = value->node->at;
      scalar(map().describe(key), *value->node, out);
    }
  }
  /// Text may be empty.
  void field(std::string_view key, std::string& out) {
    if (const auto value = map().require(key, fmt::format("{}: \"\"", key)))
      scalar(map().describe(key), *value->node, out);
  }
  template <typename T>
  void optional_field(std::string_view key, std::optional<T>& out) {
    if (const auto value = map().find(key)) {
      places_.fields[std::string(key)] = value->node->at;
      scalar(map().describe(key), *value->node, out.emplace());
    }
  }

  template <typename T>
  void map(std::string_view key, std::vector<std::pair<std::string, T>>& out) {
    const auto value = map().require(key, fmt::format("{}: {{}}", key));
    if (!value) return;
    inside(*value->node, value->key_at, std::string(key), [&] {
      for (const YamlNode::Entry& entry : value->node->entries) {
        out.emplace_back(entry.key, T());
        if constexpr (std::is_same_v<T, Choice>) places_.policy[entry.key] = entry.key_at;
        if (map().find(entry.key))
          scalar(map().describe(entry.key), entry.value, out.back().second);
      }
    });
  }

  void names(std::string_view key, std::vector<std::string>& out) {
    const auto value = map().require(key, fmt::format("{}: []", key));
    if (!value || !is_list(key, *value)) return;
    for (const YamlNode& item : value->node->items)
      scalar(map().describe(key), item, out.emplace_back());
  }

  template <typename T, typename Visit>
  void list(std::string_view key, std::vector<T>& out, const Visit& visit) {
    const auto value = map().require(key, fmt::format("{}: []", key));
    if (!value || !is_list(key, *value)) return;
    for (const YamlNode& item : value->node->items) {
      out.emplace_back();
      inside(item, item.at, std::string(key), [&] { visit(out.back(), *this); });
      remember(item.at, out.back());
    }
  }

  void finish(const PlanFile& plan) {
    map().finish();
    // What could not be read contradicts nothing.
    if (!problems_.first()) check_plan_file(plan, places_, problems_);
  }

 private:
  StrictMap& map() { return open_.back(); }

  template <typename Visit>
  void inside(const YamlNode& node, TextPosition at, std::string name, const Visit& visit) {
    open_.emplace_back(node, at, std::move(name), problems_);
    visit();
    map().finish();
    open_.pop_back();
  }

  bool is_list(std::string_view key, const StrictMap::Value& value) {
    if (value.node->kind == YamlNode::Kind::kSequence) return true;
    problems_.add(value.key_at, fmt::format("{} must be a list", map().describe(key)),
                  fmt::format("for example {}: []", key));
    return false;
  }

  template <typename T>
  void remember(TextPosition, const T&) {}
  void remember(TextPosition at, const PlannedResidual&) { places_.residuals.push_back(at); }
  void remember(TextPosition at, const PlannedState&) { places_.state.push_back(at); }
  void remember(TextPosition at, const Item& item) {
    if (item.count < 1) problems_.add(at, "'count' is how often it is there, once at least", "");
  }

  bool is_scalar(const std::string& what, const YamlNode& node, const std::string& example) {
    if (node.kind == YamlNode::Kind::kScalar) return true;
    problems_.add(node.at, what + " needs a value", "for example " + example);
    return false;
  }
  void refuse(const std::string& what, const YamlNode& node, const std::string& advice) {
    problems_.add(node.at, fmt::format("{} is {}", what, quoted(node.scalar)), advice);
  }

  void scalar(const std::string& what, const YamlNode& node, std::string& out) {
    if (is_scalar(what, node, "\"\"")) out = node.scalar;
  }
  void scalar(const std::string& what, const YamlNode& node, std::int64_t& out) {
    if (!is_scalar(what, node, example(out))) return;
    if (!read_number(node.scalar, out) || out < 0)
      refuse(what, node, "a whole number, not below 0");
    else if (out > kMostWhole)
      refuse(what, node, "that is more than any step has");
  }
  void scalar(const std::string& what, const YamlNode& node, double& out) {
    if (!is_scalar(what, node, example(out))) return;
    if (!read_number(node.scalar, out) || !std::isfinite(out) || out < 0)
      refuse(what, node, "a number, not below 0");
    else if (out > kMost)
      refuse(what, node, "that is more than any step has");
  }
  void scalar(const std::string& what, const YamlNode& node, bool& out) {
    if (!is_scalar(what, node, example(out))) return;
    out = node.scalar == "true";
    if (!out && node.scalar != "false") refuse(what, node, "true or false");
  }
  void scalar(const std::string& what, const YamlNode& node, Bytes& out) {
    std::int64_t bytes = 0;
    scalar(what, node, bytes);
    out = Bytes(bytes);
  }
  void scalar(const std::string& what, const YamlNode& node, Seconds& out) {
    double seconds = 0;
    scalar(what, node, seconds);
    if (seconds > kMostSeconds && seconds <= kMost)
      refuse(what, node, "that is more than any step takes");
    out = Seconds(seconds);
  }
  void scalar(const std::string& what, const YamlNode& node, BytesPerSecond& out) {
    double rate = 0;
    scalar(what, node, rate);
    out = BytesPerSecond(rate);
    if (!is_pageable_rate(out)) refuse(what, node, std::string(kPageableRates));
  }
  void scalar(const std::string& what, const YamlNode& node, Choice& out) {
    one_of(what, node, kChoices, out);
  }
  void scalar(const std::string& what, const YamlNode& node, StateClass& out) {
    one_of(what, node, kStateClasses, out);
  }
  void scalar(const std::string& what, const YamlNode& node, JaxlibVersion& out) {
    if (!is_scalar(what, node, example(out))) return;
    if (const auto version = parse_jaxlib_version(node.scalar))
      out = *version;
    else
      refuse(what, node, "a version, for example " + example(out));
  }
  void scalar(const std::string& what, const YamlNode& node, HostGrid& out) {
    if (!is_scalar(what, node, example(out))) return;
    if (const auto grid = parse_host_grid(node.scalar))
      out = *grid;
    else
      refuse(what, node, "hosts x GPUs, for example " + example(out));
  }

  template <typename T>
  static bool read_number(std::string_view text, T& out) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc() && end == text.data() + text.size();
  }

  template <typename T, std::size_t kSize>
  void one_of(const std::string& what, const YamlNode& node, const T (&all)[kSize], T& out) {
    std::vector<std::string_view> words;
    for (const T one : all) words.push_back(name_of(one));
    if (!is_scalar(what, node, std::string(words.front()))) return;
    const auto found = std::ranges::find(words, node.scalar);
    if (found != words.end())
      out = all[static_cast<std::size_t>(found - words.begin())];
    else
      refuse(what, node, fmt::format("one of {}", fmt::join(words, ", ")));
  }

  static std::string example(std::int64_t) { return "32"; }
  static std::string example(double) { return "0.25"; }
  static std::string example(bool) { return "true"; }
  static std::string example(Bytes) { return "1024"; }
  static std::string example(Seconds) { return "0.25"; }
  static std::string example(Choice) { return "keep"; }
  static std::string example(StateClass) { return "optimizer"; }
  static std::string example(const JaxlibVersion&) { return "\"0.12.0\""; }
  static std::string example(const HostGrid&) { return "\"32x4\""; }

  YamlProblems& problems_;
  std::vector<StrictMap> open_;
  PlanFilePlaces places_;
};

Result<PlanFile> to_plan_file(const YamlDocument& document) {
  YamlProblems problems(document);
  PlanReader reader(document, problems);
  PlanFile plan;
  visit_plan_file(plan, reader);
  reader.finish(plan);
  if (std::optional<Error> error = problems.first()) return *std::move(error);
  return plan;
}

}  // namespace

Result<PlanFile> parse_plan_file(std::string text, std::string path) {
  const Result<YamlDocument> document = parse_yaml(std::move(text), std::move(path));
  return document.ok() ? to_plan_file(*document) : document.error();
}

Result<PlanFile> read_plan_file(const std::string& path) {
  const Result<YamlDocument> document = read_yaml(path);
  return document.ok() ? to_plan_file(*document) : document.error();
}

}  // namespace spillway
