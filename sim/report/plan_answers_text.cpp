// The text of PlanAnswers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/format.h"
#include "model/hardware/units_text.h"
#include "sim/report/case_text.h"
#include "sim/report/plan_answers.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

std::string saved_text(Bytes saved) {
  return saved < Bytes(0) ? "raises it by " + format_bytes(Bytes(0) - saved) : format_bytes(saved);
}

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{:.1f} GB/s", rate.value() / 1e9);
}

std::string window_text(const Handle& handle) {
  if (handle.state == StateClass::kOptimizer) return "the update";
  if (handle.state || handle.residuals.empty()) return "the step";
  return "its loops";
}

/// Of a JAX operation's path.
std::string last_part(const std::string& op_name) { return op_name.substr(op_name.rfind('/') + 1); }

std::string moves_text(const PlanResult& plan, const PlanAnswers& answers) {
  if (answers.moves.empty()) return "";
  TextTable table({"Offloading", "moves a step", "saves at the peak", "adds", "link",
                   "beside kernels of", "", "link / kernels"});
  for (const MoveEffect& effect : answers.moves) {
    const Handle& handle = plan.handles[effect.handle];
    table.add({handle.name, format_bytes(effect.moved()), saved_text(effect.saved_at_peak),
               signed_text(effect.added, format_seconds), format_seconds(effect.link),
               window_text(handle), format_seconds(effect.window),
               fmt::format("{:.2f}", effect.load())});
  }
  return table.text(0);
}

std::string host_update_text(const PlanAnswers& answers) {
  if (!answers.host_update) return "";
  const HostUpdate& update = *answers.host_update;
  return fmt::format(
      "Updating the optimizer's state on the host instead: at least {} a step ({} for {} over the "
      "link, {} for {} of host memory at {}, {}), beside which nothing was hidden; what the CPU "
      "computes is not modelled, and 2 to 3 times as slow was reported.\n",
      format_seconds(update.total()), format_seconds(update.link),
      format_bytes(update.gradients_out + update.parameters_in), format_seconds(update.memory),
      format_bytes(update.host_traffic), rate_text(update.memory_rate),
      name_of(answers.host_memory_origin.kind));
}

std::string worth_text(const WorthSaving& row) {
  std::string text;
  for (const UnnamedValue& value : row.values)
    text += fmt::format("  {} of {}{}{}: {} a layer\n", value.shape, value.instruction,
                        value.source.empty() ? "" : ", " + value.source,
                        value.op_name.empty() ? "" : ", " + last_part(value.op_name),
                        format_bytes(value.bytes_per_layer));
  text += fmt::format(
      "    spares {} a step for {} ({} of kernels, {} of collectives, less {} to write and read "
      "it)",
      format_seconds(row.spared()), format_bytes(row.bytes), format_seconds(row.kernels),
      format_seconds(row.collectives), format_seconds(row.saving));
  if (!row.beside.empty())
    text += fmt::format("; made by the same kernel as {}, whose name has to stand there too",
                        fmt::join(row.beside, ", "));
  if (!row.with_names.empty())
    text += fmt::format("; with {} saved as well", fmt::join(row.with_names, ", "));
  if (row.simulated)
    text +=
        fmt::format("\n    simulated: {} a step{}, with at most {} of HBM",
                    signed_text(row.simulated->step - row.simulated->step_before, format_seconds),
                    row.instead_of.empty() ? "" : " against the plan",
                    format_bytes(row.simulated->peak_device));
  return text + "\n    not run again: " + fmt::format("{}\n", fmt::join(row.not_run_again, ", "));
}

std::string unnamed_text(const PlanAnswers& answers) {
  std::string text;
  for (std::size_t k = 0; k < answers.unnamed.size() && k < kUnnamedRows; ++k)
    text += (k == 0 ? "Worth a checkpoint_name, saved beside what the plan saves\n" : "") +
            worth_text(answers.unnamed[k]);
  for (std::size_t k = 0; k < answers.instead.size() && k < kUnnamedRows; ++k)
    text += fmt::format("Worth a checkpoint_name, saved instead of {}, which is then recomputed\n",
                        answers.instead[k].instead_of) +
            worth_text(answers.instead[k]);
  return text;
}

std::string sensitivity_text(const PlanResult& plan, const Sensitivity& sensitivity) {
  TextTable table({"Sensitivity", "-20 %", "-10 %", "+10 %", "+20 %", "another takes over"});
  for (const Knob knob : kKnobs) {
    std::vector<std::string> row = {std::string(name_of(knob))};
    for (const TurnedCase& turned : sensitivity.cases) {
      if (turned.knob != knob) continue;
      const bool same = turned.best == plan.best.policy;
      row.push_back(turned.best.empty() ? "nothing fits"
                                        : format_seconds(turned.step) + (same ? "" : " other"));
    }
    std::string switches;
    for (const Switch& change : sensitivity.switches)
      if (change.knob == knob)
        switches +=
            fmt::format("{}at {:.3f}: {}", switches.empty() ? "" : "; ", change.factor,
                        change.to.empty() ? "nothing fits" : policy_text(plan.handles, change.to));
    row.push_back(switches.empty() ? "none up to 20 %" : switches);
    table.add(std::move(row));
  }
  return table.text(0) + fmt::format(
                             "Asked of {} policies that the plan shows; no new search: what a "
                             "larger budget can bring, plan --hbm-limit says.\n",
                             sensitivity.policies_asked);
}

