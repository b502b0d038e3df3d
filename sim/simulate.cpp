#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/hlo/dump_facts.h"
#include "sim/engine/engine.h"
#include "sim/step_neighbours.h"

namespace spillway {
namespace {

using engine::EngineResult;
using engine::StallCause;
using engine::StepId;

/// Moving a start or a wait is named as the cause where it would hide this share of what is
/// exposed: at less than half, most of it would stay whatever is moved, and the link is the cause.
constexpr double kWorthMoving = 0.5;

/// Turns what the engine counted into what a person asks.
class Accounting {
 public:
  Accounting(const Program& program, const MemoryAssignment& memory, const LoweredProgram& lowered,
             const EngineResult& run)
      : program_(program),
        memory_(memory),
        lowered_(lowered),
        run_(run),
        neighbours_(program, memory, lowered) {
    index_main_work();
  }

  void fill(SimResult& result) {
    for (const StepId step : ids(lowered_.origins)) {
      const StepOrigin& origin = lowered_.origins[step];
      const engine::StepStats& stats = run_.steps[step];
      const Seconds busy = to_seconds(stats.busy);
      switch (origin.kind) {
        case StepOrigin::kKernel:
          result.compute_busy += busy;
          break;
        case StepOrigin::kCollective:
          result.collective_busy += busy;
          if (origin.stream.pool == StreamPool::kMain) result.exposed_collective += busy;
          break;
        case StepOrigin::kCopy:
          if (origin.direction == TransferDirection::kDeviceToHost)
            result.device_to_host_busy += busy;
          if (origin.direction == TransferDirection::kHostToDevice)
            result.host_to_device_busy += busy;
          break;
        case StepOrigin::kWait:
          add_wait(step, origin, stats, result);
          break;
        case StepOrigin::kLoop:
          break;
      }
    }
    std::ranges::stable_sort(result.exposed, std::ranges::greater{}, &ExposedWait::exposed);
  }

