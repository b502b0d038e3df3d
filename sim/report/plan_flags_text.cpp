#include "sim/report/plan_flags_text.h"

#include <fmt/format.h>

#include "model/base/format.h"
#include "sim/report/case_text.h"
#include "sim/report/diagnostic_text.h"

namespace spillway {
namespace {

std::string effect_text(const std::optional<FlagEffect>& effect) {
  if (!effect) return "not simulated";
  return signed_text(effect->step, format_seconds) + " a step, " +
         signed_text(effect->peak_device, format_bytes) + " of HBM";
}

/// What the flags come to together; empty where none was simulated.
std::string together_text(const FlagSearch& search) {
  if (search.flags.empty()) return "";
  return fmt::format("  With {}: {} a step, {} of HBM, {}.\n",
                     search.flags.size() == 1 ? "the first" : "those simulated",
                     format_seconds(search.with_flags->step),
                     format_bytes(search.with_flags->peak_device), fit_text(*search.with_flags));
}

/// The profile is of a program that is still to be compiled.
std::string profile_text(const PlanReport& report) {
  const FlagSearch& search = report.flag_search;
  if (!search.with_profile) return "";
  const PolicyCase& with = *search.with_profile;
  const FlagEffect effect{with.step - search.with_flags->step,
                          with.peak_device - search.with_flags->peak_device};
  return fmt::format("  and a profile of the step's costs ({}, {})\n", effect_text(effect),
                     fit_text(with)) +
         wrapped(fmt::format("XLA then hides what takes long instead of what it believes to. "
                             "Compile the step with the above, and its dump tells: spillway plan "
                             "DUMP --hw {} --pgle step.pbtxt",
                             report.hardware),
                 "      ");
}

}  // namespace

void add_simulated_flags(PlanReport& report, const Evaluator& evaluator) {
  if (!report.no_flags_because.empty()) return;
  FlagSearch search =
      search_flags(evaluator, report.plan.best.policy, report.user_settings, report.flag_context);
  const bool helps = report.plan.fits || (search.with_flags && search.with_flags->fit.fits);
  if (!helps) {
    search.flags.clear();
    search.with_profile.reset();
  }
  std::vector<Setting>& flags = report.advice.flags;
  flags.insert(flags.begin(), search.flags.begin(), search.flags.end());
  report.flag_search = std::move(search);
}

bool flags_make_it_fit(const PlanReport& report) {
  return !report.plan.fits && !report.flag_search.flags.empty();
}

std::string flags_text(const PlanReport& report) {
  if (!report.no_flags_because.empty())
    return "XLA flags\n  none: " + report.no_flags_because + "\n\n";
  const std::string& untried = report.flag_search.not_tried_because;
  if (report.advice.flags.empty() && untried.empty() && !report.flag_search.with_profile) return "";
  std::string text = "XLA flags for jaxlib " + to_string(report.jaxlib) + "\n";
  if (!untried.empty()) text += "  none that decide the order were tried: " + untried + "\n";
  for (const Setting& flag : report.advice.flags)
    text += fmt::format("  --{}={}  ({})\n", flag.name, flag.value, effect_text(flag.effect)) +
            wrapped(flag.why, "      ");
  text += together_text(report.flag_search) + profile_text(report);
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
