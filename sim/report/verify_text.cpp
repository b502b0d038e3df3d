// What `verify` answers, for a person.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.h"
#include "sim/report/table.h"
#include "sim/report/verify_report.h"

namespace spillway {
namespace {

constexpr std::size_t kRows = 6;

std::string value_text(const VerifiedFigure& figure, double value) {
  switch (figure.unit) {
    case VerifiedFigure::Unit::kBytes:
      return format_bytes(Bytes(static_cast<std::int64_t>(value)));
    case VerifiedFigure::Unit::kFlops:
      return format_flops(Flops(value));
    case VerifiedFigure::Unit::kSeconds:
      return format_seconds(Seconds(value));
  }
  return "";
}

std::string difference_text(const VerifiedFigure& figure) {
  const double difference = figure.difference();
  if (difference == 0) return "none";
  std::string text = (difference > 0 ? "+" : "-") + value_text(figure, std::abs(difference));
  if (figure.predicted != 0)
    text += fmt::format(" ({:+.2f} %)", 100 * figure.relative_difference());
  return text;
}

std::string allowed_text(const VerifiedFigure& figure) {
  if (!figure.tolerance) return "";
  return *figure.tolerance == 0 ? "exact" : fmt::format("{:g} %", 100 * *figure.tolerance);
}

std::string figures_text(const VerifyReport& report) {
  TextTable table({"", ">predicted", ">compiled", ">difference", ">allowed", ""});
  for (const VerifiedFigure& figure : report.figures)
    table.add({figure.name, value_text(figure, figure.predicted),
               value_text(figure, figure.compiled), difference_text(figure), allowed_text(figure),
               figure.agrees() ? "" : "differs"});
  return table.text(0);
}

std::string choice_text(const std::optional<Choice>& choice) {
  return choice ? std::string(name_of(*choice)) : "not in it";
}

std::string names_text(const std::vector<NotDone>& values) {
  TextTable table({"name", ">layers", ">total", "plan", "compiled"});
  for (const NotDone& value : values)
    table.add(
        {value.label, std::to_string(value.layers), format_bytes(value.bytes),
         choice_text(value.planned),
         std::string(name_of(value.found)) + (value.growth == Bytes(0) ? "" : ", other size")});
  return "Saved for the backward pass, and not as planned\n" + table.text();
}

std::string causes_text(const std::vector<Cause>& causes) {
  std::string text = "Why\n";
  std::string_view said;  // advice once, for several names in a row
  for (const Cause& cause : causes) {
    text += fmt::format("  [{}] {}\n", cause.code, cause.what);
    if (!cause.advice.empty() && cause.advice != said) text += "    → " + cause.advice + "\n";
    said = cause.advice;
  }
  return text;
}

std::string items_text(const std::string& title, const std::vector<Item>& items) {
  if (items.empty()) return "";
  TextTable table({">bytes", ">times", "shape", "name", "JAX operation"});
  for (std::size_t i = 0; i < std::min(kRows, items.size()); ++i)
    table.add({format_bytes(items[i].bytes), format_count(items[i].count),
               items[i].shape.substr(0, 40), items[i].name, items[i].origin.substr(0, 60)});
  std::string text = "\n" + title + ", largest first\n" + table.text();
  if (items.size() > kRows) text += fmt::format("  … {} more\n", items.size() - kRows);
  return text;
}

std::string excess_text(const std::string& where, const Excess& excess) {
  return items_text("Only compiled: " + where, excess.second) +
         items_text("Only predicted: " + where, excess.first);
}

std::string policy_text(const std::vector<std::pair<std::string, Choice>>& policy) {
  std::string text;
  for (const Choice choice : {Choice::kOffload, Choice::kRecompute, Choice::kKeep}) {
    std::string list;
    for (const auto& [name, chosen] : policy)
      if (chosen == choice) list += " " + name;
    if (!list.empty()) text += (text.empty() ? "" : "; ") + std::string(name_of(choice)) + list;
  }
  return text;
}

std::string verdict(const VerifyReport& report) {
  if (report.agrees())
    return report.not_done.empty()
               ? "As planned: every name is where the plan has it, and every figure is within what "
                 "is allowed.\n"
               : "Every figure is within what is allowed, but not every name is where the plan has "
                 "it.\n";
  std::string list;
  for (const VerifiedFigure& figure : report.figures)
    if (!figure.agrees()) list += (list.empty() ? "" : ", ") + std::string(figure.name);
  return "NOT AS PLANNED: " + list + ".\n";
}

}  // namespace

std::string render_text(const VerifyReport& report) {
  std::string text =
      fmt::format("{} on {}\nplan      {}: {}\ncompiled  {}\n\n", report.program_name,
                  report.hardware, report.plan_path, policy_text(report.policy), report.path);
  text += verdict(report) + "\n" + figures_text(report);
  if (!report.not_done.empty()) text += "\n" + names_text(report.not_done);
  if (!report.causes.empty()) text += "\n" + causes_text(report.causes);
  text += excess_text("in HBM at the peak", report.buffers);
  text += excess_text("in pinned host memory", report.host_arrays);
  text += excess_text("offloads of a step", report.offloads);
  text += excess_text("reloads of a step", report.reloads);
  text += report.is_other_machine
              ? "\nThe compiled step is simulated on another machine than the planned one: times "
                "are not compared.\n"
              : "\nBoth steps are simulated on the plan's machine: memory, copies and products are "
                "the compiled program's own, times are the model's.\n";
  for (const std::string& assumption : report.assumptions) text += "Assumed: " + assumption + "\n";
  return text;
}

}  // namespace spillway
