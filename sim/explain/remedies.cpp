#include "sim/explain/remedies.h"

#include <algorithm>
#include <cmath>

#include "sim/trace/flows.h"

namespace spillway {
namespace {

using engine::EngineProgram;
using engine::StepId;

/// The least part of what was exposed that still counts: pipelines have a first iteration.
constexpr double kNegligible = 0.01;
constexpr double kFastestLink = 64, kMostCompute = 1024;
/// Factors are found to one percent.
constexpr double kPrecision = 1.01;

StepId behind(StepId step) { return StepId(step.index + 1); }

std::int64_t scaled(std::int64_t value, double factor) {
  return std::llround(static_cast<double>(value) * factor);
}

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
      neighbours_(program, memory, prepared.lowered),
      work_(prepared.lowered, run),
      loops_(loops_around(prepared.lowered.program)),
      readers_(find_readers(program, memory, prepared.lowered)) {}

std::string RemedyFinder::name(StepId step) const {
  const StepOrigin& from = origin(step);
  return std::string(program_[from.done.value_or(from.instruction)].name);
}

/// Everything that hands over through the same slot: a pipelined loop has a start in front of it.
Target RemedyFinder::find_target(StepId start) const {
  Target target{start, {}, {}};
  const auto* const handed = std::get_if<engine::StartStep>(&lowered_.program.steps[start]);
  if (handed == nullptr) return target;
  for (const StepId step : ids(lowered_.program.steps)) {
    const engine::Step& it = lowered_.program.steps[step];
    if (const auto* other = std::get_if<engine::StartStep>(&it);
        other && other->slot == handed->slot)
      target.starts.push_back(step);
    if (const auto* wait = std::get_if<engine::WaitStep>(&it); wait && wait->slot == handed->slot)
      target.waits.push_back(step);
  }
  return target;
}

Seconds RemedyFinder::exposed_now(const Target& target) const {
  SimTime exposed;
  for (const StepId wait : target.waits) exposed += run_.steps[wait].stalled;
  if (target.waits.empty()) exposed = run_.steps[target.start].busy;
  return to_seconds(exposed);
}

RemedyFinder::Outcome RemedyFinder::simulate(const EngineProgram& steps,
                                             const IdVector<StepId, StepId>* original,
                                             const Target& target) const {
  const auto run = engine::run(steps);
  // Slower than any step can be: as good as never.
  if (!run.ok()) return {to_seconds(engine::kLongestRun), to_seconds(engine::kLongestRun)};
  SimTime exposed;
  for (const StepId step : ids(run->steps)) {
    const StepId was = original != nullptr ? (*original)[step] : step;
    if (std::ranges::binary_search(target.waits, was)) exposed += run->steps[step].stalled;
  }
  return {to_seconds(exposed), to_seconds(run->makespan)};
}

RemedyFinder::Outcome RemedyFinder::simulate(const StepEdits& edits, const Target& target) const {
  const EditedSteps edited = edit_steps(lowered_.program, edits);
  return simulate(edited.program, &edited.original, target);
}

bool RemedyFinder::hides(const Outcome& outcome, const Target& target) const {
  return outcome.exposed <= exposed_now(target) * kNegligible;
}

void RemedyFinder::fill(Remedy& remedy, const Outcome& outcome, const Target& target) const {
  remedy.possible = true;
  remedy.exposed = outcome.exposed;
  remedy.step = outcome.step;
  remedy.hides = hides(outcome, target);
}

/// What lies at an end of a stretch.
std::string RemedyFinder::edge_of(StepId inside, bool begin) const {
  const auto loop = loops_[inside];
  const StepId next = begin ? inside : behind(inside);
  const StepId end = loop ? std::get<engine::LoopStep>(lowered_.program.steps[*loop]).end
                          : StepId(lowered_.program.steps.size());
  if (begin ? loop && inside == behind(*loop) : loop && next == end)
    return "the iteration " + std::string(begin ? "begins" : "ends") + " there";
  if (begin ? inside.index == 0 : next == end)
    return "the step " + std::string(begin ? "begins" : "ends") + " there";
  return "another loop or function " + std::string(begin ? "ends" : "begins") + " there";
}

RemedyFinder::Room RemedyFinder::room_before(const Target& target) const {
  StepId at = neighbours_.behind_producer(target.start);
  const InstructionId id = origin(target.start).instruction;
  bool made = false;
  if (at.index > 0) {
    const StepId maker(at.index - 1);
    for (const Operand& operand : program_[id.computation].operands(id.instruction))
      made |= memory_.values[memory_.values.at(id.computation, operand)].defined_at.instruction ==
              origin(maker).instruction;
  }
  Room room{
      at, made ? name(StepId(at.index - 1)) + " makes what it reads" : edge_of(at, /*begin=*/true)};
  for (const StepId wait : target.waits)
    if (room.end <= wait && wait < target.start)
      room = {behind(wait), "the wait for the one before it stands there"};
  return room;
}

RemedyFinder::Room RemedyFinder::room_behind(const Target& target) const {
  const StepId wait = target.waits.back();
  const InstructionId done = *origin(wait).done;
  const StepId at = neighbours_.first_reader(wait, done.computation, memory_.values.at(done, 0));
  Room room{at, readers_[wait] == at ? name(at) + " reads it"
                                     : edge_of(StepId(at.index - 1), /*begin=*/false)};
  for (const StepId start : target.starts)
    if (wait < start && start < room.end) room = {start, "the next one starts there"};
  return room;
}

/// `start_at` and `wait_at` are the steps in front of which they go; where they stand: not moved.
StepEdits RemedyFinder::move(const Target& target, StepId start_at, StepId wait_at) const {
  StepEdits edits;
  if (start_at != target.start) {
    edits.removed.insert(target.start);
    edits.before[start_at].push_back({.copy_of = target.start});
  }
  if (!target.waits.empty() && wait_at != target.waits.back()) {
    // Behind the step in front of it: at the end of a body that is still inside the loop.
    edits.removed.insert(target.waits.back());
    edits.after[StepId(wait_at.index - 1)].push_back({.copy_of = target.waits.back()});
  }
  return edits;
}

Remedy RemedyFinder::earlier_start(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kEarlierStart};
  const auto [first, limit] = room_before(target);
  remedy.limit = limit;
  if (work_.between(first, target.start) == Seconds(0)) return remedy;
  const auto at = [&](StepId place) {
    return simulate(move(target, place, target.waits.back()), target);
  };
  StepId place = first;
  Outcome outcome = at(first);
  // The latest place at which it is hidden: `place` hides it, `late` does not.
  if (hides(outcome, target)) {
    for (StepId late = target.start; place.index + 1 < late.index;) {
      const StepId middle((std::size_t{place.index} + late.index) / 2);
      const Outcome tried = at(middle);
      if (hides(tried, target))
        place = middle, outcome = tried;
      else
        late = middle;
    }
  }
  fill(remedy, outcome, target);
  remedy.moved = work_.between(place, target.start);
  remedy.at = name(place);
  return remedy;
}

Remedy RemedyFinder::later_done(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kLaterDone};
  const StepId wait = target.waits.back();
  const auto [last, limit] = room_behind(target);
  remedy.limit = limit;
  if (work_.between(wait, last) == Seconds(0)) return remedy;
  const auto at = [&](StepId place) { return simulate(move(target, target.start, place), target); };
  StepId place = last;
  Outcome outcome = at(last);
  // The earliest place at which it is hidden.
  if (hides(outcome, target)) {
    for (StepId early = behind(wait); early.index + 1 < place.index;) {
      const StepId middle((std::size_t{place.index} + early.index) / 2);
      const Outcome tried = at(middle);
      if (hides(tried, target))
        place = middle, outcome = tried;
      else
        early = middle;
    }
  }
  fill(remedy, outcome, target);
  remedy.moved = work_.between(wait, place);
  const StepId before(place.index - 1);
  remedy.at = name(before);
  return remedy;
}

