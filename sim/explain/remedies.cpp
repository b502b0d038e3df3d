#include "sim/explain/remedies.h"

#include <algorithm>
#include <cmath>

#include "sim/explain/scaled_steps.h"

namespace spillway {
namespace {

using engine::EngineProgram;
using engine::StepId;

/// The least part of what was exposed that still counts: pipelines have a first iteration.
constexpr double kNegligible = 0.01;
constexpr double kFastestLink = 64, kMostCompute = 1024;
/// Factors are found to one percent.
constexpr double kPrecision = 1.01;
/// The share of the waits that are gone which the step must gain for a copy to count as hidden.
constexpr double kGained = 0.5;

StepId behind(StepId step) { return StepId(step.index + 1); }

}  // namespace

std::string_view name_of(RemedyKind kind) {
  switch (kind) {
    case RemedyKind::kEarlierStart:
      return "earlier-start";
    case RemedyKind::kLaterDone:
      return "later-done";
    case RemedyKind::kBoth:
      return "earlier-start-and-later-done";
    case RemedyKind::kNextIteration:
      return "next-iteration";
    case RemedyKind::kFasterLink:
      return "faster-link";
    case RemedyKind::kMoreCompute:
      return "more-compute";
  }
  return "";
}

RemedyFinder::RemedyFinder(const Program& program, const MemoryAssignment& memory,
                           const PreparedStep& prepared, const engine::EngineResult& run)
    : program_(program),
      memory_(memory),
      lowered_(prepared.lowered),
      run_(run),
      work_(prepared.lowered, run),
      room_(program, memory, prepared.lowered) {}

RemedyFinder::Outcome RemedyFinder::simulate(const EngineProgram& steps,
                                             const IdVector<StepId, StepId>* original,
                                             const Target& target) const {
  // Slower than any step can be: as good as never.
  constexpr SimTime kNever = engine::kLongestRun;
  const Outcome never{to_seconds(kNever), to_seconds(kNever), to_seconds(kNever)};
  if (engine::find_fault(steps)) return never;
  const auto run = engine::run(steps);
  if (!run.ok()) return never;
  SimTime exposed, waits;
  for (const StepId step : ids(run->steps)) {
    const StepId was = original != nullptr ? (*original)[step] : step;
    waits += run->steps[step].stalled;
    if (std::ranges::binary_search(target.waits, was)) exposed += run->steps[step].stalled;
  }
  return {to_seconds(exposed), to_seconds(run->makespan), to_seconds(waits)};
}

RemedyFinder::Outcome RemedyFinder::simulate(const StepEdits& edits, const Target& target) const {
  const EditedSteps edited = edit_steps(lowered_.program, edits);
  return simulate(edited.program, &edited.original, target);
}

bool RemedyFinder::ends_waits(const Outcome& outcome, const Target& target) const {
  return outcome.exposed <= exposed_of(target, run_) * kNegligible;
}

void RemedyFinder::fill(Remedy& remedy, const Outcome& outcome, const Target& target,
                        Seconds more_work) const {
  remedy.possible = true;
  remedy.exposed = outcome.exposed;
  remedy.step = outcome.step;
  remedy.gain = to_seconds(run_.makespan) + more_work - outcome.step;
  remedy.ends_waits |= ends_waits(outcome, target);
  const Seconds gone = exposed_of(target, run_) - outcome.exposed;
  remedy.hides = remedy.ends_waits && remedy.gain >= gone * kGained;
}

/// `start_at` and `wait_at` are the steps in front of which they go; where they stand: not moved.
StepEdits RemedyFinder::move(const Target& target, StepId start_at, StepId wait_at) const {
  StepEdits edits;
  if (start_at != target.start) {
    edits.removed.insert(target.start);
    edits.before[start_at].push_back({.copy_of = target.start});
  }
  if (!target.waits.empty() && wait_at != target.wait) {
    // Behind the step in front of it: at the end of a body that is still inside the loop.
    edits.removed.insert(target.wait);
    edits.after[StepId(wait_at.index - 1)].push_back({.copy_of = target.wait});
  }
  return edits;
}

Remedy RemedyFinder::earlier_start(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kEarlierStart};
  const auto [first, limit] = room_.before(target);
  remedy.limit = limit;
  if (work_.between(first, target.start) == Seconds(0)) return remedy;
  const auto at = [&](StepId place) { return simulate(move(target, place, target.wait), target); };
  StepId place = first;
  Outcome outcome = at(first);
  // The latest place at which it is hidden: `place` hides it, `late` does not.
  if (ends_waits(outcome, target)) {
    for (StepId late = target.start; place.index + 1 < late.index;) {
      const StepId middle((std::size_t{place.index} + late.index) / 2);
      const Outcome tried = at(middle);
      if (ends_waits(tried, target))
        place = middle, outcome = tried;
      else
        late = middle;
    }
  }
  fill(remedy, outcome, target);
  remedy.moved = work_.between(place, target.start);
  remedy.at = room_.name(place);
  return remedy;
}

