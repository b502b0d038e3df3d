#include "sim/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/engine/task_table.h"
#include "sim/trace/event_writer.h"
#include "sim/trace/flows.h"
#include "sim/trace/record_history.h"

namespace spillway {
namespace {

using engine::StepId;
using engine::StreamId;

// The processes of the trace, in the order in which they are shown.
constexpr int kMemoryAndLink = 1, kStreams = 2, kEngines = 3;
constexpr int kLoopsRow = 1, kFirstStreamRow = 10, kRowsOfEngine = 1000, kFirstEngineRow = 100'000;

/// What does the work of a task, on whatever stream it stands.
enum class WorkingUnit : std::uint8_t { kSms, kToHost, kFromHost, kWithinHbm, kFabric };
constexpr std::pair<WorkingUnit, const char*> kWorkingUnits[] = {
    {WorkingUnit::kSms, "SMs: kernels"},
    {WorkingUnit::kToHost, "copy engine: device to host"},
    {WorkingUnit::kFromHost, "copy engine: host to device"},
    {WorkingUnit::kWithinHbm, "copies within HBM"},
    {WorkingUnit::kFabric, "fabric: collectives"},
};

WorkingUnit unit_of(const StepOrigin& origin, const Cost& cost) {
  if (origin.kind == StepOrigin::kCollective) return WorkingUnit::kFabric;
  if (origin.direction == TransferDirection::kDeviceToHost) return WorkingUnit::kToHost;
  if (origin.direction == TransferDirection::kHostToDevice) return WorkingUnit::kFromHost;
  return origin.kind == StepOrigin::kCopy && !cost.uses_sms ? WorkingUnit::kWithinHbm
                                                            : WorkingUnit::kSms;
}

double microseconds(SimTime time) { return static_cast<double>(time.value()) * 1e-6; }

class TraceMaker {
 public:
  TraceMaker(const Program& program, const HardwareProfile& profile, const PreparedStep& prepared,
             const SimResult& result, const CopyLabels& labels, const History& history)
      : program_(program),
        profile_(profile),
        costs_(prepared.costs),
        lowered_(prepared.lowered),
        result_(result),
        labels_(labels),
        history_(history),
        tasks_(lowered_.program),
        loops_(loops_around(lowered_.program)),
        heads_(lowered_.origins.size()),
        args_(lowered_.origins.size()) {
    for (const ExposedWait& wait : result.exposed) causes_.emplace(wait.done, &wait);
  }

  Trace run(const Flows& flows) {
    name_streams();
    for (const RunId run : ids(history_.runs)) add_run(history_.runs[run]);
    for (const WaitSpan& wait : history_.waits) add_wait(wait);
    for (const LoopSpan& span : history_.loops) add_iteration(span);
    for (const auto& [unit, name] : kWorkingUnits) add_unit(unit, name);
    for (const Flow& flow : flows.all) add_flow(flow);
    add_levels();
    add_rates();
    trace_.json = std::move(out_).finish(metadata(flows));
    return std::move(trace_);
  }

 private:
  void name_streams();
  void add_run(const TaskRun& run);
  void add_wait(const WaitSpan& wait);
  void add_iteration(const LoopSpan& span);
  void add_unit(WorkingUnit unit, const char* name);
  void add_flow(const Flow& flow);
  void add_levels();
  void add_rates();
  std::string metadata(const Flows& flows) const;

  const std::string& head_of(StepId step);
  const std::string& args_of(StepId step);
  std::string describe_task(StepId step) const;
  std::string describe_iteration(StepId step, std::int64_t iteration) const;

  void add_slice(Track track, TraceTime from, TraceTime to, std::string_view head,
                 std::string_view args) {
    out_.add_slice(track, from, to, head, args);
    ++trace_.slices;
  }

