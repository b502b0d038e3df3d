#include "model/run/write_pgle.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "model/cost/host_rates.h"
#include "model/cost/run_time.h"
#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"
#include "model/run/pgle.h"

namespace spillway {
namespace {

PgleLink make_link(const HardwareProfile& profile, const Topology& topology) {
  const HostRates rates = host_rates(profile, topology);
  const BytesPerSecond hbm = profile.device.hbm_bandwidth.value;  // one end of a copy lies there
  return {std::min(rates.device_to_host, hbm), std::min(rates.host_to_device, hbm),
          rates.each_of_both, rates.gpus_of_cpu};
}

/// Goes through the computations that a program runs, and adds a cost for each instruction.
class Writer {
 public:
  Writer(const Program& program, const CostTable& costs, const HardwareProfile& profile,
         const Topology& topology)
      : program_(program),
        costs_(costs),
        latency_(profile.link.copy_latency.value),
        in_loop_(inside_loops(program)) {
    out_.program = program.name;
    out_.hardware = profile.id;
    out_.link = make_link(profile, topology);
  }

  PgleProfile run() {
    find_wrapped();
    run_times_ = run_times(program_, costs_, BranchTaken::kLongest, [&](InstructionId id) {
      return is_async_start(program_[id].opcode) ? Seconds(0) : time_of(id);
    });
    for (const ComputationId id : ids(program_.computations))
      if (costs_.contains(id) && !wrapped_.contains(id)) add_computation(id);
    Seconds longest;
    for (const PgleCopy& copy : out_.copies)
      if (!copy.has_cost) longest = std::max(longest, copy.alone);
    if (longest > Seconds(0)) out_.units_per_us = kXlaCopyLatency / (longest.value() * 1e6);
    return std::move(out_);
  }

 private:
  void find_wrapped();
  void add_computation(ComputationId id);
  void add_host_copy(InstructionId id, Bytes bytes, Seconds alone, Seconds of_iteration);
  void add(std::string_view name, Seconds time);
  std::string_view name_of(InstructionId id) const;
  Seconds time_of(InstructionId id) const;
  Seconds copy_time(const HostTransfer& transfer) const;
  std::string_view asynchronous_name(InstructionId start) const;

