#include "sim/lowering/machine_tasks.h"

#include <algorithm>
#include <cmath>

#include "model/cost/host_rates.h"

namespace spillway {
namespace {

using engine::Demand;
using engine::Side;
using engine::TaskId;

/// Where capacity runs out, speeds are in proportion to weights. The small shares of the HBM that
/// copies and collectives take are served before a kernel's large one, as bytes are served in turn;
/// among each other they get equal bytes. A collective keeps the SMs it has taken, because its
/// weight is more times a kernel's than `gemm_beside_collective` is.
constexpr std::int32_t kKernelWeight = 1 << 6;
constexpr std::int32_t kCopyWeight = 1 << 10;

/// Into the device is one side of what is shared by both directions, out of it the other.
constexpr Side kIn = Side::kOne, kOut = Side::kOther;

std::int64_t per_second(BytesPerSecond rate) { return std::llround(rate.value()); }

/// What a plain streaming kernel gets out of the HBM. The peak less what no kernel reaches: what
/// refresh, turning from reads to writes and row changes cost, nobody else can use.
BytesPerSecond reachable_hbm(const HardwareProfile& profile) {
  const double factor = std::max(1.0, profile.kernels.elementwise.value.value());
  return profile.device.hbm_bandwidth.value / factor;
}

/// The most that any collective was seen to carry.
BytesPerSecond reachable_fabric(const ScaleUp& fabric) {
  BytesPerSecond most(0);
  for (const CollectiveCosts* costs :
       {&fabric.all_gather, &fabric.reduce_scatter, &fabric.all_reduce, &fabric.all_to_all,
        &fabric.collective_permute})
    for (const CollectiveFit& fit : costs->fits) most = std::max(most, fit.bus_bandwidth);
  return most;
}

/// A kernel's own time already holds what it takes alone, so a demand never lengthens it.
Bytes at_most(Bytes bytes, BytesPerSecond rate, Seconds time) {
  const double limit = std::floor(rate.value() * time.value());
  return limit < static_cast<double>(bytes.value()) ? Bytes(static_cast<std::int64_t>(limit))
                                                    : bytes;
}

}  // namespace

MachineTasks::MachineTasks(engine::EngineProgram& program, const HardwareProfile& profile,
                           std::int64_t gpus_of_cpu)
    : program_(program), profile_(profile) {
  const HostLink& link = profile.link;
  const HostRates rates = host_rates(profile, gpus_of_cpu);
  const auto add = [&](BytesPerSecond rate) { return add_resource(program, per_second(rate)); };
  in_alone_ = rates.host_to_device;
  out_alone_ = rates.device_to_host;
  resources_.hbm = add(reachable_hbm(profile));
  resources_.sms = add_resource(program, engine::kTimeShared);
  resources_.device_to_host = add(link.device_to_host.value);
  resources_.host_to_device = add(link.host_to_device.value);
  resources_.both_directions = add_two_sided(program, per_second(link.both_directions.value));
  resources_.host_read = add(rates.memory_read);
  resources_.host_write = add(rates.memory_write);
  resources_.host_memory = add_two_sided(program, per_second(rates.memory));
  resources_.fabric = add_resource(program, engine::kTimeShared);
  resources_.network = add_resource(program, engine::kTimeShared);
}

/// Speeds below capacity are in proportion to weights, and full speed is the rate alone: so a
/// weight is what a direction is to get, equal bytes unless the profile knows better, over its rate
/// alone.
std::int32_t MachineTasks::copy_weight(TransferDirection direction) const {
  const auto& beside = profile_.link.host_to_device_beside;
  const double both = profile_.link.both_directions.value.value();
  const double share_in = beside ? beside->value.value() / both : 0.5;
  const double in = share_in / in_alone_.value(), out = (1 - share_in) / out_alone_.value();
  const double own = direction == TransferDirection::kHostToDevice ? in : out;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      std::llround(kCopyWeight * 2 * own / (in + out)), 1, 2 * kCopyWeight));
}

void MachineTasks::use_host_link(Demands& demands, Bytes in, Bytes out) const {
  const Side side = out == Bytes(0) ? kIn : in == Bytes(0) ? kOut : Side::kBoth;
  if (in > Bytes(0)) {
    demands.push_back({resources_.host_to_device, in.value()});
    demands.push_back({resources_.host_read, in.value()});
  }
  if (out > Bytes(0)) {
    demands.push_back({resources_.device_to_host, out.value()});
    demands.push_back({resources_.host_write, out.value()});
  }
  demands.push_back({resources_.both_directions, (in + out).value(), side});
  demands.push_back({resources_.host_memory, (in + out).value(), side});
}