Remedy RemedyFinder::both(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kBoth};
  const auto [first, before] = room_before(target);
  const auto [last, behind_it] = room_behind(target);
  fill(remedy, simulate(move(target, first, last), target), target);
  remedy.moved = work_.between(first, target.start) + work_.between(target.waits.back(), last);
  remedy.limit = before + "; " + behind_it;
  return remedy;
}

/// An offload is waited for an iteration later, a reload started an iteration earlier. Empty where
/// the copy does not begin and end in the same iteration.
std::optional<Remedy> RemedyFinder::next_iteration(const Target& target) const {
  const auto direction = origin(target.start).direction;
  if (!direction || target.starts.size() != 1 || target.waits.size() != 1) return std::nullopt;
  const StepId start = target.start, wait = target.waits[0];
  const auto loop = loops_[start];
  if (!loop || loops_[wait] != loop || wait < start) return std::nullopt;
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
  fill(remedy, simulate(edits, target), target);
  // The first reload, or the last offload, has no neighbour to hide in.
  const engine::StepStats& runs = run_.steps[start];
  const std::int64_t entries =
      runs.count / std::get<engine::LoopStep>(lowered_.program.steps[*loop]).trips;
  remedy.hides = remedy.hides || remedy.exposed <= to_seconds(runs.busy) *
                                                       static_cast<double>(entries) /
                                                       static_cast<double>(runs.count);
  return remedy;
}