 private:
  void index_main_work();
  void add_wait(StepId step, const StepOrigin& origin, const engine::StepStats& stats,
                SimResult& result);
  StallReason find_reason(StepId step, const StepOrigin& origin, const engine::StepStats& stats,
                          std::string& text) const;
  StallReason find_reason_at_full_speed(StepId step, const StepOrigin& origin,
                                        const engine::StepStats& stats, std::string& text) const;
  std::string_view what_contends(std::optional<engine::ResourceId> resource) const;
  Seconds work_between(StepId from, StepId to) const;

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  const EngineResult& run_;
  StepNeighbours neighbours_;
  /// Work of the main stream in front of each step, of one iteration of its loop.
  std::vector<double> work_before_;
};

void Accounting::index_main_work() {
  double sum = 0;
  work_before_.reserve(lowered_.origins.size() + 1);
  for (const StepId step : ids(lowered_.origins)) {
    work_before_.push_back(sum);
    const StepOrigin& origin = lowered_.origins[step];
    const engine::StepStats& stats = run_.steps[step];
    const bool on_main =
        origin.kind == StepOrigin::kKernel ||
        (origin.kind == StepOrigin::kCollective && origin.stream.pool == StreamPool::kMain);
    if (on_main && stats.count > 0)
      sum += to_seconds(stats.busy).value() / static_cast<double>(stats.count);
  }
  work_before_.push_back(sum);
}

Seconds Accounting::work_between(StepId from, StepId to) const {
  if (to.index <= from.index) return Seconds(0);
  return Seconds(work_before_[to.index] - work_before_[from.index]);
}

StallReason Accounting::find_reason(StepId step, const StepOrigin& origin,
                                    const engine::StepStats& stats, std::string& text) const {
  SimTime queued, latency, contended, full;
  std::optional<StepId> behind;
  std::optional<engine::ResourceId> resource;
  for (const engine::StallShare& share : run_.stalls_at(step)) {
    if (share.cause == StallCause::kQueued) queued += share.time, behind = share.behind;
    if (share.cause == StallCause::kLatency) latency += share.time;
    if (share.cause == StallCause::kContended) contended += share.time, resource = share.resource;
    if (share.cause == StallCause::kFullSpeed) full += share.time;
  }
  const SimTime most = std::max({queued, latency, contended, full});
  if (most == queued) {
    text = behind ? fmt::format("it stands behind {} in its stream",
                                program_[lowered_.origins[*behind].instruction].name)
                  : "it stands behind another";
    return StallReason::kQueue;
  }
  if (most == contended) {
    text = what_contends(resource);
    return StallReason::kContention;
  }
  if (most == latency) {
    text = "its start-up";
    return StallReason::kLatency;
  }
  const StallReason reason = find_reason_at_full_speed(step, origin, stats, text);
  if (queued > SimTime(0) && behind)
    text += fmt::format("; {} of the wait it stands behind {}", format_seconds(to_seconds(queued)),
                        program_[lowered_.origins[*behind].instruction].name);
  return reason;
}

std::string_view Accounting::what_contends(std::optional<engine::ResourceId> resource) const {
  const MachineResources& r = lowered_.resources;
  if (resource == r.both_directions) return "both directions of the link are busy";
  if (resource == r.host_memory) return "the GPUs of the host CPU share its memory";
  if (resource == r.hbm) return "HBM is busy";
  if (resource == r.sms) return "kernels hold the SMs";
  return "it shares the link";
}

/// Nothing stood in its way, so the program decides: could kernels have run meanwhile?
StallReason Accounting::find_reason_at_full_speed(StepId step, const StepOrigin& origin,
                                                  const engine::StepStats& stats,
                                                  std::string& text) const {
  const Seconds exposed_once =
      to_seconds(stats.stalled) / static_cast<double>(std::max<std::int64_t>(stats.count, 1));
  const StepId start = *origin.started;
  const Seconds after = work_between(
      StepId(step.index + 1),
      neighbours_.first_reader(step, origin.done->computation, memory_.values.at(*origin.done, 0)));
  const Seconds before = work_between(neighbours_.behind_producer(start), start);
  if (after > exposed_once * kWorthMoving) {
    text = fmt::format("{} of kernels follow before anything reads it", format_seconds(after));
    return StallReason::kDoneEarly;
  }
  if (before > exposed_once * kWorthMoving) {
    text = fmt::format("it could have started {} of kernels earlier", format_seconds(before));
    return StallReason::kIssuedLate;
  }
  text = fmt::format("only {} of kernels run between its start and the wait",
                     format_seconds(work_between(start, step)));
  return StallReason::kLink;
}

void Accounting::add_wait(StepId step, const StepOrigin& origin, const engine::StepStats& stats,
                          SimResult& result) {
  const Seconds exposed = to_seconds(stats.stalled);
  if (exposed == Seconds(0)) return;
  if (origin.direction == TransferDirection::kDeviceToHost)
    result.exposed_device_to_host += exposed;
  else if (origin.direction == TransferDirection::kHostToDevice)
    result.exposed_host_to_device += exposed;
  else if (origin.waits_for_collective)
    result.exposed_collective += exposed;
  else
    result.exposed_slices += exposed;
  ExposedWait wait{origin.instruction,
                   *origin.done,
                   origin.direction,
                   origin.waits_for_collective,
                   exposed,
                   Seconds(0),
                   StallReason::kLink,
                   ""};
  wait.duration = to_seconds(run_.steps[*origin.started].busy);
  wait.reason = find_reason(step, origin, stats, wait.explanation);
  result.exposed.push_back(std::move(wait));
}

/// Custom calls whose work is not known and was not measured, each target once.
std::vector<std::string> unknown_calls(const Program& program, const CostTable& costs) {
  std::vector<std::string> found;
  for (const ComputationId id : ids(program.computations)) {
    if (!costs.contains(id)) continue;
    for (const InstructionIndex i : program[id].instructions()) {
      std::string name(costs.work({id, i}).unknown);
      const bool measured = costs.cost({id, i}).bound == Bound::kMeasured;
      if (!name.empty() && !measured && std::ranges::find(found, name) == found.end())
        found.push_back(std::move(name));
    }
  }
  return found;
}

constexpr const char* kTooLongAdvice =
    "no training step does: is a rate of the machine far too low, or a trip count damaged?";

/// The instruction that a fault is about, where it is about one.
std::optional<InstructionId> find_culprit(const LoweredProgram& lowered,
                                          const engine::ProgramFault& fault) {
  for (const StepId step : ids(lowered.origins)) {
    const engine::Step& it = lowered.program.steps[step];
    const auto* run = std::get_if<engine::RunStep>(&it);
    const auto* start = std::get_if<engine::StartStep>(&it);
    const std::optional<engine::TaskId> task = run     ? std::optional(run->task)
                                               : start ? std::optional(start->task)
                                                       : std::nullopt;
    if (step == fault.step || (task && task == fault.task))
      return lowered.origins[step].instruction;
  }
  return std::nullopt;
}

Error error_of(const Program& program, const LoweredProgram& lowered,
               const engine::ProgramFault& fault) {
  const auto culprit = find_culprit(lowered, fault);
  const std::string who = culprit ? quoted(program[*culprit].name) : "the step";
  return error_in_file(program.path, who + " cannot be simulated: " + fault.text,
                       fault.task ? kTooLongAdvice : "");
}

}  // namespace

std::string_view cause_of(const ExposedWait& wait) {
  switch (wait.reason) {
    case StallReason::kLink:
      return wait.collective ? "fabric" : "link";
    case StallReason::kQueue:
      return "queue";
    case StallReason::kContention:
      return "contention";
    case StallReason::kIssuedLate:
      return "issued-late";
    case StallReason::kDoneEarly:
      return "done-early";
    case StallReason::kLatency:
      return "latency";
  }
  return "";
}

Result<SimResult> simulate(const Program& program, const Schedule& schedule,
                           const MemoryAssignment& memory, const HardwareProfile& profile,
                           const Topology& topology, const SimOptions& options) {
  const CostTable table = options.base_costs != nullptr
                              ? costs(program, profile, topology, *options.base_costs)
                              : costs(program, profile, topology);
  const CopyStreams copies = copy_streams_of(program);
  const StreamAssignment streams = assign_streams(program, copies);
  const LoweredProgram lowered =
      lower(program, schedule, memory, table, streams, profile, topology);
  if (const auto fault = engine::find_fault(lowered.program))
    return error_of(program, lowered, *fault);
  const Result<EngineResult> finished =
      engine::run(lowered.program, {.extend_loops = options.extend_loops});
  if (!finished.ok())
    return error_in_file(program.path, "the step " + finished.error().text, kTooLongAdvice);
  const EngineResult& run = *finished;

  SimResult result;
  result.step = to_seconds(run.makespan);
  Accounting(program, memory, lowered, run).fill(result);
  result.idle = to_seconds(run.streams[engine::kMainStream].latency);
  for (const InstructionId id : memory.schedule.order)
    if (const auto& stream = streams[id.computation].empty()
                                 ? std::nullopt
                                 : streams[id.computation][id.instruction.index])
      result.streams.push_back({id, *stream});
  result.memory = sum_totals(memory);
  result.traffic = sum_traffic(program);
  result.flops = count_flops(program, table);
  result.unknown = unknown_calls(program, table);
  result.assumptions = lowered.assumptions;
  if (!topology.assumption.empty())
    result.assumptions.insert(result.assumptions.begin(), topology.assumption);
  const std::string capability = capability_in_name(program.path);
  if (!capability.empty() && capability != profile.device.compute_capability)
    result.assumptions.push_back(fmt::format(
        "the kernels and the memory are those that XLA chose for compute capability {}; {} has {} "
        "and would get others",
        capability, profile.device.xla_name, profile.device.compute_capability));
  if (copies == CopyStreams::kRoundRobin)
    result.assumptions.push_back(
        "host copies share four streams with other asynchronous work, as XLA did before 2026-07");
  return result;
}

}  // namespace spillway
