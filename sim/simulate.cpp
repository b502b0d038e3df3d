#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/base/format.h"
#include "model/hlo/dump_facts.h"
#include "sim/engine/engine.h"
#include "sim/main_work.h"
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
             const EngineResult& run, bool explains)
      : program_(program),
        memory_(memory),
        lowered_(lowered),
        run_(run),
        busy_of_slot_(lowered.program.slot_count) {
    if (!explains) return;
    explains_.emplace(
        Surroundings{StepNeighbours(program, memory, lowered), MainWork(lowered, run)});
    for (const StepId step : ids(lowered.program.steps))
      if (const auto* start = std::get_if<engine::StartStep>(&lowered.program.steps[step]))
        busy_of_slot_[start->slot] += run.steps[step].busy;
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
          if (origin.stream.pool == StreamPool::kMain) add_synchronous(origin, busy, result);
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
  void add_synchronous(const StepOrigin& origin, Seconds busy, SimResult& result) const;
  void add_wait(StepId step, const StepOrigin& origin, const engine::StepStats& stats,
                SimResult& result);
  Seconds time_of_starts(StepId wait) const;
  StallReason find_reason(StepId step, const StepOrigin& origin, const engine::StepStats& stats,
                          std::string& text) const;
  StallReason find_reason_at_full_speed(StepId step, const StepOrigin& origin,
                                        const engine::StepStats& stats, std::string& text) const;
  std::string_view what_contends(std::optional<engine::ResourceId> resource) const;

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  const EngineResult& run_;
  /// What reasons are found in; empty where nobody asks for them.
  struct Surroundings {
    StepNeighbours neighbours;
    MainWork work;
  };
  std::optional<Surroundings> explains_;
  IdVector<engine::SlotId, SimTime> busy_of_slot_;
};