/// A link `factor` times as fast each way, both ways and at the host; for a collective, a fabric.
EngineProgram RemedyFinder::with_link(const Target& target, double factor) const {
  EngineProgram program = lowered_.program;
  const MachineResources& machine = lowered_.resources;
  if (origin(target.start).kind == StepOrigin::kCollective) {
    // What a collective takes of these lasts as long as it does.
    const auto lasts = [&](engine::ResourceId resource) {
      return resource == machine.sms || resource == machine.fabric || resource == machine.network;
    };
    for (const StepId step : ids(program.steps)) {
      if (origin(step).kind != StepOrigin::kCollective) continue;
      const auto* start = std::get_if<engine::StartStep>(&program.steps[step]);
      engine::Task& task =
          program.tasks[start ? start->task : std::get<engine::RunStep>(program.steps[step]).task];
      task.duration = SimTime(scaled(task.duration.value(), 1 / factor));
      for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
        if (lasts(program.demands[k].resource))
          program.demands[k].amount = scaled(program.demands[k].amount, 1 / factor);
    }
    return program;
  }
  for (const engine::ResourceId resource :
       {machine.device_to_host, machine.host_to_device, machine.both_directions, machine.host_read,
        machine.host_write, machine.host_memory})
    program.resources[resource].capacity =
        std::max<std::int64_t>(1, scaled(program.resources[resource].capacity, factor));
  return program;
}

/// The kernels between start and wait; where the wait is in another iteration, those of the loop.
std::pair<StepId, StepId> RemedyFinder::kernels_beside(const Target& target) const {
  const StepId wait = target.waits.back();
  if (target.start < wait && loops_[target.start] == loops_[wait]) return {target.start, wait};
  const auto loop = loops_[wait] ? loops_[wait] : loops_[target.start];
  if (!loop) return {std::min(target.start, wait), std::max(target.start, wait)};
  return {behind(*loop), std::get<engine::LoopStep>(lowered_.program.steps[*loop]).end};
}

EngineProgram RemedyFinder::with_kernels(const Target& target, double factor) const {
  EngineProgram program = lowered_.program;
  const auto [first, end] = kernels_beside(target);
  for (StepId step = first; step < end; step = behind(step)) {
    const auto* run = std::get_if<engine::RunStep>(&program.steps[step]);
    if (run == nullptr || origin(step).kind != StepOrigin::kKernel) continue;
    engine::Task& task = program.tasks[run->task];
    task.duration = SimTime(scaled(task.duration.value(), factor));
    for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
      program.demands[k].amount = scaled(program.demands[k].amount, factor);
  }
  return program;
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
  if (!hides(outcome, target)) return {most, outcome};
  for (double less = 1; enough / less > kPrecision;) {
    const double middle = std::sqrt(less * enough);
    const Outcome tried = at(middle);
    if (hides(tried, target))
      enough = middle, outcome = tried;
    else
      less = middle;
  }
  return {enough, outcome};
}

Remedy RemedyFinder::faster_link(const Target& target) const {
  Remedy remedy{.kind = RemedyKind::kFasterLink};
  const auto [factor, outcome] =
      least_factor(target, kFastestLink, [&](double times) { return with_link(target, times); });
  fill(remedy, outcome, target);
  remedy.factor = factor;
  if (const auto direction = origin(target.start).direction) {
    const MachineResources& machine = lowered_.resources;
    const auto one_way = *direction == TransferDirection::kDeviceToHost ? machine.device_to_host
                                                                        : machine.host_to_device;
    const std::int64_t now = lowered_.program.resources[one_way].capacity;
    remedy.rate = BytesPerSecond(static_cast<double>(scaled(now, factor)));
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
      least_factor(target, kMostCompute, [&](double times) { return with_kernels(target, times); });
  fill(remedy, outcome, target);
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

double RemedyFinder::slowest_link(const Target& target) const {
  const auto hidden_at = [&](double factor) {
    return simulate(with_link(target, factor), nullptr, target).exposed == Seconds(0);
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
