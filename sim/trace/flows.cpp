#include "sim/trace/flows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/program/call_graph.h"

namespace spillway {
namespace {

using engine::StepId;

bool is_work(const StepOrigin& origin) {
  return origin.kind != StepOrigin::kWait && origin.kind != StepOrigin::kLoop;
}

/// Which steps read a value or a buffer.
template <typename Key>
class ReaderIndex {
 public:
  void add(Key key, StepId step) { readers_.emplace_back(key, step); }
  void sort() { std::ranges::sort(readers_); }
  /// The first in [from, end).
  std::optional<StepId> first(Key key, StepId from, StepId end) const {
    const auto reader = std::ranges::lower_bound(readers_, std::pair(key, from));
    if (reader == readers_.end() || reader->first != key || reader->second >= end)
      return std::nullopt;
    return reader->second;
  }

 private:
  std::vector<std::pair<Key, StepId>> readers_;
};

/// The step of an access to a stack: where the body of its loop runs it.
std::optional<StepId> step_of(const Program& program, const MemoryAssignment& memory,
                              const std::map<InstructionId, StepId>& steps,
                              const StackAccess& access) {
  const ComputationId body = body_of(program, access.loop);
  InstructionId at = access.instruction;
  while (at.computation != body && !steps.contains(at)) {
    const auto caller = memory.schedule.caller[at.computation];
    if (!caller) return std::nullopt;
    at = *caller;
  }
  const auto step = steps.find(at);
  return step == steps.end() ? std::nullopt : std::optional(step->second);
}

std::map<InstructionId, StepId> steps_by_instruction(const LoweredProgram& lowered) {
  std::map<InstructionId, StepId> steps;
  for (const StepId step : ids(lowered.origins))
    if (const StepOrigin& origin = lowered.origins[step]; is_work(origin))
      steps.emplace(origin.instruction, step);
  return steps;
}

/// The array in host memory that an offload makes; empty where it writes into one that exists.
std::optional<ValueId> host_array_of(const Program& program, const MemoryAssignment& memory,
                                     InstructionId offload) {
  if (const auto transfer = host_transfer(program, offload); transfer->host_array)
    return std::nullopt;
  const Shape shape = program[offload].shape;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    if (!shape.at(node).is_array() || !is_host(shape.at(node).space())) continue;
    const ValueId value = memory.values.at(offload, node);
    if (memory.values[value].defined_at.instruction == offload) return value;
  }
  return std::nullopt;
}

CopyLabel label_for(const Residual& residual, const std::optional<LayerWalk>& walk) {
  CopyLabel label{label_of(residual), residual.names, walk};
  label.names.push_back(residual.id);
  return label;
}

class FlowFinder {
 public:
  FlowFinder(const Program& program, const MemoryAssignment& memory, const LoweredProgram& lowered,
             const CopyLabels& labels, const History& history)
      : program_(program),
        memory_(memory),
        lowered_(lowered),
        labels_(labels),
        history_(history),
        runs_of_(lowered.origins.size()),
        offloads_of_(lowered.origins.size()) {
    for (const RunId run : ids(history.runs))
      if (lowered.origins[history.runs[run].step].direction)
        runs_of_[history.runs[run].step].push_back(run);
  }

  /// What comes back from a stack was written into it: in the loop, or by an iteration peeled off.
  void pair_residuals() {
    std::map<std::string_view, std::vector<StepId>> writes;
    for (const bool reload : {false, true})
      for (const StepId step : ids(lowered_.origins)) {
        const StepOrigin& origin = lowered_.origins[step];
        const std::string& residual = labels_.of_step[step].residual;
        if (!is_work(origin) || !origin.direction || residual.empty()) continue;
        if (!reload && origin.direction == TransferDirection::kDeviceToHost)
          writes[residual].push_back(step);
        if (reload && origin.direction == TransferDirection::kHostToDevice)
          offloads_of_[step] = writes[residual];
      }
  }

  /// Elsewhere the reload reads the very array that the offload made.
  void pair_arrays() {
    std::map<ValueId, StepId> made_by;
    for (const StepId step : ids(lowered_.origins)) {
      const StepOrigin& origin = lowered_.origins[step];
      if (!is_work(origin) || origin.direction != TransferDirection::kDeviceToHost) continue;
      if (const auto value = host_array_of(program_, memory_, origin.instruction))
        made_by.emplace(*value, step);
    }
    for (const StepId step : ids(lowered_.origins)) {
      const StepOrigin& origin = lowered_.origins[step];
      if (!is_work(origin) || origin.direction != TransferDirection::kHostToDevice) continue;
      const auto transfer = host_transfer(program_, origin.instruction);
      if (!offloads_of_[step].empty() || !transfer->host_array) continue;
      const auto maker =
          made_by.find(memory_.values.at(origin.instruction.computation, *transfer->host_array));
      if (maker != made_by.end()) offloads_of_[step] = {maker->second};
    }
  }

  Flows run() {
    Flows flows;
    for (const StepId step : ids(lowered_.origins)) {
      const StepOrigin& origin = lowered_.origins[step];
      if (!is_work(origin) || origin.direction != TransferDirection::kHostToDevice) continue;
      std::map<Place, RunId> offloads;
      for (const StepId offload : offloads_of_[step])
        for (const RunId run : runs_of_[offload])
          if (const auto place = place_of(run)) offloads[*place] = run;
      for (const RunId run : runs_of_[step]) add_flow(run, offloads, flows);
    }
    return flows;
  }

 private:
  /// The same for an offload and its reload: the layer, or else the iteration, of which entry.
  using Place = std::pair<std::int64_t, std::int64_t>;