  engine::TaskId task_of(StepId step) const {
    const engine::Step& it = lowered_.program.steps[step];
    if (const auto* start = std::get_if<engine::StartStep>(&it)) return start->task;
    return std::get<engine::RunStep>(it).task;
  }
  Track track_of(StepId step) const {
    const auto* start = std::get_if<engine::StartStep>(&lowered_.program.steps[step]);
    const StreamId stream = start != nullptr ? start->stream : engine::kMainStream;
    return {kStreams, kFirstStreamRow + static_cast<int>(stream.index)};
  }
  std::string_view name_of_step(StepId step) const {
    return program_[lowered_.origins[step].instruction].name;
  }

  const Program& program_;
  const HardwareProfile& profile_;
  const CostTable& costs_;
  const LoweredProgram& lowered_;
  const SimResult& result_;
  const CopyLabels& labels_;
  const History& history_;
  engine::TaskTable tasks_;
  IdVector<StepId, std::optional<StepId>> loops_;
  std::map<InstructionId, const ExposedWait*> causes_;  ///< by done
  IdVector<StepId, std::string> heads_, args_;          ///< made when first asked for
  EventWriter out_;
  Trace trace_;
};

void TraceMaker::name_streams() {
  out_.name_process(kMemoryAndLink, "memory and link", 0);
  out_.name_process(kStreams, "streams", 1);
  out_.name_process(kEngines, "engines", 2);
  if (!history_.loops.empty()) out_.name_track({kStreams, kLoopsRow}, "loops", 0);
  const int main_row = kFirstStreamRow;
  out_.name_track({kStreams, main_row}, "main stream", main_row);
  std::map<int, DeviceStream> named;
  for (const StepId step : ids(lowered_.origins))
    if (std::holds_alternative<engine::StartStep>(lowered_.program.steps[step]))
      named.emplace(track_of(step).row, lowered_.origins[step].stream);
  for (const auto& [row, stream] : named) out_.name_track({kStreams, row}, to_string(stream), row);
}

const std::string& TraceMaker::head_of(StepId step) {
  if (!heads_[step].empty()) return heads_[step];
  const StepOrigin& origin = lowered_.origins[step];
  std::string_view kind = "kernel";
  if (origin.kind == StepOrigin::kCollective) kind = "collective";
  if (origin.kind == StepOrigin::kCopy) kind = "copy";
  if (origin.direction == TransferDirection::kDeviceToHost) kind = "offload";
  if (origin.direction == TransferDirection::kHostToDevice) kind = "reload";
  return heads_[step] =
             fmt::format("\"name\":{},\"cat\":\"{}\"", json_text(name_of_step(step)), kind);
}

/// What is the same each time the task runs.
std::string TraceMaker::describe_task(StepId step) const {
  const InstructionId id = lowered_.origins[step].instruction;
  const Cost& cost = costs_.cost(id);
  const engine::TaskCost& task = tasks_[task_of(step)];
  const Bytes bytes = moved_bytes(program_, costs_, id);
  std::string text = fmt::format("\"bytes\":{},\"alone_us\":{:.3f},\"bound\":\"{}\"", bytes.value(),
                                 microseconds(task.latency + task.alone), name_of(cost.bound));
  if (const std::string& residual = labels_.of_step[step].residual; !residual.empty())
    text += ",\"residual\":" + json_text(residual);
  const std::string op = metadata_text(program_[id.computation], id.instruction, "op_name");
  if (!op.empty()) text += ",\"op_name\":" + json_text(op);
  auto layer = layer_of(op);
  if (const CopyLabel& label = labels_.of_step[step]; label.peeled && label.walk)
    layer = label.walk->first;
  if (layer && !loops_[step]) text += fmt::format(",\"layer\":{}", *layer);
  return text;
}

const std::string& TraceMaker::args_of(StepId step) {
  if (args_[step].empty()) args_[step] = describe_task(step);
  return args_[step];
}

/// The iteration, and the layer where that is known; empty outside loops.
std::string TraceMaker::describe_iteration(StepId step, std::int64_t iteration) const {
  const auto loop = loops_[step];
  if (!loop) return "";
  std::string text = fmt::format(",\"iteration\":{}", iteration);
  auto walk = labels_.of_step[step].walk;
  if (!walk) walk = labels_.of_loop[*loop];
  if (walk) text += fmt::format(",\"layer\":{}", walk->first + walk->step * iteration);
  return text;
}

void TraceMaker::add_run(const TaskRun& run) {
  std::string args = args_of(run.step) + describe_iteration(run.step, run.iteration);
  if (run.started > run.taken)
    args += fmt::format(",\"queued_us\":{:.3f}", microseconds(run.started - run.taken));
  add_slice(track_of(run.step), to_trace_time(run.started), to_trace_time(run.finished),
            head_of(run.step), args);
}

void TraceMaker::add_wait(const WaitSpan& wait) {
  if (wait.from == wait.to) return;
  const StepOrigin& origin = lowered_.origins[wait.step];
  const std::string_view awaited = name_of_step(history_.runs[wait.awaited].step);
  std::string args = fmt::format("\"done\":{}", json_text(program_[*origin.done].name));
  if (const auto cause = causes_.find(*origin.done); cause != causes_.end())
    args += fmt::format(",\"cause\":\"{}\",\"explanation\":{}", cause_of(*cause->second),
                        json_text(cause->second->explanation));
  // Its own iteration, which the loops' row shows; what it waits for may be from another one.
  args += describe_iteration(wait.step, wait.iteration);
  const TaskRun& awaited_run = history_.runs[wait.awaited];
  if (loops_[wait.step] && loops_[awaited_run.step] == loops_[wait.step] &&
      awaited_run.iteration != wait.iteration)
    args += fmt::format(",\"awaited_iteration\":{}", awaited_run.iteration);
  const std::string head = fmt::format("\"name\":{},\"cat\":\"exposed\"",
                                       json_text("waits for " + std::string(awaited)));
  add_slice({kStreams, kFirstStreamRow}, to_trace_time(wait.from), to_trace_time(wait.to), head,
            args);
}

void TraceMaker::add_iteration(const LoopSpan& span) {
  if (to_trace_time(span.from) == to_trace_time(span.to)) return;
  const std::int64_t trips = std::get<engine::LoopStep>(lowered_.program.steps[span.loop]).trips;
  const std::string loop(name_of_step(span.loop));
  const std::int64_t number = span.iteration + 1;
  std::string name, args;
  if (span.left_out > 0) {
    name = fmt::format("{}: {} to {} of {}, left out of this trace", loop, number,
                       span.iteration + span.left_out, trips);
    args = fmt::format("\"left_out\":{}", span.left_out);
    trace_.left_out += span.left_out;
  } else {
    name = fmt::format("{}: {} of {}", loop, number, trips);
    args = fmt::format("\"iteration\":{}", span.iteration);
    if (const auto& walk = labels_.of_loop[span.loop])
      args += fmt::format(",\"layer\":{}", walk->first + walk->step * span.iteration);
  }
  add_slice({kStreams, kLoopsRow}, to_trace_time(span.from), to_trace_time(span.to),
            fmt::format("\"name\":{},\"cat\":\"loop\"", json_text(name)), args);
}

/// The tasks that one unit works on, their latency left out. Where several overlap, each row holds
/// one at a time.
void TraceMaker::add_unit(WorkingUnit unit, const char* name) {
  std::vector<const TaskRun*> runs;
  const auto worked_from = [this](const TaskRun* run) {
    return run->started + tasks_[task_of(run->step)].latency;
  };
  for (const RunId id : ids(history_.runs)) {
    const TaskRun& run = history_.runs[id];
    const StepOrigin& origin = lowered_.origins[run.step];
    if (unit_of(origin, costs_.cost(origin.instruction)) == unit) runs.push_back(&run);
  }
  std::ranges::stable_sort(runs, {}, worked_from);
  std::vector<TraceTime> busy_until;  // by row
  const int first_row = kFirstEngineRow + kRowsOfEngine * static_cast<int>(unit);
  for (const TaskRun* run : runs) {
    const TraceTime from = to_trace_time(worked_from(run)), to = to_trace_time(run->finished);
    if (from >= to) continue;
    auto row = std::ranges::find_if(busy_until, [from](TraceTime end) { return end <= from; });
    const int order = first_row + static_cast<int>(row - busy_until.begin());
    if (row == busy_until.end()) {
      row = busy_until.insert(row, 0);
      out_.name_track({kEngines, order}, name, order);
    }
    *row = to;
    add_slice({kEngines, order}, from, to, head_of(run->step), "");
  }
}

void TraceMaker::add_flow(const Flow& flow) {
  const auto visible = [this](RunId id) {
    const TaskRun& run = history_.runs[id];
    return to_trace_time(run.started) < to_trace_time(run.finished);
  };
  if (!std::ranges::all_of(flow.runs, visible)) return;
  const std::int64_t number = ++trace_.flows;
  const std::string head = fmt::format("\"name\":{},\"cat\":\"residual\"", json_text(flow.name));
  for (std::size_t k = 0; k < flow.runs.size(); ++k) {
    const TaskRun& run = history_.runs[flow.runs[k]];
    auto point = EventWriter::FlowPoint::kMiddle;
    if (k == 0) point = EventWriter::FlowPoint::kFirst;
    if (k + 1 == flow.runs.size()) point = EventWriter::FlowPoint::kLast;
    out_.add_flow_point(point, number, track_of(run.step), to_trace_time(run.started), head);
  }
}

void TraceMaker::add_levels() {
  const bool host_used = std::ranges::any_of(
      history_.levels, [](const History::Level& level) { return level.live.host > Bytes(0); });
  std::optional<MemoryLevel> last;
  for (const auto& [at, live] : history_.levels) {
    const TraceTime time = to_trace_time(at);
    if (!last || live.device != last->device)
      out_.add_level(kMemoryAndLink, "HBM in use", "bytes", time, live.device.value());
    if (host_used && (!last || live.host != last->host))
      out_.add_level(kMemoryAndLink, "pinned host memory in use", "bytes", time, live.host.value());
    last = live;
  }
}

void TraceMaker::add_rates() {
  constexpr double kGiga = 1e9;
  struct Counter {
    const char* name;
    BytesPerSecond Rates::*rate;
  };
  constexpr Counter kCounters[] = {{"link, device to host", &Rates::device_to_host},
                                   {"link, host to device", &Rates::host_to_device},
                                   {"HBM traffic", &Rates::hbm}};
  for (const auto& [name, rate] : kCounters) {
    std::optional<BytesPerSecond> last;
    for (std::size_t k = 0; k < history_.rates.size(); ++k) {
      const auto& [at, rates] = history_.rates[k];
      const TraceTime time = to_trace_time(at);
      // Of changes in one nanosecond the last is shown.
      if (k + 1 < history_.rates.size() && to_trace_time(history_.rates[k + 1].at) == time)
        continue;
      if (last == rates.*rate) continue;
      last = rates.*rate;
      out_.add_level(kMemoryAndLink, name, "GB/s", time, last->value() / kGiga);
    }
  }
}

std::string TraceMaker::metadata(const Flows& flows) const {
  nlohmann::ordered_json json;
  json["schema"] = "spillway.trace/1";
  json["program"] = program_.name;
  json["hardware"] = profile_.id;
  json["step_seconds"] = result_.step.value();
  json["iterations_left_out"] = trace_.left_out;
  json["reloads_without_offload"] = flows.reloads_without_offload;
  json["assumptions"] = result_.assumptions;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<Trace> make_trace(const Program& program, const MemoryAssignment& memory,
                         const HardwareProfile& profile, const PreparedStep& prepared,
                         const SimResult& result, const ResidualTable& residuals,
                         const TraceOptions& options) {
  const LoweredProgram& lowered = prepared.lowered;
  const auto recorded = record_history(program, memory, prepared, options.most_happenings);
  if (!recorded.ok()) return recorded.error();
  const CopyLabels labels = label_copies(program, memory, lowered, residuals);
  const Flows flows = find_flows(program, memory, lowered, labels, recorded->history);
  return TraceMaker(program, profile, prepared, result, labels, recorded->history).run(flows);
}

}  // namespace spillway
