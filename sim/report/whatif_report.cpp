#include "sim/report/whatif_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/format.h"
#include "sim/report/anchor_text.h"
#include "sim/report/case_text.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/origin_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

std::string flags_text(const FlagSettings& flags) {
  std::string text;
  for (const auto& [name, value] : flags)
    text += fmt::format("{}--{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

/// "offload a b; recompute c --flag=value": what is not as compiled.
std::string asked_text(const std::vector<Handle>& handles, const WhatIfOutcome& outcome) {
  std::string text = changes_text(handles, outcome.what.policy);
  const std::string flags = flags_text(outcome.what.flags);
  return text + (text.empty() || flags.empty() ? "" : " ") + flags;
}

/// "+1.2 %" of the first case's step.
std::string change_text(const PolicyCase& c, const PolicyCase& reference) {
  return fmt::format("{:+.1f} %", 100 * (ratio(c.step, reference.step) - 1));
}

/// A whole number without a decimal point; null for as compiled.
Json size_json(const std::optional<double>& size) {
  if (!size) return nullptr;
  const auto whole = static_cast<std::int64_t>(*size);
  return static_cast<double>(whole) == *size ? Json(whole) : Json(*size);
}

Json case_json(const std::vector<Handle>& handles, const PolicyCase& c, const FlagSettings& flags,
               const StepSize& size) {
  Json policy = Json::object(), set = Json::object();
  visit_policy(handles, c.policy,
               [&](const std::string& name, std::string_view choice) { policy[name] = choice; });
  for (const auto& [name, value] : flags) set[name] = value;
  Json json{{"policy", policy},
            {"batch", size_json(size.batch)},
            {"seq", size_json(size.sequence)},
            {"accumulation", size.accumulation ? Json(*size.accumulation) : Json(nullptr)},
            {"flags", set}};
  visit_figures(c, [&](const char* name, auto value) { json[name] = value; });
  return json;
}

}  // namespace

std::string render_text(const WhatIfReport& report) {
  std::string text =
      fmt::format("{} on {}, jaxlib {}\n{}\n", report.program_name, report.hardware,
                  to_string(report.jaxlib), origin_text(report.path, report.modules_in_folder));
  text += budget_text(report.budget) + "\n";
  if (report.anchor) text += anchor_text(*report.anchor) + "\n";
  TextTable table(case_heads(report.again ? "what is set" : "flags"));
  table.add(case_row("as compiled", report.as_given, "in the order that the program has"));
  if (report.again) table.add(case_row("ordered again", *report.again, "to compare with"));
  const PolicyCase& reference = report.again ? *report.again : report.cases.front().result;
  for (const WhatIfOutcome& outcome : report.cases) {
    const bool compares = !report.again && &outcome == &report.cases.front();
    std::string name = size_text(outcome.what.size);
    std::string asked = asked_text(outcome.handles ? *outcome.handles : report.handles, outcome);
    if (name.empty()) {
      if (asked.empty()) asked = "nothing";
      name = compares            ? "no flag"
             : is_ranked(report) ? change_text(outcome.result, reference)
                                 : "a case";
      if (compares) asked = "ordered again, to compare with";
    }
    table.add(case_row(name, outcome.result, asked));
  }
  text += table.text() + "\n";
  for (const Diagnostic& finding : report.findings) text += to_text(finding) + "\n";
  text += fmt::format(
      "Orders are made again as XLA's schedulers make them{}. Copies already pipelined and fences "
      "already set by the flags of the compiled program stay.\n",
      is_ranked(report) ? "; compare those with each other" : "");
  for (const std::string& assumption : report.assumptions) text += "Assumed: " + assumption + "\n";
  if (report.jaxlib_is_assumed)
    text += fmt::format("Assumed: jaxlib {}, for want of --jaxlib\n", to_string(report.jaxlib));
  return text;
}

std::string render_json(const WhatIfReport& report) {
  Json json{{"schema", "spillway.whatif/1"}};
  json["program"] = {{"name", report.program_name}, {"path", report.path}};
  json["hardware"] = report.hardware;
  if (report.anchor) json["anchor"] = Json::parse(anchor_json(*report.anchor));
  json["jaxlib"] = to_string(report.jaxlib);
  if (report.shard)
    visit_label(*report.shard,
                [&json](const char* name, const auto& value) { json["shard"][name] = value; });
  json["as_compiled"] = case_json(report.handles, report.as_given, {}, {});
  if (report.again)
    json["as_compiled_ordered_again"] = case_json(report.handles, *report.again, {}, {});
  json["cases"] = Json::array();
  for (const WhatIfOutcome& outcome : report.cases)
    json["cases"].push_back(case_json(outcome.handles ? *outcome.handles : report.handles,
                                      outcome.result, outcome.what.flags, outcome.what.size));
  json["diagnostics"] = Json::array();
  for (const Diagnostic& d : report.findings)
    json["diagnostics"].push_back(
        {{"code", d.code}, {"severity", name_of(d.severity)}, {"message", d.message()}});
  json["assumptions"] = report.assumptions;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
