#include "sim/explain/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/explain/contention.h"
#include "sim/explain/find_copy.h"
#include "sim/trace/flows.h"
#include "sim/trace/record_history.h"

namespace spillway {
namespace {

using engine::EngineResult;
using engine::ResourceId;
using engine::StallCause;
using engine::StepId;

/// Enough to see each iteration of any step that a person looks at; else what was simulated.
constexpr std::size_t kMostHappenings = 2'000'000;
constexpr std::size_t kBeside = 3;

std::string name_of(const MachineResources& machine, ResourceId resource) {
  if (resource == machine.both_directions) return "the link in both directions";
  if (resource == machine.device_to_host) return "the link from device to host";
  if (resource == machine.host_to_device) return "the link from host to device";
  if (resource == machine.hbm) return "HBM";
  if (resource == machine.sms) return "the SMs";
  if (resource == machine.fabric) return "the fabric";
  if (resource == machine.network) return "the network";
  return "the host's memory";
}

class Explainer {
 public:
  Explainer(const Program& program, const MemoryAssignment& memory, const PreparedStep& prepared,
            const SimResult& result, const EngineResult& run, const CopyLabels& labels,
            const History& history)
      : program_(program),
        memory_(memory),
        prepared_(prepared),
        lowered_(prepared.lowered),
        result_(result),
        run_(run),
        labels_(labels),
        history_(history),
        remedies_(program, memory, prepared, run),
        readers_(find_readers(program, memory, prepared.lowered)) {}

  CopyExplanation explain(const Target& target) const {
    CopyExplanation e;
    describe(target, e);
    e.step = to_seconds(run_.makespan);
    e.exposed = exposed_of(target, run_);
    for (const StepId wait : target.waits) e.waits.push_back(describe_wait(wait));
    e.while_waiting = stall_parts(target);
    e.delays = delayed_by(target);
    if (e.exposed > Seconds(0)) {
      e.remedies = remedies_.find(target);
    } else if (!target.waits.empty() && e.runs > 0) {
      e.slack = slack_of(target);
      if (e.direction) e.slowest_rate = remedies_.slowest_rate(target);
    }
    return e;
  }

 private:
  void describe(const Target& target, CopyExplanation& e) const;
  CopyExplanation::Wait describe_wait(StepId wait) const;
  std::vector<StallPart> stall_parts(const Target& target) const;
  std::string used_beside(const std::vector<Sharer>& sharers) const;
  std::vector<CopyExplanation::Delayed> delayed_by(const Target& target) const;
  std::optional<Seconds> slack_of(const Target& target) const;
  bool grows_with_batch(InstructionId copy) const;
  std::string name(StepId step) const {
    return std::string(program_[lowered_.origins[step].instruction].name);
  }