  /// Of an access to a stack whose walk is not known nobody can tell which reload is whose.
  std::optional<Place> place_of(RunId id) const {
    const TaskRun& run = history_.runs[id];
    const CopyLabel& label = labels_.of_step[run.step];
    if (label.residual.empty()) return Place(run.entry, run.iteration);
    if (!label.walk) return std::nullopt;
    if (label.peeled) return Place(run.iteration, label.walk->first);
    return Place(run.entry, label.walk->first + label.walk->step * run.iteration);
  }

  void add_flow(RunId reload, const std::map<Place, RunId>& offloads, Flows& flows) {
    const TaskRun& run = history_.runs[reload];
    Flow flow{labels_.of_step[run.step].residual, {}};
    if (flow.name.empty())
      flow.name = std::string(program_[lowered_.origins[run.step].instruction].name);
    const auto place = place_of(reload);
    const auto offload = place ? offloads.find(*place) : offloads.end();
    if (offload != offloads.end())
      flow.runs.push_back(offload->second);
    else
      ++flows.reloads_without_offload;
    flow.runs.push_back(reload);
    if (run.read_by) flow.runs.push_back(*run.read_by);
    if (flow.runs.size() >= 2) flows.all.push_back(std::move(flow));
  }

  const Program& program_;
  const MemoryAssignment& memory_;
  const LoweredProgram& lowered_;
  const CopyLabels& labels_;
  const History& history_;
  IdVector<StepId, std::vector<RunId>> runs_of_;       ///< of host copies
  IdVector<StepId, std::vector<StepId>> offloads_of_;  ///< of a reload
};

}  // namespace

IdVector<StepId, std::optional<StepId>> find_readers(const Program& program,
                                                     const MemoryAssignment& memory,
                                                     const LoweredProgram& lowered) {
  ReaderIndex<ValueId> by_value;
  ReaderIndex<BufferId> by_buffer;
  for (const StepId step : ids(lowered.origins)) {
    const StepOrigin& origin = lowered.origins[step];
    if (!is_work(origin)) continue;
    const InstructionId id = origin.instruction;
    for (const Operand& operand : program[id.computation].operands(id.instruction)) {
      const ValueId value = memory.values.at(id.computation, operand);
      by_value.add(value, step);
      by_buffer.add(memory.liveness.buffer_of[value], step);
    }
  }
  by_value.sort();
  by_buffer.sort();
  const auto loops = loops_around(lowered.program);
  IdVector<StepId, std::optional<StepId>> readers(lowered.origins.size());
  for (const StepId wait : ids(lowered.origins)) {
    const StepOrigin& origin = lowered.origins[wait];
    if (origin.kind != StepOrigin::kWait) continue;
    const ValueId arrived = memory.values.at(*origin.done, 0);
    readers[wait] = by_value.first(arrived, StepId(wait.index + 1), StepId(lowered.origins.size()));
    if (!readers[wait] && loops[wait])
      readers[wait] =
          by_buffer.first(memory.liveness.buffer_of[arrived], StepId(loops[wait]->index + 1), wait);
  }
  return readers;
}

CopyLabels label_copies(const Program& program, const MemoryAssignment& memory,
                        const LoweredProgram& lowered, const ResidualTable& residuals) {
  CopyLabels labels;
  labels.of_step.resize(lowered.origins.size());
  labels.of_loop.resize(lowered.origins.size());
  const auto steps = steps_by_instruction(lowered);
  std::map<InstructionId, StepId> loops;
  for (const StepId step : ids(lowered.origins))
    if (lowered.origins[step].kind == StepOrigin::kLoop)
      loops.emplace(lowered.origins[step].instruction, step);
  IdVector<StepId, std::uint8_t> disputed(lowered.origins.size());
  const auto label = [&](const Residual& residual, const StackAccess& access) {
    const auto walk = find_layer_walk(program, memory.schedule, access);
    if (const auto loop = loops.find(access.loop); walk && loop != loops.end()) {
      auto& known = labels.of_loop[loop->second];
      if (known && *known != *walk) disputed[loop->second] = 1;
      known = walk;
    }
    const auto step = step_of(program, memory, steps, access);
    if (step && lowered.origins[*step].direction) {
      CopyLabel& copy = labels.of_step[*step];
      copy = {label_of(residual), residual.names, walk};
      copy.names.push_back(residual.id);
    }
  };
  std::map<BufferId, const Residual*> stacks;
  for (const Residual& residual : residuals.residuals) {
    label(residual, residual.write);
    for (const StackAccess& read : residual.reads) label(residual, read);
    if (residual.peeled && !residual.copied_between_loops) stacks[residual.stack] = &residual;
  }
  for (const StepId step : ids(lowered.origins)) {
    const StepOrigin& origin = lowered.origins[step];
    if (!is_work(origin) || !origin.direction || !labels.of_step[step].residual.empty()) continue;
    const InstructionId id = origin.instruction;
    const auto array = host_transfer(program, id)->host_array;
    if (!array) continue;
    const auto stack =
        stacks.find(memory.liveness.buffer_of[memory.values.at(id.computation, *array)]);
    if (stack == stacks.end()) continue;
    CopyLabel& copy = labels.of_step[step];
    copy = label_for(*stack->second, {});
    copy.peeled = true;
    if (const auto layer = find_layer(program, memory.schedule, id))
      copy.walk = LayerWalk{*layer, 0};
  }
  for (const StepId loop : ids(disputed))
    if (disputed[loop] != 0) labels.of_loop[loop].reset();
  return labels;
}

Flows find_flows(const Program& program, const MemoryAssignment& memory,
                 const LoweredProgram& lowered, const CopyLabels& labels, const History& history) {
  FlowFinder finder(program, memory, lowered, labels, history);
  finder.pair_residuals();
  finder.pair_arrays();
  return finder.run();
}

}  // namespace spillway
