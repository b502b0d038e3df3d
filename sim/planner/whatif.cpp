#include "sim/planner/whatif.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/flags/check_flags.h"
#include "model/flags/flag_names.h"
#include "model/flags/known_flags.h"

namespace spillway {
namespace {

/// Values with commas between; a value that may hold commas itself is one.
std::vector<std::string> split_values(const KnownFlag& flag, std::string_view text) {
  const bool is_list = flag.type == FlagType::kText || flag.type == FlagType::kPairs ||
                       flag.type == FlagType::kEnumList;
  if (is_list) return {std::string(text)};
  std::vector<std::string> values;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    values.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return values;
    text.remove_prefix(comma + 1);
  }
}

/// Numbers that mean nothing below 1.
constexpr std::string_view kFromOne[] = {flag::kSlopFactor, flag::kAsyncComputes,
                                         flag::kCollectives};

std::string flags_that_decides_order() {
  std::string names;
  for (const KnownFlag& flag : known_flags())
    if (decides_order(flag.name)) names += (names.empty() ? "" : ", ") + std::string(flag.name);
  return names;
}

}  // namespace

FlagText to_flag_text(const FlagSettings& flags) {
  FlagText text;
  for (const auto& [name, value] : flags)
    text.uses.push_back({name, value, "--" + name + "=" + value});
  return text;
}

Result<FlagChoice> parse_flag_choice(const std::string& text, const FlagContext& context) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return usage_error("--flag " + spillway::quoted(text) + " is not NAME=VALUE",
                       "for example --flag " + std::string(flag::kPipelinedOffloading) + "=true");
  std::string name = text.substr(0, equals);
  if (name.starts_with("--")) name.erase(0, 2);
  const std::string_view all = std::string_view(text).substr(equals + 1);
  const KnownFlag* const flag = find_known_flag(name);
  FlagChoice choice{name,
                    flag == nullptr ? std::vector{std::string(all)} : split_values(*flag, all)};
  for (const std::string& value : choice.values) {
    for (const Diagnostic& finding : check_flags(to_flag_text({{name, value}}), context))
      if (finding.severity == Severity::kError)
        return usage_error("--flag: " + finding.what, finding.advice);
  }
  if (!decides_order(name))
    return usage_error("what --flag " + name + " does cannot be simulated",
                       "these can: " + flags_that_decides_order());
  if (std::ranges::find(kFromOne, name) != std::end(kFromOne))
    for (const std::string& value : choice.values)
      if (parse_flag_integer(value).value_or(1) < 1)
        return usage_error(fmt::format("--flag {}={} cannot be simulated", name, value),
                           "it begins at 1");
  return choice;
}

Result<std::vector<FlagSettings>> combine(const std::vector<FlagChoice>& choices) {
  std::vector<FlagSettings> cases = {{}};
  for (const FlagChoice& choice : choices) {
    if (cases.front().contains(choice.name))
      return usage_error("--flag " + choice.name + " stands there twice",
                         "values to compare have commas between: --flag " + choice.name + "=1,2");
    std::vector<FlagSettings> longer;
    for (const FlagSettings& so_far : cases)
      for (const std::string& value : choice.values) {
        longer.push_back(so_far);
        longer.back()[choice.name] = value;
      }
    cases = std::move(longer);
    if (cases.size() > kMostCases)
      return usage_error(fmt::format("these are more than {} cases", kMostCases),
                         "give fewer values");
  }
  if (!choices.empty()) cases.insert(cases.begin(), FlagSettings());
  return cases;
}

}  // namespace spillway
