#include "sim/report/flags_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/spelling.h"
#include "model/flags/flag_names.h"
#include "model/flags/flag_table.h"
#include "model/flags/known_flags.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kIndent = "      ";

FlagsReport::Row row_of(const KnownFlag& flag, const JaxlibVersion& version) {
  FlagsReport::Row row;
  row.name = flag.name;
  row.life = life_of(flag);
  row.in_version = knows(flag, version) == Knows::kYes;
  row.values = name_of(flag.type);
  const FlagInfo* const info = find_flag(flag.name);
  if (info == nullptr) return row;
  row.topic = info->topic;
  row.is_stable = info->is_stable;
  row.fallback = default_of(*info, version);
  if (!info->values.empty()) row.values = info->values;
  row.meaning = info->meaning;
  row.cost = info->cost;
  return row;
}

Error unknown_name(const std::string& name) {
  constexpr std::size_t kLettersAMistake = 6;
  std::vector<std::string> names;
  for (const KnownFlag& flag : known_flags()) names.emplace_back(flag.name);
  const std::string_view nearest = nearest_name(name, names, kLettersAMistake);
  return {ErrorKind::kUsage,
          "no jaxlib from " + to_string(oldest_probed()) + " to " + to_string(newest_probed()) +
              " knows a flag " + spillway::quoted(name) + ", or one with that in its name",
          {},
          "",
          nearest.empty() ? "spillway flags lists those that matter here"
                          : "did you mean '" + std::string(nearest) + "'?"};
}

/// The flag of that name; else all that have it in theirs, those of the version first.
std::vector<const KnownFlag*> find_flags(const std::string& written, const JaxlibVersion& version) {
  const std::string name = written.starts_with("--") ? written.substr(2) : written;
  if (const KnownFlag* const flag = find_known_flag(name)) return {flag};
  std::vector<const KnownFlag*> found;
  for (const KnownFlag& flag : known_flags())
    if (!name.empty() && flag.name.find(name) != std::string_view::npos) found.push_back(&flag);
  std::ranges::stable_partition(
      found, [&](const KnownFlag* flag) { return knows(*flag, version) == Knows::kYes; });
  return found;
}

std::string default_text(const FlagsReport::Row& row) {
  return row.fallback.empty() ? "\"\"" : row.fallback;
}

std::string row_text(const FlagsReport::Row& row) {
  std::string text = fmt::format("  --{}", row.name);
  if (row.topic.empty()) {
    text += fmt::format("\n{}takes {}; {}\n", kIndent, row.values, row.life);
    if (const GoneFlag* gone = find_gone_flag(row.name))
      text += wrapped(fmt::format("In its place: {}", gone->instead), kIndent);
    return text;
  }
  text += fmt::format("\n{}default {}, {}, {}\n", kIndent, default_text(row),
                      row.is_stable ? "stable" : "experimental", row.life);
  text += wrapped(row.meaning, kIndent);
  if (row.cost != "none") text += wrapped("Cost: " + std::string(row.cost), kIndent);
  return text;
}

std::string environment_text() {
  std::string text = "environment\n";
  for (const EnvironmentInfo& variable : environment_table()) {
    text += fmt::format("  {}\n", variable.name);
    if (!variable.fallback.empty())
      text += fmt::format("{}default {}\n", kIndent, variable.fallback);
    text += wrapped(variable.meaning, kIndent);
    text += wrapped("Cost: " + std::string(variable.cost), kIndent);
  }
  return text;
}

/// By which costs, as the end of a sentence.
std::string costs_text(const SchedulerChoice& scheduler, const std::string& hardware) {
  if (!scheduler.rest && scheduler.costs != BelievedCosts::kProfile)
    return "costs that depend on the device: say --hw";
  std::string text(name_of(scheduler.costs.value_or(BelievedCosts::kTShirt)));
  if (scheduler.costs == BelievedCosts::kProfile && scheduler.rest)
    text += ", and " + std::string(name_of(*scheduler.rest)) + " where it says nothing";
  if (scheduler.lacks_table)
    text += fmt::format(" (it has no table of matrix products for {})", hardware);
  return text;
}

std::string scheduler_text(const FlagsReport& report) {
  const auto& settings = report.check->settings;
  if (!settings) return "Whether XLA hides latencies depends on the device: say --hw.\n";
  if (!settings->scheduler.hides_latencies)
    return "With these flags XLA does not hide latencies.\n";
  std::string text = fmt::format("With these flags XLA hides latencies, by {}.\n",
                                 costs_text(settings->scheduler, report.hardware));
  text += fmt::format("In flight: {} asynchronous copies or kernels, {} collectives",
                      settings->async_computes, settings->collectives);
  if (settings->fencing_threshold_bytes >= 0)
    text += fmt::format("; fencing at {} bytes with {} windows of slack",
                        settings->fencing_threshold_bytes, settings->fencing_slack_windows);
  return text + ".\n";
}

