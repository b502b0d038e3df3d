#include "sim/report/verify_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.h"

namespace spillway {
namespace {

const VerifiedFigure* find_figure(const VerifyReport& report, std::string_view json) {
  const auto found = std::ranges::find(report.figures, json, [](const VerifiedFigure& figure) {
    return std::string_view(figure.json);
  });
  return found == report.figures.end() ? nullptr : &*found;
}

Bytes on_host_by_names(const VerifyReport& report) {
  Bytes change;
  for (const NotDone& value : report.not_done) change += change_at(value, Choice::kOffload);
  return change;
}

/// "+4.00 GiB"; "0 B" for nothing.
std::string signed_bytes(Bytes bytes) {
  return (bytes > Bytes(0) ? "+" : "") + format_bytes(bytes);
}

std::string_view to_be(Choice choice) {
  switch (choice) {
    case Choice::kKeep:
      return "to be kept in HBM";
    case Choice::kOffload:
      return "to be offloaded";
    case Choice::kRecompute:
      return "to be recomputed";
  }
  return "";
}

std::string_view found_as(Choice choice) {
  switch (choice) {
    case Choice::kKeep:
      return "is saved in HBM";
    case Choice::kOffload:
      return "is saved on the host";
    case Choice::kRecompute:
      return "is not saved, so that backward computes it again";
  }
  return "";
}

/// What a value on the host more or less comes to there and over the link.
std::string host_effect(const VerifyReport& report, Bytes host) {
  const Bytes moved = host * report.passes;
  if (report.is_unrolled)
    return fmt::format("{} over the link each way and up to as much on the host",
                       signed_bytes(moved));
  return moved == host
             ? fmt::format("{} on the host and over the link each way", signed_bytes(host))
             : fmt::format("{} on the host and, in {} passes, {} over the link each way",
                           signed_bytes(host), report.passes, signed_bytes(moved));
}

Cause cause_of(const VerifyReport& report, const NotDone& value) {
  if (value.growth != Bytes(0))
    return {"other-size",
            fmt::format("{} {} as planned, but is {} of what it was to be: {} over {} layers",
                        value.label, found_as(value.found), signed_bytes(value.growth),
                        format_bytes(value.bytes), value.layers),
            ""};
  if (!value.planned)
    return {"not-in-plan",
            fmt::format("{} {}, {} over {} layers, and the plan knows no such value", value.label,
                        found_as(value.found), format_bytes(value.bytes), value.layers),
            "a name that the policy saves without the plan, or a value that XLA keeps by itself"};
  std::string effect;
  if (const Bytes hbm = change_at(value, Choice::kKeep); hbm != Bytes(0))
    effect += fmt::format(", {} of HBM from forward to backward", signed_bytes(hbm));
  if (const Bytes host = change_at(value, Choice::kOffload); host != Bytes(0))
    effect += ", " + host_effect(report, host);
  const bool still_there = value.found == Choice::kKeep && *value.planned == Choice::kOffload;
  return {
      "name-not-done",
      fmt::format("{} was {}, and {}: {}", value.label, to_be(*value.planned),
                  found_as(value.found), effect.empty() ? "no change of memory" : effect.substr(2)),
      still_there ? "a name that the policy offloads and no value carries moves nothing, and "
                    "nobody says so: compare with spillway.jax.policy(PLAN, names)"
                  : ""};
}

void add_names(const VerifyReport& report, std::vector<Cause>& causes) {
  for (const NotDone& value : report.not_done) causes.push_back(cause_of(report, value));
}

void add_state(const VerifySides& sides, std::vector<Cause>& causes) {
  for (const StateClass kind : kStateClasses) {
    const Bytes planned = host_of(sides.plan.state, kind), found = host_of(sides.state, kind);
    if (planned == found) continue;
    causes.push_back({"state-not-moved",
                      fmt::format("of '{}' {} lies on the host, planned were {}", name_of(kind),
                                  format_bytes(found), format_bytes(planned)),
                      found < planned ? "arguments and results of the step need shardings with "
                                        "memory_kind=\"pinned_host\""
                                      : ""});
  }
}

void add_clones(const VerifySides& sides, std::vector<Cause>& causes) {
  const std::int64_t more = sides.compiled.remat_clones - sides.plan.predicted.remat_clones;
  if (more <= 0) return;
  std::string largest;
  if (!sides.compiled.clones.empty())
    largest = fmt::format(", the largest {} {}", sides.compiled.clones.front().name,
                          sides.compiled.clones.front().shape.substr(0, 40));
  causes.push_back({"xla-rematerialisation",
                    fmt::format("XLA's own rematerialisation cloned {} instructions that no policy "
                                "asked for{}",
                                format_count(more), largest),
                    "--xla_disable_hlo_passes=rematerialization; XLA counts pinned host memory "
                    "against its limit for HBM"});
}

void add_peak(const VerifySides& sides, std::vector<Cause>& causes) {
  const StepFigures& predicted = sides.plan.predicted;
  if (predicted.peak_phase == sides.compiled.peak_phase) return;
  causes.push_back(
      {"peak-elsewhere",
       fmt::format("most is live {} ({}), and was predicted {} ({}): what lies there decides",
                   sides.compiled.peak_phase, sides.compiled.peak_instruction, predicted.peak_phase,
                   predicted.peak_instruction),
       ""});
}

/// Whether a figure is of what lies on the host, and not of what crosses the link.
bool is_place(std::string_view json) { return json == "host_bytes"; }

/// What the names come to of a figure.
Bytes by_names(const VerifyReport& report, std::string_view json) {
  return on_host_by_names(report) * (is_place(json) ? 1 : report.passes);
}

/// How much of a difference in bytes names and state account for, where that is not all.
void add_rest(const VerifyReport& report, std::string_view json, std::vector<Cause>& causes) {
  const VerifiedFigure* const figure = find_figure(report, json);
  if (!figure || figure->agrees() || is_accounted_for(report, json)) return;
  causes.push_back(
      {"not-by-names",
       fmt::format("{}: of {} the names{} above account for {}{}; what only one side has "
                   "is listed below",
                   figure->name,
                   signed_bytes(Bytes(static_cast<std::int64_t>(figure->difference()))),
                   report.more_state_on_host == Bytes(0) ? "" : " and the state",
                   is_place(json) && report.is_unrolled ? "up to " : "",
                   signed_bytes(by_names(report, json) + report.more_state_on_host)),
       ""});
}

/// The parts of the step that take another time.
void add_times(const VerifyReport& report, const VerifySides& sides, std::vector<Cause>& causes) {
  const StepTimes &a = sides.plan.predicted.times, &b = sides.compiled.times;
  constexpr double kWorthALine = 0.005;
  const VerifiedFigure* const step = find_figure(report, "step_seconds");
  if (!step || std::abs(step->relative_difference()) < kWorthALine) return;
  struct Part {
    const char* name;
    Seconds change;
  };
  const Part parts[] = {
      {"kernels", b.kernels - a.kernels},
      {"waits for offloads", b.exposed_offloads - a.exposed_offloads},
      {"waits for reloads", b.exposed_reloads - a.exposed_reloads},
      {"exposed collectives", b.exposed_collectives - a.exposed_collectives},
      {"waits for copies within HBM", b.exposed_slices - a.exposed_slices},
      {"gaps", b.idle - a.idle},
  };
  std::string text;
  for (const Part& part : parts) {
    // A hundredth of the difference explains nothing.
    if (std::abs(part.change.value()) < 0.01 * std::abs(step->difference())) continue;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", part.name,
                        part.change > Seconds(0) ? "+" : "-",
                        format_seconds(Seconds(std::abs(part.change.value()))));
  }
  causes.push_back({"step-parts", "the step differs by its parts: " + text, ""});
}

/// Products that neither a name nor a clone accounts for.
void add_products(const VerifyReport& report, const VerifySides& sides,
                  std::vector<Cause>& causes) {
  const VerifiedFigure* const flops = find_figure(report, "dot_flops_per_step");
  if (!flops || flops->agrees() || !report.not_done.empty() ||
      sides.compiled.remat_clones != sides.plan.predicted.remat_clones)
    return;
  causes.push_back({"recomputed-otherwise",
                    fmt::format("every name is where it should be, and yet backward computes {} {} "
                                "again than was predicted",
                                format_flops(Flops(std::abs(flops->difference()))),
                                flops->difference() > 0 ? "more" : "less"),
                    ""});
}

void add_version(const VerifySides& sides, std::vector<Cause>& causes) {
  if (!sides.jaxlib || !sides.plan.jaxlib || *sides.jaxlib == *sides.plan.jaxlib) return;
  causes.push_back({"other-jaxlib",
                    fmt::format("compiled by jaxlib {}, planned for {}: XLA's passes and orders "
                                "differ",
                                to_string(*sides.jaxlib), to_string(*sides.plan.jaxlib)),
                    "plan again with --jaxlib"});
}

/// The program that the plan was made from, although the plan changes something.
bool is_not_recompiled(const VerifyReport& report, const VerifySides& sides) {
  const bool moves_state = std::ranges::any_of(kStateClasses, [&sides](StateClass kind) {
    return host_of(sides.plan.state, kind) != host_of(sides.state, kind);
  });
  return sides.identity.fingerprint == sides.plan.program.fingerprint &&
         (moves_state || !report.not_done.empty());
}

}  // namespace