TaskId MachineTasks::add_host_copy(TransferDirection direction, Bytes bytes) {
  const bool is_in = direction == TransferDirection::kHostToDevice;
  Demands demands = {{resources_.hbm, bytes.value()}};  // one end of the copy lies there
  use_host_link(demands, is_in ? bytes : Bytes(0), is_in ? Bytes(0) : bytes);
  return add_task(
      program_,
      {.latency = to_sim_time(profile_.link.copy_latency.value), .weight = copy_weight(direction)},
      demands);
}

void MachineTasks::use_hbm(Demands& demands, const Cost& cost) const {
  const Bytes bytes = at_most(cost.hbm_bytes, reachable_hbm(profile_), cost.time);
  demands.push_back({resources_.hbm, bytes.value()});
}

/// A collective takes so many SMs that a matrix product beside it needs
/// `gemm_beside_collective` times as long: it fills the SMs in waves, and loses one. What waits
/// for memory or is too small to fill them makes do with those the collective leaves.
void MachineTasks::use_sms(Demands& demands, const Cost& cost) const {
  const double beside = profile_.kernels.gemm_beside_collective.value.value();
  const bool fills_them = cost.bound == Bound::kCompute || cost.bound == Bound::kUnknown;
  double part = fills_them ? 1 : 1 / beside;
  if (cost.kernel == KernelClass::kCollective) part = 1 - 1 / beside;
  const auto time = static_cast<double>(to_sim_time(cost.time).value());
  demands.push_back({resources_.sms, static_cast<std::int64_t>(time * part)});
}

/// In time: what a collective carries is of what the fabric was seen to carry, or the NIC does.
/// Where GPUs reach each other over PCIe, their traffic takes the wires that copies to the host
/// take, both ways; and so does that of a NIC behind a PCIe switch.
void MachineTasks::use_fabric(Demands& demands, const Cost& cost) const {
  const auto time_of = [&](Bytes bytes, BytesPerSecond rate) {
    return std::min(to_sim_time(bytes / rate), to_sim_time(cost.time)).value();
  };
  if (cost.fabric_bytes > Bytes(0))
    demands.push_back(
        {resources_.fabric, time_of(cost.fabric_bytes, reachable_fabric(profile_.scale_up))});
  if (cost.network_bytes > Bytes(0))
    demands.push_back(
        {resources_.network, time_of(cost.network_bytes, profile_.scale_out.nic_bandwidth.value)});
  if (profile_.link.kind != LinkKind::kPcie) return;
  Bytes over_pcie = cost.network_bytes;
  if (profile_.scale_up.kind == FabricKind::kPcie) over_pcie += cost.fabric_bytes;
  if (over_pcie == Bytes(0)) return;
  const HostLink& link = profile_.link;
  const auto within = [&](BytesPerSecond rate) {
    return at_most(over_pcie, rate, cost.time).value();
  };
  demands.push_back({resources_.host_to_device, within(link.host_to_device.value)});
  demands.push_back({resources_.device_to_host, within(link.device_to_host.value)});
}

/// What was measured had its company in that run, so nothing slows it again; a collective still
/// slows kernels that were not measured.
TaskId MachineTasks::add_measured_task(const Cost& cost) {
  Demands demands;
  const bool collective = cost.kernel == KernelClass::kCollective;
  if (collective) use_sms(demands, cost);
  return add_task(program_,
                  {.latency = to_sim_time(cost.gap),
                   .duration = to_sim_time(cost.time),
                   .weight = collective ? kCopyWeight : kKernelWeight},
                  demands);
}

TaskId MachineTasks::add_device_task(const Cost& cost) {
  if (cost.bound == Bound::kMeasured) return add_measured_task(cost);
  Demands demands;
  use_hbm(demands, cost);
  if (!cost.uses_sms)
    return add_task(program_, {.duration = to_sim_time(cost.time), .weight = kKernelWeight},
                    demands);
  use_sms(demands, cost);
  const bool collective = cost.kernel == KernelClass::kCollective;
  const bool reaches_host = cost.host_to_device + cost.device_to_host > Bytes(0);
  if (collective)
    use_fabric(demands, cost);
  else if (reaches_host)
    use_host_link(demands, cost.host_to_device, cost.device_to_host);
  return add_task(program_,
                  {.latency = to_sim_time(cost.gap),
                   .duration = to_sim_time(cost.time),
                   .weight = collective || reaches_host ? kCopyWeight : kKernelWeight},
                  demands);
}

}  // namespace spillway
