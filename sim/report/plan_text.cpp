// A plan for a person: the text of PlanReport and of its explanations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/format.h"
#include "sim/report/anchor_text.h"
#include "sim/report/case_text.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/exposed_text.h"
#include "sim/report/origin_text.h"
#include "sim/report/plan_flags_text.h"
#include "sim/report/plan_report.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

/// Enough to see what the policy leaves exposed; `simulate` shows more.
constexpr std::size_t kExposedRows = 6;

/// Steps of planned programs against those that XLA compiled for the same policy: 3.6 % at worst
/// (docs/whatif.md, examples/jax), rounded up.
constexpr double kModelError = 0.05;

/// Baselines of one policy: the first's name, and those of the others.
struct BaselineRow {
  const NamedCase* baseline = nullptr;
  std::vector<std::string> others;
};

std::vector<BaselineRow> distinct(const std::vector<NamedCase>& baselines) {
  std::vector<BaselineRow> rows;
  for (const NamedCase& baseline : baselines) {
    const auto same = std::ranges::find_if(rows, [&baseline](const BaselineRow& row) {
      return row.baseline->result.policy == baseline.result.policy;
    });
    if (same == rows.end())
      rows.push_back({&baseline, {}});
    else
      same->others.push_back(baseline.name);
  }
  return rows;
}

std::string cases_text(const PlanReport& report) {
  TextTable table(case_heads("policy"));
  const auto policy = [&](const PolicyCase& c) {
    return policy_text(report.plan.handles, c.policy);
  };
  if (report.plan.ranked)
    table.add(case_row(report.plan.fits ? "best" : "closest", report.plan.best,
                       policy(report.plan.best)));
  if (report.plan.by_layer)
    table.add(
        case_row("by layer", report.plan.by_layer->outcome,
                 policy_text(report.plan.by_layer->handles, report.plan.by_layer->outcome.policy)));
  for (std::size_t k = 0; k < report.plan.alternatives.size(); ++k)
    table.add(case_row("next " + std::to_string(k + 1), report.plan.alternatives[k],
                       policy(report.plan.alternatives[k])));
  std::string same;
  for (const BaselineRow& row : distinct(report.plan.baselines)) {
    table.add(case_row(row.baseline->name, row.baseline->result, policy(row.baseline->result)));
    if (!row.others.empty())
      same += fmt::format("{}{} = {}", same.empty() ? "The same: " : "; ", row.baseline->name,
                          fmt::join(row.others, " = "));
  }
  return table.text() + (same.empty() ? "" : same + ".\n");
}

std::string settings_text(const std::string& title, const std::vector<Setting>& settings,
                          const std::string& prefix, const std::string& joint) {
  if (settings.empty()) return "";
  TextTable table({title, ""});
  for (const Setting& s : settings) table.add({prefix + s.name + joint + s.value, s.why});
  return table.text(0) + "\n";
}

/// Lines with two blanks in front; empty ones stay empty.
std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    text += (lines[at] == '\n' ? "" : "  ") + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string why_lines(const PlanReport& report) {
  TextTable table({"Why", "", ""});
  for (const Reason& reason : report.plan.reasons)
    for (const std::string& line : reason.lines) {
      const bool is_first = &line == &reason.lines.front();
      table.add({is_first ? reason.handle : "", is_first ? std::string(name_of(reason.choice)) : "",
                 line});
    }
  std::string kept;
  for (const Reason& reason : report.plan.reasons)
    if (reason.keeps_in_less) kept += (kept.empty() ? "" : ", ") + reason.handle;
  if (kept.empty()) return table.text(0);
  return table.text(0) + "Keeping " + kept +
         ": less HBM and more time, since XLA orders the whole step anew and then hides other "
         "copies "
         "and gathers.\n";
}

/// Whole as long as a person reads the digits.
std::string count_text(double count) {
  return count < 1e7 ? fmt::format("{:.0f}", count) : fmt::format("{:.3g}", count);
}

/// Of a plan that does not fit, what `best` is.
std::string closest_text(const PlanResult& plan) {
  const Bytes least_hbm =
      std::ranges::min_element(plan.pareto, {}, &PolicyCase::peak_device)->peak_device;
  return fmt::format(
      "None of {} policies {}, {} simulated. {} misses {} in all: it needs {} of HBM (a "
      "fraction of {:.2f}) and {} of the host. The least HBM that any simulated needs is {}.",
      count_text(plan.policies), plan.proven ? "fits" : "was found to fit", plan.simulated,
      plan.proven ? "The closest" : "The closest found", format_bytes(plan.best.missed),
      format_bytes(plan.best.peak_device), plan.best.fit.smallest_fraction,
      format_bytes(plan.best.host), format_bytes(least_hbm));
}