Bytes host_of(const std::vector<PlannedState>& state, StateClass kind) {
  const auto found = std::ranges::find(state, kind, &PlannedState::kind);
  return found == state.end() ? Bytes(0) : found->on_host;
}

Bytes change_at(const NotDone& value, Choice place) {
  if (value.growth != Bytes(0)) return value.found == place ? value.growth : Bytes(0);
  Bytes change;
  if (value.found == place) change += value.bytes;
  if (value.planned == place) change -= value.bytes;
  return change;
}

bool is_accounted_for(const VerifyReport& report, std::string_view json) {
  const VerifiedFigure* const figure = find_figure(report, json);
  if (!figure) return false;
  // State on the host is there for all of the step, and crosses the link once each way.
  const Bytes difference =
      Bytes(static_cast<std::int64_t>(figure->difference())) - report.more_state_on_host;
  const Bytes names = by_names(report, json);
  if (!is_place(json) || !report.is_unrolled) return difference == names;
  // Unrolled layers are on the host one after another: more than nothing, and no more than all.
  return names < Bytes(0) ? difference >= names && difference < Bytes(0)
                          : difference <= names && difference >= Bytes(0);
}

std::vector<Cause> find_causes(const VerifyReport& report, const VerifySides& sides) {
  std::vector<Cause> causes;
  if (is_not_recompiled(report, sides))
    causes.push_back({"not-recompiled", "this is the very program that the plan was made from",
                      "compile the step again under the plan's policy, and give that dump"});
  add_version(sides, causes);
  add_names(report, causes);
  add_state(sides, causes);
  add_clones(sides, causes);
  add_peak(sides, causes);
  add_rest(report, "host_bytes", causes);
  add_rest(report, "d2h_bytes_per_step", causes);
  add_rest(report, "h2d_bytes_per_step", causes);
  add_products(report, sides, causes);
  add_times(report, sides, causes);
  const bool has_lists = !report.buffers.first.empty() || !report.buffers.second.empty();
  if (!report.agrees() && causes.empty() && !has_lists)
    causes.push_back({"order",
                      "every name is where it should be and the same buffers are live at the peak: "
                      "XLA ordered or fused the step otherwise",
                      "compare the plan's source program and this one with spillway compare"});
  return causes;
}

}  // namespace spillway
