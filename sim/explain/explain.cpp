#include "sim/explain/explain.h"

#include <algorithm>
#include <map>

#include "sim/engine/task_table.h"
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

/// Who uses what holds a task back, for how long.
class ContentionListener : public engine::Listener {
 public:
  ContentionListener(const engine::EngineProgram& program, const std::vector<StepId>& starts)
      : program_(program), starts_(starts) {}

  /// By resource: steps and the time they ran beside the task that it held back.
  std::map<ResourceId, std::map<StepId, SimTime>> beside;

  void on_rates_changed(SimTime at, std::span<const engine::RunningTask> running) override {
    if (limit_)
      for (const StepId step : others_) beside[*limit_][step] += at - since_;
    limit_.reset();
    others_.clear();
    since_ = at;
    for (const engine::RunningTask& task : running)
      if (std::ranges::find(starts_, task.step) != starts_.end()) limit_ = task.limit;
    if (!limit_) return;
    for (const engine::RunningTask& task : running)
      if (std::ranges::find(starts_, task.step) == starts_.end() && uses(task.task, *limit_))
        others_.push_back(task.step);
  }
  /// What repeats counts once more; moments in between would only shift.
  void on_repeated(const engine::Repeated& repeated) override {
    since_ += repeated.period * repeated.times;
  }

 private:
  bool uses(engine::TaskId id, ResourceId resource) const {
    const engine::Task& task = program_.tasks[id];
    for (std::uint32_t k = task.first_demand; k < task.end_demand; ++k)
      if (program_.demands[k].resource == resource && program_.demands[k].amount > 0) return true;
    return false;
  }

  const engine::EngineProgram& program_;
  const std::vector<StepId>& starts_;
  std::optional<ResourceId> limit_;
  std::vector<StepId> others_;
  SimTime since_;
};

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

  CopyExplanation explain(StepId start) const {
    const Target target = remedies_.find_target(start);
    CopyExplanation e;
    describe(start, e);
    e.step = to_seconds(run_.makespan);
    e.exposed = remedies_.exposed_now(target);
    for (const StepId wait : target.waits) e.waits.push_back(describe_wait(wait));
    e.while_waiting = stall_parts(target);
    e.delays = delayed_by(target);
    if (e.exposed > Seconds(0)) {
      e.remedies = remedies_.find(target);
    } else if (!target.waits.empty()) {
      e.slack = slack_of(target);
      if (e.direction) e.slowest_link = remedies_.slowest_link(target);
    }
    return e;
  }

 private:
  void describe(StepId start, CopyExplanation& e) const;
  CopyExplanation::Wait describe_wait(StepId wait) const;
  std::vector<StallPart> stall_parts(const Target& target) const;
  std::string used_beside(const ContentionListener& listener, ResourceId resource) const;
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

void Explainer::describe(StepId start, CopyExplanation& e) const {
  const StepOrigin& origin = lowered_.origins[start];
  e.instruction = name(start);
  e.residual = labels_.of_step[start].residual;
  e.direction = origin.direction;
  e.collective = origin.kind == StepOrigin::kCollective;
  e.stream = origin.stream.pool == StreamPool::kMain ? "main stream" : to_string(origin.stream);
  e.bytes = moved_bytes(program_, prepared_.costs, origin.instruction);
  const engine::StepStats& stats = run_.steps[start];
  e.runs = stats.count;
  const auto once = [&](SimTime all) {
    return to_seconds(all) / static_cast<double>(std::max<std::int64_t>(e.runs, 1));
  };
  e.busy = once(stats.busy);
  e.alone = once(stats.alone);
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

std::string Explainer::used_beside(const ContentionListener& listener, ResourceId resource) const {
  const auto found = listener.beside.find(resource);
  if (found == listener.beside.end()) return "";
  std::vector<std::pair<SimTime, StepId>> users;
  for (const auto& [step, time] : found->second) users.emplace_back(time, step);
  std::ranges::sort(users, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (std::size_t k = 0; k < std::min(users.size(), kBeside); ++k)
    text += (k == 0 ? "" : ", ") + name(users[k].second);
  if (users.size() > kBeside) text += " and others";
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
    ContentionListener listener(lowered_.program, target.starts);
    check(engine::run(lowered_.program, {}, &listener).ok(), "a step that ran takes too long");
    for (auto& [key, part] : parts)
      if (part.cause == StallCause::kContended)
        part.beside = used_beside(listener, ResourceId(std::get<1>(key)));
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
  const auto starts = find_copies(program, lowered, labels, name);
  if (!starts.ok()) return starts.error();
  const auto recorded = record_history(program, memory, prepared, kMostHappenings);
  if (!recorded.ok()) return recorded.error();
  const Explainer explainer(program, memory, prepared, result, recorded->run, labels,
                            recorded->history);
  std::vector<CopyExplanation> explanations;
  for (const StepId start : *starts) explanations.push_back(explainer.explain(start));
  return explanations;
}

}  // namespace spillway