StallReason Accounting::find_reason(StepId step, const StepOrigin& origin,
                                    const engine::StepStats& stats, std::string& text) const {
  SimTime queued, latency, contended, full;
  // Of several in front of it, and of several resources, what held it up longest.
  engine::StallShare longest_queue, scarcest;
  for (const engine::StallShare& share : run_.stalls_at(step)) {
    if (share.cause == StallCause::kQueued) {
      queued += share.time;
      if (share.time > longest_queue.time) longest_queue = share;
    } else if (share.cause == StallCause::kContended) {
      contended += share.time;
      if (share.time > scarcest.time) scarcest = share;
    } else if (share.cause == StallCause::kLatency) {
      latency += share.time;
    } else {
      full += share.time;
    }
  }
  const std::optional<StepId> behind = longest_queue.behind;
  const SimTime most = std::max({queued, latency, contended, full});
  if (most == queued) {
    text = behind ? fmt::format("it stands behind {} in its stream",
                                program_[lowered_.origins[*behind].instruction].name)
                  : "it stands behind another";
    return StallReason::kQueue;
  }
  if (most == contended) {
    text = what_contends(scarcest.resource);
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
  if (resource == r.host_memory || resource == r.host_read || resource == r.host_write)
    return "the GPUs of the host CPU share its memory";
  if (resource == r.hbm) return "HBM is busy";
  if (resource == r.sms) return "kernels hold the SMs";
  if (resource == r.fabric) return "another collective uses the fabric";
  if (resource == r.network) return "another collective uses the network";
  return "it shares the link";
}

/// Nothing stood in its way, so the program decides: could kernels have run meanwhile?
StallReason Accounting::find_reason_at_full_speed(StepId step, const StepOrigin& origin,
                                                  const engine::StepStats& stats,
                                                  std::string& text) const {
  const Seconds exposed_once =
      to_seconds(stats.stalled) / static_cast<double>(std::max<std::int64_t>(stats.count, 1));
  const auto& [neighbours, work] = *explains_;
  const StepId start = *origin.started;
  const Seconds after = work.between(
      StepId(step.index + 1),
      neighbours.first_reader(step, origin.done->computation, memory_.values.at(*origin.done, 0)));
  const Seconds before = work.between(neighbours.behind_producer(start), start);
  if (after > exposed_once * kWorthMoving) {
    text = fmt::format("{} of kernels follow before anything reads it", format_seconds(after));
    return StallReason::kDoneEarly;
  }
  if (before > exposed_once * kWorthMoving) {
    text = fmt::format("it could have started {} of kernels earlier", format_seconds(before));
    return StallReason::kIssuedLate;
  }
  text = fmt::format("only {} of kernels run between its start and the wait",
                     format_seconds(work.between(start, step)));
  return StallReason::kLink;
}

void Accounting::add_synchronous(const StepOrigin& origin, Seconds busy, SimResult& result) const {
  result.exposed_collective += busy;
  if (busy == Seconds(0) || !explains_) return;
  result.exposed.push_back({origin.instruction, origin.instruction, std::nullopt,
                            /*collective=*/true, busy, busy, StallReason::kSynchronous,
                            "it runs on the main stream, where nothing runs beside it"});
}

/// Of all that hand over through the slot of a wait.
Seconds Accounting::time_of_starts(StepId wait) const {
  const engine::SlotId slot = std::get<engine::WaitStep>(lowered_.program.steps[wait]).slot;
  return to_seconds(busy_of_slot_[slot]);
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
  if (!explains_) return;
  ExposedWait wait{origin.instruction,
                   *origin.done,
                   origin.direction,
                   origin.waits_for_collective,
                   exposed,
                   Seconds(0),
                   StallReason::kLink,
                   ""};
  wait.duration = time_of_starts(step);
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

/// What has to be taken for granted about the streams of host copies; empty if there are none.
std::string stream_assumption(const Program& program, const SimResult& result,
                              const PreparedStep& prepared) {
  std::map<DeviceStream, int> users;
  std::vector<DeviceStream> of_copies;
  for (const StreamUse& use : result.streams) {
    ++users[use.stream];
    if (host_transfer(program, use.start)) of_copies.push_back(use.stream);
  }
  if (of_copies.empty()) return "";
  if (prepared.copies == CopyStreams::kBlocking)
    return "host copies hold up the main stream until they are done, as those of pageable memory "
           "do";
  if (prepared.copies == CopyStreams::kDedicated)
    return prepared.copies_are_known
               ? ""
               : "offloads have a stream and reloads have one, as from jaxlib "
                 "0.12 on; 0.11 has neither (--jaxlib says which it was)";
  const auto crowded =
      std::ranges::count_if(of_copies, [&](DeviceStream stream) { return users[stream] > 1; });
  return fmt::format(
      "host copies take four streams in turn with other asynchronous work, as before jaxlib 0.12: "
      "{} of {} have others on theirs",
      crowded, of_copies.size());
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
    case StallReason::kSynchronous:
      return "synchronous";
  }
  return "";
}

namespace {

/// Everything that a person asks beside the numbers.
void add_words(const Program& program, const MemoryAssignment& memory,
               const HardwareProfile& profile, const Topology& topology,
               const PreparedStep& prepared, SimResult& result) {
  const StreamAssignment& streams = prepared.streams;
  for (const InstructionId id : memory.schedule.order)
    if (const auto& stream = streams[id.computation].empty()
                                 ? std::nullopt
                                 : streams[id.computation][id.instruction.index])
      result.streams.push_back({id, *stream});
  result.unknown = unknown_calls(program, prepared.costs);
  result.assumptions = prepared.lowered.assumptions;
  if (!topology.assumption.empty())
    result.assumptions.insert(result.assumptions.begin(), topology.assumption);
  const std::string capability = capability_in_name(program.path);
  if (!capability.empty() && capability != profile.device.compute_capability)
    result.assumptions.push_back(fmt::format(
        "the kernels and the memory are those that XLA chose for compute capability {}; {} has {} "
        "and would get others",
        capability, profile.device.xla_name, profile.device.compute_capability));
  if (std::string line = stream_assumption(program, result, prepared); !line.empty())
    result.assumptions.push_back(std::move(line));
}

Result<SimResult> simulate(const Program& program, const MemoryAssignment& memory,
                           const HardwareProfile& profile, const Topology& topology,
                           const PreparedStep& prepared, const engine::EngineOptions& options,
                           bool explains) {
  const Result<EngineResult> finished = run_step(program, prepared, options);
  if (!finished.ok()) return finished.error();
  const EngineResult& run = *finished;
  SimResult result;
  result.step = to_seconds(run.makespan);
  Accounting(program, memory, prepared.lowered, run, explains).fill(result);
  result.idle = to_seconds(run.streams[engine::kMainStream].latency);
  result.memory = sum_totals(memory);
  result.traffic = sum_traffic(program);
  result.flops = count_flops(program, prepared.costs);
  if (explains) add_words(program, memory, profile, topology, prepared, result);
  return result;
}

}  // namespace

Result<SimResult> simulate(const Program& program, const MemoryAssignment& memory,
                           const HardwareProfile& profile, const Topology& topology,
                           const PreparedStep& prepared, const engine::EngineOptions& options) {
  return simulate(program, memory, profile, topology, prepared, options, /*explains=*/true);
}

Result<SimResult> simulate(const Program& program, const Schedule& schedule,
                           const MemoryAssignment& memory, const HardwareProfile& profile,
                           const Topology& topology, const SimOptions& options) {
  const Result<PreparedStep> prepared =
      prepare_step(program, schedule, memory, profile, topology,
                   {.base_costs = options.base_costs, .copy_streams = options.copy_streams});
  if (!prepared.ok()) return prepared.error();
  return simulate(program, memory, profile, topology, *prepared,
                  engine::EngineOptions{.extend_loops = options.extend_loops}, options.explains);
}

}  // namespace spillway