std::string bound_text(const PlanResult& plan) {
  if (!plan.fits) return closest_text(plan);
  const bool all_simulated = static_cast<double>(plan.simulated) >= plan.policies;
  if (plan.proven)
    return fmt::format(
        "Best of all {} policies: none of the others is faster and fits{}.",
        count_text(plan.policies),
        all_simulated ? ""
                      : fmt::format(" ({} simulated, bounds leave out the rest)", plan.simulated));
  return fmt::format(
      "Best of {} policies simulated, of {}; none of the others that fits is faster than {} (gap "
      "{:.1f} %).",
      plan.simulated, count_text(plan.policies), format_seconds(plan.lower_bound), plan.gap * 100);
}

/// The program as it was compiled; null when that is no row of the plan.
const PolicyCase* as_compiled(const PlanResult& plan) {
  const Policy compiled = compiled_policy(plan.handles);
  for (const NamedCase& baseline : plan.baselines)
    if (baseline.result.policy == compiled) return &baseline.result;
  return nullptr;
}

std::string fit_phrase(const PolicyCase& c) {
  return fmt::format("{} of HBM, {} of host memory, about {} a step", format_bytes(c.peak_device),
                     format_bytes(c.host), format_seconds(c.step));
}

/// Whether there is a sidecar that names nothing of the program, although it saves something.
bool has_foreign_names(const PlanReport& report) {
  return report.has_names && !report.unmatched.empty() &&
         std::ranges::none_of(report.plan.handles, is_name);
}

/// The answer in a sentence or two, before anything else.
std::string verdict(const PlanReport& report) {
  const PlanResult& plan = report.plan;
  const PolicyCase* const compiled = as_compiled(plan);
  std::string text;
  if (has_foreign_names(report))
    text +=
        "No name of the sidecar fits a residual of this program: it is another program's, or what "
        "it names is not saved. Only state is decided here.\n";
  if (compiled)
    text += compiled->fit.fits ? "Fits as compiled: " + fit_phrase(*compiled) + ".\n"
                               : "Does not fit as compiled: " + fit_text(*compiled) + ".\n";
  if (!plan.fits)
    return text + fmt::format("NOTHING FITS. The closest{}: {}: {}; {}.\n",
                              plan.proven ? "" : " found",
                              policy_text(plan.handles, plan.best.policy), fit_phrase(plan.best),
                              fit_text(plan.best));
  if (compiled && plan.best.policy == compiled->policy)
    return text + "Nothing faster was found: leave it as it is.\n";
  text +=
      "Best: " + policy_text(plan.handles, plan.best.policy) + ": " + fit_phrase(plan.best) + ".\n";
  if (!compiled || !compiled->fit.fits) return text;
  const double gain = (compiled->step - plan.best.step).value() / compiled->step.value();
  if (gain < kModelError)
    text += fmt::format(
        "That is {:.1f} % faster than as compiled, less than the model is sure of: leaving it as "
        "it "
        "is is as good.\n",
        100 * gain);
  return text;
}

std::string split_line(const PlanResult& plan) {
  if (!plan.split) return "";
  const LayerSplit& split = *plan.split;
  return fmt::format(
      "If you split the scan: {} {} in {} of {} layers, about {} a step, {} of HBM, {} on the host "
      "(interpolated).\n",
      name_of(split.choice), split.handle, split.layers, split.of_layers,
      format_seconds(split.step), format_bytes(split.peak_device), format_bytes(split.host));
}

std::string by_layer_line(const PlanResult& plan) {
  if (!plan.by_layer) return "";
  const LayeredPlan& layered = *plan.by_layer;
  return fmt::format(
      "By layer: {} {} in {} of {} layers ({}), {} a step less ({} more simulated). Each layer's "
      "jax.checkpoint takes a policy of its own.\n",
      name_of(layered.choice), layered.handle, layered.layers.size(), layered.of_layers,
      layers_text(layered.layers).substr(1), format_seconds(plan.best.step - layered.outcome.step),
      layered.simulated);
}

std::string unnamed_lines(const PlanReport& report) {
  std::string text;
  for (const std::string& unnamed : report.unnamed)
    text += "Fixed, since it has no name: " + unnamed + "\n";
  return text;
}

/// What else is known of the program as compiled; errors stand on top.
std::string warning_lines(const PlanReport& report) {
  std::string text;
  for (const Diagnostic& diagnostic : report.diagnostics)
    if (diagnostic.severity != Severity::kError)
      text += fmt::format("Warning: [{}] {}\n", diagnostic.code, diagnostic.message());
  return text;
}

std::string pgle_lines(const PlanReport& report) {
  if (!report.pgle) return "";
  const PgleReport& pgle = *report.pgle;
  std::string text = fmt::format(
      "Profile for XLA's scheduler, {}: {} costs, {} copies across the "
      "host link.\n  {}.\n",
      pgle.path, pgle.costs, pgle.host_copies, pgle.advice.text);
  for (const Setting& flag : pgle.advice.flags)
    text += fmt::format("  --{}={}\n", flag.name, flag.value);
  return text +
         "  It has the names of this very program: compile the same source with the same "
         "flags and XLA. What XLA then made of it, `spillway simulate` and `inspect` say of "
         "the new dump.\n";
}