  const Program& program_;
  const MemoryAssignment& memory_;
  const PreparedStep& prepared_;
  const LoweredProgram& lowered_;
  const SimResult& result_;
  const EngineResult& run_;
  const CopyLabels& labels_;
  const History& history_;
  RemedyFinder remedies_;
  IdVector<StepId, std::optional<StepId>> readers_;
};

/// What lies in an array of the caller's has the size of parameters and optimizer state.
bool Explainer::grows_with_batch(InstructionId copy) const {
  const auto callers = [&](ValueId value) {
    const auto cell = memory_.cell_of[value];
    if (!cell) return false;
    const Allocation& allocation = memory_.allocations[memory_.cells[*cell].allocation];
    return is_host(allocation.space) && (allocation.parameter || allocation.live_out);
  };
  for (const Operand& operand : program_[copy.computation].operands(copy.instruction))
    if (callers(memory_.values.at(copy.computation, operand))) return false;
  const Shape shape = program_[copy].shape;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    if (callers(memory_.values.at(copy, node))) return false;
  return true;
}

void Explainer::describe(const Target& target, CopyExplanation& e) const {
  const StepOrigin& origin = lowered_.origins[target.start];
  e.instruction = name(target.start);
  e.residual = labels_.of_step[target.start].residual;
  e.direction = origin.direction;
  e.collective = origin.kind == StepOrigin::kCollective;
  e.stream = origin.stream.pool == StreamPool::kMain ? "main stream" : to_string(origin.stream);
  e.bytes = moved_bytes(program_, prepared_.costs, origin.instruction);
  SimTime busy, alone;
  for (const StepId start : target.starts) {
    e.starts.push_back(name(start));
    const engine::StepStats& stats = run_.steps[start];
    e.runs += stats.count;
    busy += stats.busy;
    alone += stats.alone;
  }
  const auto runs = static_cast<double>(std::max<std::int64_t>(e.runs, 1));
  e.busy = to_seconds(busy) / runs;
  e.alone = to_seconds(alone) / runs;
  if (origin.direction) e.grows_with_batch = grows_with_batch(origin.instruction);
}

CopyExplanation::Wait Explainer::describe_wait(StepId wait) const {
  const InstructionId done = *lowered_.origins[wait].done;
  CopyExplanation::Wait w;
  w.done = std::string(program_[done].name);
  for (StepId next(wait.index + 1); next.index < lowered_.origins.size();
       next = StepId(next.index + 1)) {
    if (!std::holds_alternative<engine::RunStep>(lowered_.program.steps[next])) continue;
    w.next = name(next);
    break;
  }
  if (readers_[wait]) w.first_reader = name(*readers_[wait]);
  const engine::StepStats& stats = run_.steps[wait];
  w.times = stats.count;
  w.exposed = to_seconds(stats.stalled);
  for (const WaitSpan& span : history_.waits) {
    if (span.step != wait || span.from == span.to) continue;
    ++w.blocked;
    w.longest = std::max(w.longest, to_seconds(span.to - span.from));
  }
  const auto exposed = std::ranges::find(result_.exposed, done, &ExposedWait::done);
  if (exposed != result_.exposed.end()) {
    w.cause = std::string(cause_of(*exposed));
    w.explanation = exposed->explanation;
  }
  return w;
}

std::string Explainer::used_beside(const std::vector<Sharer>& sharers) const {
  std::string text;
  for (std::size_t k = 0; k < std::min(sharers.size(), kBeside); ++k)
    text += (k == 0 ? "" : ", ") + name(sharers[k].step);
  if (sharers.size() > kBeside) text += " and others";
  return text;
}

std::vector<StallPart> Explainer::stall_parts(const Target& target) const {
  std::map<std::tuple<StallCause, std::uint32_t>, StallPart> parts;
  bool contended = false;
  for (const StepId wait : target.waits)
    for (const engine::StallShare& share : run_.stalls_at(wait)) {
      std::uint32_t who = 0;
      if (share.behind) who = share.behind->index;
      if (share.resource) who = share.resource->index;
      StallPart& part = parts[{share.cause, who}];
      part.cause = share.cause;
      if (share.behind) part.culprit = name(*share.behind);
      if (share.resource) part.culprit = name_of(lowered_.resources, *share.resource);
      part.time += to_seconds(share.time);
      contended |= share.cause == StallCause::kContended;
    }
  if (contended) {
    auto sharers = find_sharers(lowered_.program, target);
    for (auto& [key, part] : parts)
      if (part.cause == StallCause::kContended)
        part.beside = used_beside(sharers[ResourceId(std::get<1>(key))]);
  }
  std::vector<StallPart> sorted;
  for (auto& [key, part] : parts) sorted.push_back(std::move(part));
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &StallPart::time);
  return sorted;
}

std::vector<CopyExplanation::Delayed> Explainer::delayed_by(const Target& target) const {
  std::map<StepId, Seconds> waits;
  for (const engine::StallShare& share : run_.stalls)
    if (share.behind && std::ranges::find(target.starts, *share.behind) != target.starts.end() &&
        !std::ranges::binary_search(target.waits, share.wait))
      waits[share.wait] += to_seconds(share.time);
  std::vector<CopyExplanation::Delayed> delayed;
  for (const auto& [wait, time] : waits)
    if (time > Seconds(0)) delayed.push_back({name(wait), time});
  std::ranges::stable_sort(delayed, std::ranges::greater{}, &CopyExplanation::Delayed::time);
  return delayed;
}

/// The least time from the end of the copy to where the main stream gets to the wait.
std::optional<Seconds> Explainer::slack_of(const Target& target) const {
  std::optional<SimTime> least;
  for (const WaitSpan& wait : history_.waits) {
    if (!std::ranges::binary_search(target.waits, wait.step)) continue;
    const SimTime slack = wait.from - history_.runs[wait.awaited].finished;
    if (!least || slack < *least) least = slack;
  }
  return least ? std::optional(to_seconds(*least)) : std::nullopt;
}

}  // namespace

Result<std::vector<CopyExplanation>> explain_copies(
    const Program& program, const MemoryAssignment& memory, const PreparedStep& prepared,
    const SimResult& result, const ResidualTable& residuals, const std::string& name) {
  const LoweredProgram& lowered = prepared.lowered;
  const CopyLabels labels = label_copies(program, memory, lowered, residuals);
  const auto starts = find_copies(program, lowered, labels, residuals, name);
  if (!starts.ok()) return starts.error();
  const auto recorded = record_history(program, memory, prepared, kMostHappenings);
  if (!recorded.ok()) return recorded.error();
  const Explainer explainer(program, memory, prepared, result, recorded->run, labels,
                            recorded->history);
  std::vector<CopyExplanation> explanations;
  std::set<StepId> explained;
  for (const StepId start : *starts) {
    if (explained.contains(start)) continue;
    const Target target = find_target(lowered, recorded->run, start);
    explained.insert(target.starts.begin(), target.starts.end());
    explanations.push_back(explainer.explain(target));
  }
  return explanations;
}

}  // namespace spillway
