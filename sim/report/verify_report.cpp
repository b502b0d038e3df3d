#include "sim/report/verify_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/format.h"
#include "model/base/utf8.h"
#include "model/program/call_graph.h"
#include "sim/report/verify_causes.h"

namespace spillway {
namespace {

using Unit = VerifiedFigure::Unit;

double number(Bytes bytes) { return static_cast<double>(bytes.value()); }

std::vector<VerifiedFigure> compare_figures(const StepFigures& a, const StepFigures& b,
                                            const VerifyTolerances& allowed) {
  const auto bytes = [](const char* name, const char* json, Bytes predicted, Bytes compiled,
                        std::optional<double> tolerance) {
    return VerifiedFigure{name, json, Unit::kBytes, number(predicted), number(compiled), tolerance};
  };
  const MemoryTotals &x = a.memory, &y = b.memory;
  return {
      bytes("HBM total", "total_device_bytes", x.total_device, y.total_device, allowed.device),
      bytes("  arguments", "argument_bytes", x.argument, y.argument, {}),
      bytes("  temporaries", "temp_bytes", x.temp, y.temp, {}),
      bytes("  live at the peak", "live_peak_bytes", a.live_peak, b.live_peak, {}),
      bytes("pinned host memory", "host_bytes", host_bytes(x), host_bytes(y), allowed.host),
      bytes("offloaded in a step", "d2h_bytes_per_step", a.offloaded, b.offloaded, allowed.moved),
      bytes("reloaded in a step", "h2d_bytes_per_step", a.reloaded, b.reloaded, allowed.moved),
      {"matrix products", "dot_flops_per_step", Unit::kFlops, a.dot_flops, b.dot_flops,
       allowed.flops},
      {"step", "step_seconds", Unit::kSeconds, a.times.step.value(), b.times.step.value(),
       allowed.step},
  };
}

/// The plan is of another step: what differs then says nothing about the plan.
std::optional<Error> refuse_other_program(const PlanFile& plan, const std::string& plan_path,
                                          const Program& compiled,
                                          const ProgramIdentity& identity) {
  const auto refuse = [&](const std::string& what) {
    return Error{ErrorKind::kInput, what, SourceRef{compiled.path, {}, {}}, "",
                 "give the dump of the step that " + plan_path + " was made for, compiled again"};
  };
  if (identity.name != plan.program.name)
    return refuse("is the module " + quoted(identity.name) + ", and the plan is for " +
                  quoted(plan.program.name));
  if (identity.devices != plan.program.devices)
    return refuse(fmt::format("runs on {} devices, and the plan is for {}", identity.devices,
                              plan.program.devices));
  if (identity.arguments != plan.program.arguments)
    return refuse(fmt::format(
        "has {} bytes of arguments a device, and the plan is for a step with {}: another shape",
        format_count(identity.arguments.value()), format_count(plan.program.arguments.value())));
  return std::nullopt;
}

/// The size from which a list that may have been cut is whole.
Bytes whole_from(const std::vector<Item>& items) {
  return items.size() < StepFigures::kListed ? Bytes(0) : items.back().total();
}

/// What only one side has, as far as it says something about a difference of so many bytes.
Excess relevant_excess(const std::vector<Item>& predicted, const std::vector<Item>& compiled,
                       double difference) {
  if (difference == 0) return {};
  Excess excess = find_excess(predicted, compiled);
  const Bytes least = std::max({whole_from(predicted), whole_from(compiled),
                                Bytes(static_cast<std::int64_t>(std::abs(difference) / 20))});
  for (std::vector<Item>* items : {&excess.first, &excess.second})
    std::erase_if(*items, [least](const Item& item) { return item.total() < least; });
  return excess;
}

/// A difference too small to look for its reason: of a heap's paddings, say.
double worth_explaining(const VerifiedFigure& figure) {
  constexpr double kNegligible = 1e-4;
  return std::abs(figure.relative_difference()) < kNegligible ? 0 : figure.difference();
}

double difference_of(const VerifyReport& report, std::string_view json) {
  for (const VerifiedFigure& figure : report.figures)
    if (figure.json == json) return worth_explaining(figure);
  return 0;
}

}  // namespace

double VerifiedFigure::relative_difference() const {
  if (compiled == predicted) return 0;
  if (predicted == 0) return std::numeric_limits<double>::infinity();
  return (compiled - predicted) / predicted;
}

bool VerifiedFigure::agrees() const {
  return !tolerance || std::abs(relative_difference()) <= *tolerance;
}

bool VerifyReport::agrees() const { return std::ranges::all_of(figures, &VerifiedFigure::agrees); }

Result<VerifyReport> make_verify_report(const PlanFile& plan, const std::string& plan_path,
                                        const Program& compiled, const VerifyContext& context) {
  const Result<Schedule> schedule = text_schedule(compiled);
  if (!schedule.ok()) return schedule.error();
  const MemoryAssignment memory = assign_memory(compiled, *schedule);
  const ProgramIdentity identity = identify(compiled, sum_totals(memory));
  if (auto wrong = refuse_other_program(plan, plan_path, compiled, identity)) return *wrong;
  const Result<SimResult> run = simulate(compiled, *schedule, memory, context.profile,
                                         context.topology, {.copy_streams = context.copy_streams});
  if (!run.ok()) return run.error();
  const ResidualTable scanned = find_residuals(compiled, memory, context.names);
  const UnrolledTable unrolled = scanned.residuals.empty()
                                     ? find_unrolled_residuals(compiled, memory, context.names)
                                     : UnrolledTable();
  const StepFigures found = make_step_figures(compiled, memory, *run, scanned);
  const StepFigures& predicted = plan.predicted;

  VerifyReport report;
  report.program_name = compiled.name;
  report.path = compiled.path;
  report.plan_path = plan_path;
  report.hardware = context.profile.id;
  report.policy = plan.policy;
  report.is_other_machine = context.profile.id != plan.hardware;
  report.figures = compare_figures(predicted, found, context.tolerances);
  if (report.is_other_machine || plan.anchored_on)
    report.figures.back().tolerance.reset();  // the step
  report.is_unrolled = !unrolled.residuals.empty();
  const Multiplicity runs = multiplicity(compiled);
  for (const Residual& residual : scanned.residuals)
    report.passes = std::max(report.passes, runs.runs[residual.forward_loop.computation]);
  const std::vector<PlannedState> state = list_state(compiled);
  for (const StateClass kind : kStateClasses)
    report.more_state_on_host += host_of(state, kind) - host_of(plan.state, kind);
  report.not_done = find_not_done(plan.residuals, list_saved(scanned, unrolled, context.names));
  report.buffers = relevant_excess(predicted.buffers, found.buffers,
                                   difference_of(report, "total_device_bytes"));
  const auto unexplained = [&](const char* json) {
    return is_accounted_for(report, json) ? 0 : difference_of(report, json);
  };
  report.host_arrays =
      relevant_excess(predicted.host_arrays, found.host_arrays, unexplained("host_bytes"));
  report.offloads =
      relevant_excess(predicted.offloads, found.offloads, unexplained("d2h_bytes_per_step"));
  report.reloads =
      relevant_excess(predicted.reloads, found.reloads, unexplained("h2d_bytes_per_step"));
  report.causes = find_causes(report, {plan, found, identity, state, context.jaxlib});
  if (!plan.recommended_flags.empty())
    report.assumptions.push_back(
        "the prediction is without the flags that the plan recommends; what they do is not in it");
  if (plan.anchored_on)
    report.assumptions.push_back("the predicted step rests on what was measured (" +
                                 printable_line(*plan.anchored_on) +
                                 "), the compiled one on the model alone: shown, and not judged");
  report.assumptions.insert(report.assumptions.end(), run->assumptions.begin(),
                            run->assumptions.end());
  return report;
}

}  // namespace spillway