Remedy RemedyFinder::later_done(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kLaterDone};
  const StepId wait = target.wait;
  const auto [last, limit] = room_.behind(target);
  remedy.limit = limit;
  if (work_.between(wait, last) == Seconds(0)) return remedy;
  const auto at = [&](StepId place) { return simulate(move(target, target.start, place), target); };
  StepId place = last;
  Outcome outcome = at(last);
  // The earliest place at which it is hidden.
  if (ends_waits(outcome, target)) {
    for (StepId early = behind(wait); early.index + 1 < place.index;) {
      const StepId middle((std::size_t{place.index} + early.index) / 2);
      const Outcome tried = at(middle);
      if (ends_waits(tried, target))
        place = middle, outcome = tried;
      else
        early = middle;
    }
  }
  fill(remedy, outcome, target);
  remedy.moved = work_.between(wait, place);
  const StepId before(place.index - 1);
  remedy.at = room_.name(before);
  return remedy;
}

Remedy RemedyFinder::both(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kBoth};
  const auto [first, before] = room_.before(target);
  const auto [last, behind_it] = room_.behind(target);
  fill(remedy, simulate(move(target, first, last), target), target);
  remedy.moved = work_.between(first, target.start) + work_.between(target.wait, last);
  remedy.limit = before + "; " + behind_it;
  return remedy;
}

/// An offload is waited for an iteration later, a reload started an iteration earlier. Empty where
/// the copy does not begin and end in the same iteration.
std::optional<Remedy> RemedyFinder::next_iteration(const Target& target) const {
  const auto direction = origin(target.start).direction;
  if (!direction || target.starts.size() != 1 || target.waits.size() != 1) return std::nullopt;
  const StepId start = target.start, wait = target.waits[0];
  const auto loop = room_.loop_around(start);
  if (!loop || room_.loop_around(wait) != loop || wait < start) return std::nullopt;
  if (std::get<engine::LoopStep>(lowered_.program.steps[*loop]).trips < 2) return std::nullopt;
  Remedy remedy{.kind = RemedyKind::kNextIteration};
  StepEdits edits;
  if (*direction == TransferDirection::kDeviceToHost) {
    edits.before[*loop].push_back({.copy_of = start, .takes_no_time = true});
    edits.removed.insert(wait);
    edits.before[wait].push_back({.copy_of = wait, .back = 1});
    edits.after[*loop].push_back({.copy_of = wait});
  } else {
    const auto transfer = host_transfer(program_, origin(start).instruction);
    const InstructionId id = origin(start).instruction;
    if (transfer->host_array) {
      const ValueId array = memory_.values.at(id.computation, *transfer->host_array);
      const InstructionId maker = memory_.values[array].defined_at.instruction;
      if (maker.computation == id.computation && program_[maker].opcode != Opcode::kParameter) {
        remedy.limit =
            std::string(program_[maker].name) + " makes what it reads in the same iteration";
        return remedy;
      }
    }
    edits.before[*loop].push_back({.copy_of = start});
    edits.removed.insert(start);
    edits.after[wait].push_back({.copy_of = start, .not_in_last = true});
    edits.peeled = *loop;
  }
  const Outcome outcome = simulate(edits, target);
  // The first reload, or the last offload, has no neighbour to hide in.
  const engine::StepStats& runs = run_.steps[start];
  const std::int64_t entries =
      runs.count / std::get<engine::LoopStep>(lowered_.program.steps[*loop]).trips;
  const double ends = static_cast<double>(entries) / static_cast<double>(runs.count);
  remedy.ends_waits = outcome.exposed <= to_seconds(runs.busy) * ends;
  fill(remedy, outcome, target);
  return remedy;
}

/// The kernels between start and wait; where the wait is in another iteration, those of the loop.
std::pair<StepId, StepId> RemedyFinder::kernels_beside(const Target& target) const {
  const StepId wait = target.wait;
  if (target.start < wait && room_.loop_around(target.start) == room_.loop_around(wait))
    return {target.start, wait};
  const auto around = room_.loop_around(wait);
  const auto loop = around ? around : room_.loop_around(target.start);
  if (!loop) return {std::min(target.start, wait), std::max(target.start, wait)};
  return {behind(*loop), std::get<engine::LoopStep>(lowered_.program.steps[*loop]).end};
}