std::string confidence_text(const PlanResult& plan, const Confidence& sure) {
  std::string text =
      fmt::format("Step: {}, in eight of ten cases {} to {}. Out of memory: {:.1f} %.\n",
                  format_seconds(sure.middle), format_seconds(sure.low), format_seconds(sure.high),
                  sure.out_of_memory * 100);
  if (!sure.rival.empty())
    text += fmt::format("{} instead ({}, {}) is faster in {:.1f} % of cases.\n",
                        sure.rival_recomputes ? "Recomputing" : "The next best",
                        policy_text(plan.handles, sure.rival), format_seconds(sure.rival_step),
                        sure.loses * 100);
  const Doubts& doubts = sure.doubts;
  return text +
         fmt::format(
             "Assumed: standard deviations of {:.0f} % for kernels, {:.0f} % for the link ({}), "
             "{:.0f} % for each rewritten program's step and {:.0f} % for its peak, {:.0f} % "
             "jitter; "
             "{:.0f} % of the pool lost to holes.\n",
             doubts.kernels * 100, doubts.link * 100, doubts.link_because, doubts.rewrite * 100,
             doubts.memory * 100, doubts.jitter * 100, doubts.fragmentation * 100);
}

std::string needed_rate(const char* direction, const std::optional<BytesPerSecond>& rate,
                        BytesPerSecond has) {
  if (!rate)
    return fmt::format("  {}: not even {} times the {} that it has\n", direction, kMostLink,
                       rate_text(has));
  return fmt::format("  {}: {} (it has {})\n", direction, rate_text(*rate), rate_text(has));
}

std::string requirements_text(const PlanResult& plan, const Requirements& need) {
  std::string text = fmt::format(
      "The plan needs {} of HBM (a fraction of {:.2f}) and {} of host memory a device.\n",
      format_bytes(need.hbm), need.smallest_fraction, format_bytes(need.host));
  if (plan.best.device_to_host + plan.best.host_to_device > Bytes(0)) {
    text += fmt::format("For its copies to be hidden to within {} of a step, each direction\n",
                        format_seconds(need.tolerance));
    text += needed_rate("out", need.device_to_host, need.link_out);
    text += needed_rate("in", need.host_to_device, need.link_in);
    text += fmt::format("  exposed: {} now, {} with both, {} at {:.0f} times the link\n",
                        format_seconds(need.exposed), format_seconds(need.exposed_with_both),
                        format_seconds(need.exposed_at_most_link), kMostLink);
  }
  for (const BreakEven& row : need.break_even) {
    const std::string how =
        row.always ? "at any rate"
        : row.factor
            ? fmt::format("from {} out and {} in on", rate_text(need.link_out * *row.factor),
                          rate_text(need.link_in * *row.factor))
            : fmt::format("at no rate up to {:.0f} times the link", kMostLink);
    text += fmt::format("Moving wins {} ({}; the other takes {}{}).\n", how, row.name,
                        format_seconds(row.rival_step), row.rival_fits ? "" : ", and does not fit");
  }
  return text;
}

/// The same questions of a step of another size, under the plan's policy.
std::string sized_text(const PlanResult& plan, const SizedRequirements& sized) {
  PlanResult at = plan;  // as far as requirements_text asks
  at.handles = sized.handles;
  at.best = sized.outcome;
  std::string text = fmt::format("{}: {} a step, {}\n", size_text(sized.size),
                                 format_seconds(sized.outcome.step), fit_text(sized.outcome));
  text += requirements_text(at, sized.need);
  for (const std::string& said : sized.assumptions) text += "Assumed: " + said + "\n";
  return text;
}

}  // namespace

std::string move_text(const MoveEffect& effect) {
  return fmt::format(
      "offloaded, it moves {} a step and {}; the link takes {} for it, beside {} of kernels",
      format_bytes(effect.moved()),
      effect.saved_at_peak < Bytes(0)
          ? "raises the peak by " + format_bytes(Bytes(0) - effect.saved_at_peak)
          : "saves " + format_bytes(effect.saved_at_peak) + " at the peak",
      format_seconds(effect.link), format_seconds(effect.window));
}

std::string answers_text(const PlanResult& plan, const PlanAnswers& answers) {
  std::string text;
  const auto add = [&text](const std::string& section) {
    if (!section.empty()) text += section + "\n";
  };
  add(moves_text(plan, answers) + host_update_text(answers));
  add(unnamed_text(answers));
  if (answers.sensitivity) add(sensitivity_text(plan, *answers.sensitivity));
  if (answers.confidence) add(confidence_text(plan, *answers.confidence));
  if (answers.requirements) add(requirements_text(plan, *answers.requirements));
  for (const SizedRequirements& sized : answers.sized) add(sized_text(plan, sized));
  return text;
}

}  // namespace spillway
