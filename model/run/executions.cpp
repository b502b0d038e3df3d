#include "model/run/executions.h"

#include <algorithm>
#include <limits>
#include <map>

namespace spillway {
namespace {

/// The middle of an odd number, the lower middle of an even one: a time that was measured.
SimTime median(std::vector<SimTime> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

/// XLA's names of collectives; NCCL's kernels say it where an instruction has another name.
bool is_collective(std::string_view instruction, std::string_view kernel) {
  for (const std::string_view prefix :
       {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute",
        "collective-broadcast", "ragged-all-to-all"})
    if (instruction.starts_with(prefix)) return true;
  return kernel.starts_with("nccl");
}

/// One execution of an instruction on a device.
struct Execution {
  SimTime start, end;
  RunNameId first_kernel;
  std::optional<std::int64_t> id;
  std::int64_t launches = 0;
};

struct InstructionRuns {
  std::map<std::int64_t, std::vector<Execution>> by_device;
  RunNameId stream, kernel;
};

using Key = std::pair<RunNameId, RunNameId>;  ///< module, instruction
using AllRuns = std::map<Key, InstructionRuns>;

/// Remembers the instruction of the last event of each stream, to see where an execution ends.
class ExecutionFinder {
 public:
  AllRuns runs;

  void add(const GpuEvent& event) {
    const Key key{event.module, event.instruction};
    const auto stream = std::pair(event.device, event.stream);
    const auto last = last_on_stream_.find(stream);
    const bool follows = last != last_on_stream_.end() && last->second == key;
    last_on_stream_[stream] = key;
    if (event.instruction == RunNameId()) return;
    InstructionRuns& of_instruction = runs[key];
    if (of_instruction.by_device.empty()) {
      of_instruction.stream = event.stream;
      of_instruction.kernel = event.kernel;
    }
    std::vector<Execution>& executions = of_instruction.by_device[event.device];
    if (!executions.empty() && continues(executions.back(), event, follows)) {
      Execution& execution = executions.back();
      execution.start = std::min(execution.start, event.start);
      execution.end = std::max(execution.end, event.end);
      ++execution.launches;
      return;
    }
    executions.push_back({event.start, event.end, event.kernel, event.execution, 1});
  }

 private:
  static bool continues(const Execution& execution, const GpuEvent& event, bool follows) {
    if (event.execution || execution.id) return event.execution == execution.id;
    return follows && event.kernel != execution.first_kernel;
  }

  std::map<std::pair<std::int64_t, RunNameId>, Key> last_on_stream_;
};

/// Of each execution of a collective the time of the rank that came last: the others' hold waiting
/// for it. Empty where devices did not run it equally often.
std::vector<SimTime> last_rank_times(const InstructionRuns& runs) {
  const std::vector<Execution>& first = runs.by_device.begin()->second;
  std::vector<SimTime> times(first.size(), SimTime(std::numeric_limits<std::int64_t>::max()));
  for (const auto& [device, executions] : runs.by_device) {
    if (executions.size() != first.size()) return {};
    for (std::size_t k = 0; k < executions.size(); ++k)
      times[k] = std::min(times[k], executions[k].end - executions[k].start);
  }
  return times;
}

MeasuredInstruction summarize(const InstructionRuns& runs) {
  MeasuredInstruction result;
  std::vector<SimTime> times;
  for (const auto& [device, executions] : runs.by_device)
    for (const Execution& execution : executions) {
      times.push_back(execution.end - execution.start);
      result.launches += execution.launches;
    }
  result.count = static_cast<std::int64_t>(times.size());
  result.shortest = to_seconds(*std::ranges::min_element(times));
  result.longest = to_seconds(*std::ranges::max_element(times));
  result.time = to_seconds(median(std::move(times)));
  return result;
}

std::vector<MeasuredInstruction> find_instructions(const RunNames& names, const AllRuns& all) {
  std::vector<MeasuredInstruction> result;
  for (const auto& [key, runs] : all) {
    MeasuredInstruction instruction = summarize(runs);
    instruction.module = names[key.first];
    instruction.name = names[key.second];
    instruction.stream = names[runs.stream];
    instruction.collective = is_collective(instruction.name, names[runs.kernel]);
    if (instruction.collective && runs.by_device.size() > 1)
      if (auto times = last_rank_times(runs); !times.empty())
        instruction.time = to_seconds(median(std::move(times)));
    result.push_back(std::move(instruction));
  }
  std::ranges::stable_sort(result, std::ranges::greater{}, [](const MeasuredInstruction& in) {
    return in.time.value() * static_cast<double>(in.count);
  });
  return result;
}

/// One execution of a module on a device.
struct ModuleSpan {
  SimTime start, end;
  std::optional<std::int64_t> id;
};
using ModuleSpans = std::map<std::int64_t, std::vector<ModuleSpan>>;  ///< by device

/// Where the executions of a module on a device begin, if the profiler does not say: at those of
/// the first instruction that runs once a step. Once runs what runs least often, unless so few do
/// (5 %) that they stand in a branch.
std::vector<SimTime> find_starts(const AllRuns& runs, RunNameId module, std::int64_t device) {
  std::map<std::size_t, std::vector<const std::vector<Execution>*>> by_count;
  std::size_t instructions = 0;
  for (auto run = runs.lower_bound({module, RunNameId()});
       run != runs.end() && run->first.first == module; ++run) {
    const auto executions = run->second.by_device.find(device);
    if (executions == run->second.by_device.end()) continue;
    ++instructions;
    by_count[executions->second.size()].push_back(&executions->second);
  }
  if (by_count.empty()) return {};
  const auto often = std::ranges::find_if(
      by_count, [&](const auto& entry) { return entry.second.size() * 20 >= instructions; });
  const auto& once = (often == by_count.end() ? by_count.begin() : often)->second;
  const auto first_start = [](const std::vector<Execution>* e) { return e->front().start; };
  std::vector<SimTime> starts;
  for (const Execution& execution : **std::ranges::min_element(once, {}, first_start))
    starts.push_back(execution.start);
  return starts;
}

/// What stands before the first start is of an execution that the file has no start of.
std::map<RunNameId, ModuleSpans> find_spans(const AllRuns& runs,
                                            const std::vector<GpuEvent>& events) {
  std::map<RunNameId, ModuleSpans> spans;
  std::map<std::pair<RunNameId, std::int64_t>, std::vector<SimTime>> starts;
  for (const GpuEvent& event : events) {
    if (event.module == RunNameId()) continue;
    std::vector<ModuleSpan>& of_device = spans[event.module][event.device];
    bool begins = false;
    if (event.module_execution) {
      begins = of_device.empty() || of_device.back().id != event.module_execution;
    } else {
      auto [known, is_new] = starts.try_emplace({event.module, event.device});
      if (is_new) known->second = find_starts(runs, event.module, event.device);
      const std::size_t next = of_device.size();
      begins = next < known->second.size() && event.start >= known->second[next];
    }
    if (begins)
      of_device.push_back({event.start, event.end, event.module_execution});
    else if (!of_device.empty())
      of_device.back().end = std::max(of_device.back().end, event.end);
  }
  return spans;
}

std::optional<MeasuredModule> summarize(const std::string& name, const ModuleSpans& by_device) {
  std::vector<SimTime> times, periods;
  for (const auto& [device, spans] : by_device) {
    for (std::size_t k = 0; k < spans.size(); ++k) {
      times.push_back(spans[k].end - spans[k].start);
      if (k > 0) periods.push_back(spans[k].start - spans[k - 1].start);
    }
  }
  if (times.empty()) return std::nullopt;
  MeasuredModule result;
  result.name = name;
  result.executions = static_cast<std::int64_t>(times.size());
  result.time = to_seconds(median(std::move(times)));
  if (!periods.empty()) result.period = to_seconds(median(std::move(periods)));
  return result;
}

std::vector<MeasuredModule> find_modules(const RunNames& names, const AllRuns& runs,
                                         const std::vector<GpuEvent>& events) {
  std::vector<MeasuredModule> modules;
  for (const auto& [module, spans] : find_spans(runs, events))
    if (auto summary = summarize(names[module], spans)) modules.push_back(std::move(*summary));
  std::ranges::stable_sort(modules, std::ranges::greater{}, [](const MeasuredModule& module) {
    return module.time.value() * static_cast<double>(module.executions);
  });
  return modules;
}

}  // namespace

Executions find_executions(const RunNames& names, const std::vector<GpuEvent>& events) {
  ExecutionFinder finder;
  for (const GpuEvent& event : events) finder.add(event);
  return {find_instructions(names, finder.runs), find_modules(names, finder.runs, events)};
}

}  // namespace spillway