  const Program& program_;
  const CostTable& costs_;
  Seconds latency_;
  IdVector<ComputationId, std::uint8_t> in_loop_;
  /// Of the main stream, for one run of a computation.
  IdVector<ComputationId, Seconds> run_times_;
  std::set<ComputationId> wrapped_;  ///< by async starts, which stand for them
  std::unordered_set<std::string_view> names_;
  PgleProfile out_;
};

Seconds Writer::copy_time(const HostTransfer& transfer) const {
  const bool out = transfer.direction == TransferDirection::kDeviceToHost;
  return latency_ + transfer.bytes / (out ? out_.link.device_to_host : out_.link.host_to_device);
}

Seconds Writer::time_of(InstructionId id) const {
  if (is_control_flow(program_[id].opcode))
    return time_of_called(program_, id, run_times_, BranchTaken::kLongest);
  const Cost& cost = costs_.cost(id);
  const auto transfer = host_transfer(program_, id);
  return transfer && !cost.uses_sms ? copy_time(*transfer) : cost.time + cost.gap;
}

void Writer::find_wrapped() {
  for (const ComputationId id : ids(program_.computations)) {
    if (!costs_.contains(id)) continue;
    for (const InstructionIndex i : program_[id].instructions()) {
      const auto called = program_[id].called(i);
      if (is_async_start(program_[id][i].opcode)) wrapped_.insert(called.begin(), called.end());
    }
  }
}

std::string_view Writer::name_of(InstructionId id) const {
  return scheduling_name(program_[id.computation], id.instruction);
}

void Writer::add(std::string_view name, Seconds time) {
  if (!name.empty() && names_.insert(name).second) out_.costs.push_back({std::string(name), time});
}

/// What XLA looks up for an asynchronous operation. A collective's start is not charged as work of
/// the main stream; that of anything else would be, were it not named by what it wraps.
std::string_view Writer::asynchronous_name(InstructionId start) const {
  const auto called = program_[start.computation].called(start.instruction);
  if (called.empty() || costs_.cost(start).kernel == KernelClass::kCollective)
    return name_of(start);
  return name_of({called[0], program_[called[0]].root().instruction});
}

void Writer::add_host_copy(InstructionId id, Bytes bytes, Seconds alone, Seconds of_iteration) {
  const std::string_view name = asynchronous_name(id);
  const bool wraps = !program_[id.computation].called(id.instruction).empty();
  out_.copies.push_back({std::string(name), bytes, alone, wraps});
  if (wraps) add(name, of_iteration);
}

void Writer::add_computation(ComputationId id) {
  const Computation& computation = program_[id];
  const auto asynchronous_copy = [&](InstructionIndex i) {
    return is_async_start(computation[i].opcode) ? host_transfer(program_, {id, i}) : std::nullopt;
  };
  Seconds of_iteration[2];  // by direction
  for (const InstructionIndex i : computation.instructions())
    if (const auto copy = asynchronous_copy(i))
      of_iteration[static_cast<int>(copy->direction)] += copy_time(*copy);
  for (const InstructionIndex i : computation.instructions()) {
    const Seconds time = time_of({id, i});
    if (const auto copy = asynchronous_copy(i)) {
      const Seconds all = of_iteration[static_cast<int>(copy->direction)];
      add_host_copy({id, i}, copy->bytes, time, in_loop_[id] != 0 ? all : time);
    } else if (time > Seconds(0)) {
      const bool starts = is_async_start(computation[i].opcode);
      add(starts ? asynchronous_name({id, i}) : name_of({id, i}), time);
    }
  }
}

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

double gigabytes(BytesPerSecond rate) { return rate.value() * 1e-9; }
double microseconds(Seconds time) { return time.value() * 1e6; }

std::string comments(const PgleProfile& profile) {
  const PgleLink& link = profile.link;
  std::string text = fmt::format(
      "# What the instructions of {} take on {}{}\n"
      "# Names are those of one program: it holds for the same source, flags and version of XLA.\n"
      "# Link: {:.1f} GB/s to the host and {:.1f} GB/s to the device, {};\n"
      "# {:.1f} GB/s each while both directions are busy, which is not counted.\n",
      profile.program, profile.hardware, kModelledProfileMark, gigabytes(link.device_to_host),
      gigabytes(link.host_to_device),
      link.gpus_of_cpu == 1 ? std::string("one GPU to a host CPU")
                            : fmt::format("all {} GPUs of a host CPU at once", link.gpus_of_cpu),
      gigabytes(link.both_ways));
  if (profile.units_per_us != 1)
    text += fmt::format(
        "# XLA has {0:.0f} for a copy without a cost, and would charge a copy-start with one "
        "twice.\n"
        "# So the costs are microseconds x {1:.6g}, which makes {0:.0f} the longest of those.\n",
        kXlaCopyLatency, profile.units_per_us);
  for (const PgleCopy& copy : profile.copies)
    text += fmt::format("# host copy {} takes {:.3f} us alone{}\n", copy.name,
                        microseconds(copy.alone), copy.has_cost ? "" : ", no cost");
  return text;
}

}  // namespace

PgleProfile make_pgle_profile(const Program& program, const CostTable& costs,
                              const HardwareProfile& profile, const Topology& topology) {
  return Writer(program, costs, profile, topology).run();
}

ProfiledInstructions as_read(const PgleProfile& profile) {
  ProfiledInstructions result;
  for (const PgleCost& cost : profile.costs)
    result.cost_us.emplace(cost.name, microseconds(cost.time) * profile.units_per_us);
  return result;
}

std::string to_pbtxt(const PgleProfile& profile) {
  std::string text = comments(profile);
  for (const PgleCost& cost : profile.costs)
    text += fmt::format("costs {{ name: \"{}\" cost_us: {:.6g} }}\n", escaped(cost.name),
                        microseconds(cost.time) * profile.units_per_us);
  return text;
}

}  // namespace spillway