std::string assumed_text(const PlanReport& report) {
  std::string text;
  for (const std::string& assumption : report.best_run.assumptions)
    text += "Assumed: " + assumption + "\n";
  if (report.budget.pool_is_stated)
    text +=
        "Assumed: XLA orders with the pool as its aim, as on a live device: under another limit a "
        "policy may need more HBM or less, and more time or less\n";
  else
    text += fmt::format("Assumed: {}\n", kAimsAheadOfTime);
  if (report.plan.order.scheduler.goes_by_profile())
    text += fmt::format("Assumed: {}\n", kProfileStandsIn);
  if (report.jaxlib_is_assumed)
    text += fmt::format("Assumed: jaxlib {}, for want of --jaxlib\n", to_string(report.jaxlib));
  return text;
}

/// Of a program without handles, its one policy.
std::string only_case_text(const PlanReport& report) {
  const PolicyCase& only = report.plan.best;
  const bool foreign_names = !report.unnamed.empty() && !report.unmatched.empty();
  return fmt::format(
             "Nothing to decide: {}.\nAs compiled: {} a step, {} of HBM, {} on the host: {}\n",
             foreign_names
                 ? "no name of the sidecar fits a residual of this program"
                 : "the program holds no stack of residuals that a policy could move "
                   "(layers not scanned, or nothing saved); what it copies stays as it is",
             format_seconds(only.step), format_bytes(only.peak_device), format_bytes(only.host),
             fit_text(only)) +
         (report.advice.flags.empty() ? "" : "\n" + flags_text(report)) + pgle_lines(report) +
         unknown_text(report.best_run) + unnamed_lines(report) + warning_lines(report) +
         assumed_text(report);
}

/// What to set, for a plan that can be carried out.
std::string settings_text(const PlanReport& report) {
  const Advice& advice = report.advice;
  std::string text = flags_text(report);
  text += settings_text("Environment", advice.environment, "", "=");
  text += settings_text("MaxText", advice.maxtext, "", ": ");
  if (!advice.jax_policy.empty()) text += "JAX\n  " + advice.jax_policy + "\n\n";
  if (!advice.jax_state.empty()) text += "JAX, state\n" + indented(advice.jax_state) + "\n";
  return text;
}

}  // namespace

std::string render_text(const PlanReport& report) {
  const PlanResult& plan = report.plan;
  std::string text = fmt::format("{} on {}\n{}\n", report.program_name, report.hardware,
                                 origin_text(report.path, report.modules_in_folder));
  text += budget_text(report.budget) + "\n";
  if (report.anchor) text += anchor_text(*report.anchor) + "\n";
  if (!plan.ranked) return text + cases_text(report);
  for (const Diagnostic& diagnostic : report.diagnostics)
    if (diagnostic.severity == Severity::kError) text += to_text(diagnostic) + "\n";
  if (plan.handles.empty())
    return text + only_case_text(report) + answers_text(plan, report.answers) +
           user_flags_tail(report);
  text += verdict(report) + "\n";
  text += cases_text(report) + "\n" + bound_text(plan) + "\n" + split_line(plan) +
          by_layer_line(plan) + "\n" + why_lines(report) + "\n";
  text += answers_text(plan, report.answers);
  if (plan.fits)
    text += settings_text(report);
  else if (flags_make_it_fit(report))
    text += flags_text(report);
  if (report.pgle) text += pgle_lines(report) + "\n";
  text += user_flags_text(report);
  text += exposed_text(report.planned, report.best_run, kExposedRows);
  text += unknown_text(report.best_run);
  text += unnamed_lines(report);
  if (!plan.best.fit.beside_reserve && plan.best.fit.smallest_fraction <= 1)
    text += fmt::format(
        "Warning: a pool of {:.2f} leaves less than the {} that context, communication and "
        "libraries need beside it.\n",
        plan.best.fit.smallest_fraction, format_bytes(report.budget.reserve));
  for (const std::string& objection : report.objections)
    text += "Warning: the check of the plan objects: " + objection + "\n";
  text += warning_lines(report);
  if (!report.has_names && std::ranges::any_of(plan.handles, is_name))
    text +=
        "Residuals are numbered (r0, or u0 where layers are not scanned); with --names they have "
        "names, and what to set is printed.\n";
  text += fmt::format(
      "Steps are simulated, in the order that XLA would make; against programs that it compiled "
      "they were off by up to {:.0f} %.\n",
      100 * kModelError);
  return text + assumed_text(report);
}

std::string render_text(const Explanation& e) {
  if (!e.choice) return fmt::format("{}: {}\n", e.name, e.text);
  // State has none.
  const std::string residuals =
      e.residuals > 0 ? fmt::format(", {} residual(s)", e.residuals) : std::string();
  return fmt::format("{}: {}, {} on one device{}\n  {}\n", e.name, name_of(*e.choice),
                     format_bytes(e.bytes), residuals, e.text);
}

}  // namespace spillway