/// The least factor in [1, most] with which the copy is hidden, and the step with it; `most` where
/// none is. `change` makes the program for a factor.
template <typename Change>
std::pair<double, RemedyFinder::Outcome> RemedyFinder::least_factor(const Target& target,
                                                                    double most,
                                                                    Change change) const {
  const auto at = [&](double factor) { return simulate(change(factor), nullptr, target); };
  double enough = most;
  Outcome outcome = at(most);
  if (!ends_waits(outcome, target)) return {most, outcome};
  for (double less = 1; enough / less > kPrecision;) {
    const double middle = std::sqrt(less * enough);
    const Outcome tried = at(middle);
    if (ends_waits(tried, target))
      enough = middle, outcome = tried;
    else
      less = middle;
  }
  return {enough, outcome};
}

Remedy RemedyFinder::faster_link(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kFasterLink};
  const bool fabric = origin(target.start).kind == StepOrigin::kCollective;
  const auto [factor, outcome] = least_factor(target, kFastestLink, [&](double times) {
    return fabric ? with_faster_fabric(lowered_, times) : with_faster_link(lowered_, times);
  });
  fill(remedy, outcome, target);
  remedy.factor = factor;
  if (const auto direction = origin(target.start).direction) {
    const MachineResources& machine = lowered_.resources;
    const auto one_way = *direction == TransferDirection::kDeviceToHost ? machine.device_to_host
                                                                        : machine.host_to_device;
    const std::int64_t now = lowered_.program.resources[one_way].capacity;
    remedy.rate = BytesPerSecond(std::round(static_cast<double>(now) * factor));
    // Rates are whole bytes a second.
    remedy.factor = remedy.rate.value() / static_cast<double>(now);
  }
  return remedy;
}

Remedy RemedyFinder::more_compute(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kMoreCompute};
  const auto [first, end] = kernels_beside(target);
  remedy.kernels_now = work_.between(first, end);
  if (remedy.kernels_now == Seconds(0)) {
    remedy.limit = "no kernel runs between its start and the wait";
    return remedy;
  }
  const auto [factor, outcome] =
      least_factor(target, kMostCompute, [&, from = first, to = end](double times) {
        return with_more_kernels(lowered_, from, to, times);
      });
  SimTime kernels;
  for (StepId step = first; step < end; step = behind(step))
    if (origin(step).kind == StepOrigin::kKernel &&
        std::holds_alternative<engine::RunStep>(lowered_.program.steps[step]))
      kernels += run_.steps[step].busy;
  fill(remedy, outcome, target, to_seconds(kernels) * (factor - 1));
  remedy.factor = factor;
  remedy.kernels_then = remedy.kernels_now * factor;
  return remedy;
}

std::vector<Remedy> RemedyFinder::find(const Target& target) const {
  std::vector<Remedy> remedies;
  if (target.waits.empty()) return remedies;
  remedies.push_back(earlier_start(target));
  remedies.push_back(later_done(target));
  if (remedies[0].possible && remedies[1].possible && !remedies[0].hides && !remedies[1].hides)
    remedies.push_back(both(target));
  if (auto pipelined = next_iteration(target)) remedies.push_back(*std::move(pipelined));
  const StepOrigin& what = origin(target.start);
  if (what.direction || what.kind == StepOrigin::kCollective)
    remedies.push_back(faster_link(target));
  remedies.push_back(more_compute(target));
  return remedies;
}

double RemedyFinder::slowest_rate(const Target& target) const {
  SimTime waits_now, busy;
  for (const engine::StepStats& stats : run_.steps) waits_now += stats.stalled;
  for (const StepId start : target.starts) busy += run_.steps[start].busy;
  const Seconds most = to_seconds(waits_now) + to_seconds(busy) * kNegligible;
  const auto hidden_at = [&](double rate) {
    const Outcome outcome =
        simulate(with_slower_copies(lowered_, target.starts, 1 / rate), nullptr, target);
    return outcome.exposed == Seconds(0) && outcome.waits <= most;
  };
  double enough = 1, too_slow = 1 / kFastestLink;
  if (hidden_at(too_slow)) return too_slow;
  while (enough / too_slow > kPrecision) {
    const double middle = std::sqrt(too_slow * enough);
    (hidden_at(middle) ? enough : too_slow) = middle;
  }
  return enough;
}

}  // namespace spillway
