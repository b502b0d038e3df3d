#include "model/run/measured_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/base/format.h"
#include "model/program/call_graph.h"
#include "model/run/pgle.h"

namespace spillway {

std::string_view name_of(RunFormat format) {
  switch (format) {
    case RunFormat::kNsightSystems:
      return "Nsight Systems";
    case RunFormat::kXPlane:
      return "XPlane";
    case RunFormat::kChromeTrace:
      return "trace.json";
    case RunFormat::kPgle:
      return "PGLE";
  }
  return "";
}

std::string_view name_of(MemoryPlace place) {
  switch (place) {
    case MemoryPlace::kUnknown:
      return "unknown";
    case MemoryPlace::kPageable:
      return "pageable";
    case MemoryPlace::kPinned:
      return "pinned";
    case MemoryPlace::kDevice:
      return "device";
    case MemoryPlace::kManaged:
      return "managed";
  }
  return "";
}

std::string_view name_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return "host to device";
    case CopyKind::kDeviceToHost:
      return "device to host";
    case CopyKind::kWithinDevice:
      return "within the device";
    case CopyKind::kBetweenDevices:
      return "between devices";
    case CopyKind::kOther:
      return "other";
  }
  return "";
}

std::vector<CopyGroup> group_copies(const MeasuredRun& run) {
  std::map<std::tuple<CopyKind, MemoryPlace, MemoryPlace>, CopyGroup> groups;
  for (const MeasuredCopy& copy : run.copies) {
    CopyGroup& group = groups[{copy.kind, copy.from, copy.to}];
    group.kind = copy.kind;
    group.from = copy.from;
    group.to = copy.to;
    ++group.count;
    group.bytes += copy.bytes;
    group.time += copy.time;
  }
  std::vector<CopyGroup> result;
  for (const auto& [key, group] : groups) result.push_back(group);
  std::ranges::stable_sort(result, std::ranges::greater{}, &CopyGroup::bytes);
  return result;
}

namespace {

/// Names of the program that a run may have: of what runs by itself, and of what a fusion or an
/// async start wraps, which may be a kernel of its own.
std::set<std::string_view> names_of(const Program& program) {
  std::set<std::string_view> names;
  for (const Executed& executed : executed_computations(program)) {
    const Computation& computation = program[executed.id];
    for (const InstructionIndex i : computation.instructions()) {
      names.insert(computation[i].name);
      for (const ComputationId called : computation.called(i))
        for (const Instruction& inner : program[called].parts().instructions)
          names.insert(inner.name);
    }
  }
  return names;
}

/// A costs file of XLA's scheduler: each instruction by the name it was scheduled with.
MeasuredTimes scheduled_times(const Program& program, const MeasuredRun& run) {
  std::map<std::string_view, Seconds> costs;
  for (const MeasuredInstruction& instruction : run.instructions)
    costs[instruction.name] = instruction.time;
  // A name of today may have been another's when XLA scheduled; only one that was nobody's counts.
  std::set<std::string_view> scheduled;
  const auto visit_all = [&program](const auto& visit) {
    for (const ComputationId id : ids(program.computations))
      for (const InstructionIndex i : program[id].instructions()) visit(program[id], i);
  };
  visit_all([&scheduled](const Computation& computation, InstructionIndex i) {
    scheduled.insert(scheduling_name(computation, i));
  });
  MeasuredTimes times;
  visit_all([&](const Computation& computation, InstructionIndex i) {
    const std::string_view own = computation[i].name;
    auto cost = costs.find(scheduling_name(computation, i));
    if (cost == costs.end() && !scheduled.contains(own)) cost = costs.find(own);
    if (cost != costs.end()) times[std::string(own)] = cost->second;
  });
  return times;
}

/// What share of the time of a module's instructions the program has names for.
double share_known(const MeasuredRun& run, const std::string& module,
                   const std::set<std::string_view>& names) {
  double all = 0, known = 0;
  for (const MeasuredInstruction& in : run.instructions) {
    if (in.module != module) continue;
    const double time = in.time.value() * static_cast<double>(std::max<std::int64_t>(1, in.count));
    all += time;
    if (names.contains(in.name)) known += time;
  }
  return all > 0 ? known / all : 0;
}

/// Half of the time of its kernels must have names that the program has.
constexpr double kSameProgram = 0.5;

/// The module with the program's name, else the one whose instructions are the program's.
std::string find_module(const Program& program, const MeasuredRun& run,
                        const std::set<std::string_view>& names) {
  std::set<std::string> modules;
  for (const MeasuredInstruction& in : run.instructions) modules.insert(in.module);
  if (modules.contains(std::string(program.name))) return std::string(program.name);
  std::string best;
  double share = 0;
  for (const std::string& module : modules) {
    const double known = share_known(run, module, names);
    if (known > share) {
      share = known;
      best = module;
    }
  }
  return share >= kSameProgram ? best : "";
}

}  // namespace

RunOfProgram match_run(const Program& program, const MeasuredRun& run) {
  RunOfProgram result;
  if (run.format == RunFormat::kPgle) {
    result.times = scheduled_times(program, run);
    return result;
  }
  const std::set<std::string_view> names = names_of(program);
  result.module = find_module(program, run, names);
  for (const MeasuredInstruction& in : run.instructions)
    if (in.module == result.module || in.module.empty()) result.times.emplace(in.name, in.time);
  for (const MeasuredModule& module : run.modules)
    if (module.name == result.module) result.step = module;
  const double known = share_known(run, result.module, names);
  if (result.module != program.name && !result.module.empty())
    result.notes.push_back(
        {"the run has no module " + quoted(program.name),
         "taken is " + quoted(result.module) + ", whose instructions are these"});
  if (known < 1 && !result.times.empty())
    result.notes.push_back({"of the time of the run's instructions " +
                                std::to_string(static_cast<int>((1 - known) * 100 + 0.5)) +
                                " % have names that the program lacks",
                            known < kSameProgram
                                ? "this is probably another program, or the same with other flags"
                                : "their time is the model's"});
  return result;
}

}  // namespace spillway
