#include "sim/report/plan_flags_text.h"

#include <fmt/format.h>

#include "model/base/format.h"
#include "sim/report/diagnostic_text.h"

namespace spillway {
namespace {

std::string effect_text(const Setting& flag) {
  if (!flag.effect) return "not simulated";
  const auto signed_text = [](auto difference, auto format) {
    using Quantity = decltype(difference);
    return difference < Quantity(0) ? "-" + format(Quantity(0) - difference)
                                    : "+" + format(difference);
  };
  return signed_text(flag.effect->step, format_seconds) + " a step, " +
         signed_text(flag.effect->peak_device, format_bytes) + " of HBM";
}

}  // namespace

std::string flags_text(const PlanReport& report) {
  if (!report.no_flags_because.empty())
    return "XLA flags\n  none: " + report.no_flags_because + "\n\n";
  if (report.advice.flags.empty()) return "";
  std::string text = "XLA flags for jaxlib " + to_string(report.jaxlib) + "\n";
  for (const Setting& flag : report.advice.flags)
    text += fmt::format("  --{}={}  ({})\n", flag.name, flag.value, effect_text(flag)) +
            wrapped(flag.why, "      ");
  return text + "\n";
}

std::string user_flags_text(const PlanReport& report) {
  if (!report.user_flags) return "";
  std::string text = "Your XLA flags on jaxlib " + to_string(report.jaxlib) + "\n";
  for (const Diagnostic& finding : *report.user_flags) text += to_text(finding);
  if (report.user_flags->empty()) text += "  nothing odd\n";
  return text + "\n";
}

std::string user_flags_tail(const PlanReport& report) {
  std::string text = user_flags_text(report);
  if (!text.empty()) text.pop_back();
  return text.empty() ? "" : "\n" + text;
}

}  // namespace spillway