std::string check_text(const FlagsReport& report) {
  const FlagsReport::Check& check = *report.check;
  std::string text;
  for (const Diagnostic& finding : check.findings) text += to_text(finding) + "\n";
  if (check.is_empty)
    text += "Nothing to check: no flag is set.\n";
  else if (check.findings.empty())
    text += "Nothing odd.\n";
  return text + (has_error(check.findings) ? "XLA would not run with these flags.\n"
                                           : scheduler_text(report));
}

Json rows_json(const std::vector<FlagsReport::Row>& rows) {
  Json json = Json::array();
  for (const FlagsReport::Row& row : rows)
    json.push_back({{"name", row.name},
                    {"topic", row.topic},
                    {"versions", row.life},
                    {"in_version", row.in_version},
                    {"stable", row.is_stable},
                    {"default", row.topic.empty() ? Json(nullptr) : Json(row.fallback)},
                    {"takes", row.values},
                    {"meaning", row.meaning},
                    {"cost", row.cost}});
  return json;
}

Json environment_json() {
  Json json = Json::array();
  for (const EnvironmentInfo& variable : environment_table())
    json.push_back({{"name", variable.name},
                    {"default", variable.fallback},
                    {"meaning", variable.meaning},
                    {"cost", variable.cost}});
  return json;
}

Json check_json(const FlagsReport::Check& check) {
  Json json{{"text", check.text}, {"runs", !has_error(check.findings)}};
  json["findings"] = Json::array();
  for (const Diagnostic& d : check.findings)
    json["findings"].push_back(
        {{"code", d.code}, {"severity", name_of(d.severity)}, {"message", d.message()}});
  const auto& settings = check.settings;
  json["hides_latencies"] = settings ? Json(settings->scheduler.hides_latencies) : Json(nullptr);
  const bool has_costs = settings && settings->scheduler.hides_latencies;
  const auto costs = has_costs ? settings->scheduler.costs : std::nullopt;
  json["estimator"] = costs ? Json(name_of(*costs)) : Json(nullptr);
  json["lacks_table"] = settings && settings->scheduler.lacks_table;
  return json;
}

}  // namespace

Result<FlagsReport> make_flags_report(const FlagContext& context, const std::string& hardware,
                                      const std::vector<std::string>& names) {
  if (auto wrong = check_version(context.jaxlib)) return *wrong;
  FlagsReport report;
  report.context = context;
  report.hardware = hardware;
  report.has_environment = names.empty();
  for (const std::string& name : names) {
    const auto found = find_flags(name, context.jaxlib);
    if (found.empty()) return unknown_name(name);
    if (found.size() > 1) report.searched.push_back({name, found.size()});
    for (const KnownFlag* flag : found) report.rows.push_back(row_of(*flag, context.jaxlib));
  }
  if (!names.empty()) return report;
  for (const FlagInfo& info : flag_table()) {
    FlagsReport::Row row = row_of(*find_known_flag(info.name), context.jaxlib);
    if (row.in_version) report.rows.push_back(std::move(row));
  }
  return report;
}

Result<FlagsReport> make_flags_check(const FlagContext& context, const std::string& hardware,
                                     const std::string& text, const FlagText& flags) {
  if (auto wrong = check_version(context.jaxlib)) return *wrong;
  FlagsReport report;
  report.context = context;
  report.hardware = hardware;
  FlagSettings settings = settle(flags);
  if (flags.profile_fault) settings.erase(std::string(flag::kProfile));  // XLA goes on without it
  report.check =
      FlagsReport::Check{text, flags.uses.empty() && flags.unread.empty(),
                         check_flags(flags, context), schedule_settings(settings, context)};
  return report;
}

std::string render_text(const FlagsReport& report) {
  std::string text = fmt::format("XLA flags of jaxlib {}", to_string(report.context.jaxlib));
  if (!report.hardware.empty()) text += " on " + report.hardware;
  text += "\n\n";
  if (report.check) return text + check_text(report);
  for (const auto& [name, count] : report.searched)
    text += fmt::format("No flag is called {}; {} have it in their names.\n\n",
                        spillway::quoted(name), count);
  std::string topic;
  for (const FlagsReport::Row& row : report.rows) {
    if (row.topic != topic) text += row.topic + "\n";
    topic = row.topic;
    text += row_text(row);
    if (row.name == flag::kLatencyHiding && !report.hardware.empty()) {
      const auto unset = hides_latencies_unset(report.context);
      text += fmt::format("{}unset on {}: {}\n", kIndent, report.hardware,
                          !unset   ? "not known"
                          : *unset ? "on"
                                   : "off");
    }
  }
  return report.has_environment ? text + "\n" + environment_text() : text;
}

std::string render_json(const FlagsReport& report) {
  Json json{{"schema", "spillway.flags/1"}, {"jaxlib", to_string(report.context.jaxlib)}};
  json["hardware"] = report.hardware.empty() ? Json(nullptr) : Json(report.hardware);
  if (report.check) {
    json["check"] = check_json(*report.check);
  } else {
    json["flags"] = rows_json(report.rows);
    if (report.has_environment) json["environment"] = environment_json();
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
