#include "model/cost/collective.h"

#include <algorithm>
#include <cmath>

#include "model/cost/device_groups.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

std::optional<CollectiveKind> kind_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
      return CollectiveKind::kAllGather;
    case Opcode::kReduceScatter:
    case Opcode::kReduceScatterStart:
      return CollectiveKind::kReduceScatter;
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return CollectiveKind::kAllReduce;
    case Opcode::kAllToAll:
    case Opcode::kAllToAllStart:
    case Opcode::kRaggedAllToAll:
      return CollectiveKind::kAllToAll;
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      return CollectiveKind::kPermute;
    case Opcode::kCollectiveBroadcast:
      return CollectiveKind::kBroadcast;
    default:
      return std::nullopt;
  }
}

/// The instruction itself, or the first collective in what it wraps.
std::optional<InstructionId> collective_inside(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Opcode opcode = computation[id.instruction].opcode;
  if (kind_of(opcode)) return id;
  if (opcode != Opcode::kAsyncStart && opcode != Opcode::kFusion) return std::nullopt;
  const ComputationId inner = called_by(computation, id.instruction);
  for (const InstructionIndex i : program[inner].instructions())
    if (const auto found = collective_inside(program, {inner, i})) return found;
  return std::nullopt;
}

/// A ragged all-to-all sends its first operand; the others say where.
Bytes operand_bytes(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const std::uint32_t count = in.opcode == Opcode::kRaggedAllToAll ? 1 : in.operand_count;
  Bytes sum(0);
  for (std::uint32_t k = 0; k < count; ++k) sum += operand_shape(computation, i, k).array_bytes();
  return sum;
}

/// What one device sends, as shares of the tensor; the table in collective.h.
struct Volume {
  double fabric = 0, network = 0;
  double leaving = 0;  ///< both ways out together
  double rounds = 1;   ///< how often a message crosses all domains
};

Volume volume_of(const Collective& collective) {
  const auto n = static_cast<double>(collective.group.size);
  const auto m = static_cast<double>(collective.group.per_domain);
  const auto d = static_cast<double>(collective.group.domains);
  const double others = (n - 1) / n;
  switch (collective.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return {.fabric = others, .network = others / m, .leaving = others};
    case CollectiveKind::kAllReduce:
      return {.fabric = 2 * (m - 1) / m,
              .network = 2 * (d - 1) / d / m,
              .leaving = 2 * others,
              .rounds = 2};
    case CollectiveKind::kAllToAll:
      return {.fabric = (m - 1) / n, .network = (n - m) / n, .leaving = others};
    case CollectiveKind::kPermute:
      return {.fabric = 1, .network = 1, .leaving = 1};
    case CollectiveKind::kBroadcast:
      return {.fabric = 1, .network = 1 / m, .leaving = 1};
  }
  return {};
}

const CollectiveCosts& costs_of(CollectiveKind kind, const ScaleUp& fabric) {
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast:
      return fabric.all_gather;
    case CollectiveKind::kReduceScatter:
      return fabric.reduce_scatter;
    case CollectiveKind::kAllReduce:
      return fabric.all_reduce;
    case CollectiveKind::kAllToAll:
      return fabric.all_to_all;
    case CollectiveKind::kPermute:
      break;
  }
  return fabric.collective_permute;
}

/// Latency and bandwidth for a group of `gpus`, linear between the two nearest sizes.
CollectiveFit fit_for(const CollectiveCosts& costs, std::int64_t gpus) {
  check(!costs.fits.empty(), "a profile has no fit for a collective");
  const auto above = std::ranges::find_if(
      costs.fits, [gpus](const CollectiveFit& fit) { return fit.gpus.value() >= gpus; });
  if (above == costs.fits.end()) return costs.fits.back();
  if (above == costs.fits.begin()) return costs.fits.front();
  const CollectiveFit& low = *(above - 1);
  const auto span = static_cast<double>(above->gpus.value() - low.gpus.value());
  const double t = static_cast<double>(gpus - low.gpus.value()) / span;
  const auto between = [t](auto a, auto b) { return a * (1 - t) + b * t; };
  CollectiveFit fit{.gpus = Count(gpus),
                    .latency = between(low.latency, above->latency),
                    .bus_bandwidth = between(low.bus_bandwidth, above->bus_bandwidth),
                    .pipeline = between(low.pipeline, above->pipeline),
                    .few_channels = t < 0.5 ? low.few_channels : above->few_channels};
  return fit;
}

/// What lies beyond the latency: CollectiveFit in model/hardware/profile.h.
Seconds fabric_time(Bytes bus_bytes, const CollectiveFit& fit) {
  const Seconds stream = bus_bytes / fit.bus_bandwidth;
  const Seconds time = stream + Seconds(2 * std::sqrt(fit.pipeline.value() * stream.value()));
  if (!fit.few_channels) return time;
  return std::max(time, std::min(bus_bytes, fit.few_channels->up_to) / fit.few_channels->bandwidth);
}

Bytes part_of(Bytes tensor, double share) {
  return Bytes(std::llround(static_cast<double>(tensor.value()) * share));
}

}  // namespace

std::optional<Collective> find_collective(const Program& program, InstructionId id,
                                          const Topology& topology) {
  const auto found = collective_inside(program, id);
  if (!found) return std::nullopt;
  const Computation& computation = program[found->computation];
  const Instruction& in = computation[found->instruction];
  Collective collective{.kind = *kind_of(in.opcode)};
  collective.tensor = operand_bytes(computation, found->instruction);
  if (collective.kind != CollectiveKind::kAllToAll) collective.tensors = in.operand_count;
  const auto groups = device_groups(program, *found);
  collective.groups_known = groups.has_value();
  collective.group = groups ? layout_of(*groups, topology)
                            : GroupLayout{.size = topology.devices,
                                          .domains = topology.devices / topology.gpus_per_domain,
                                          .per_domain = topology.gpus_per_domain};
  if (collective.kind == CollectiveKind::kAllGather)
    collective.tensor = collective.tensor * collective.group.size;
  return collective;
}

Cost collective_cost(const Collective& collective, const HardwareProfile& profile) {
  const GroupLayout& group = collective.group;
  Cost cost{.time = profile.kernels.launch_floor.value,
            .bound = collective.groups_known ? Bound::kNetwork : Bound::kUnknown,
            .kernel = KernelClass::kCollective,
            .uses_sms = true,
            .hbm_bytes = collective.tensor * 2};
  if (group.size <= 1) {
    cost.bound = Bound::kLaunch;
    return cost;
  }
  const Volume volume = volume_of(collective);
  Seconds latency(0), transfer(0);
  if (group.per_domain > 1) {
    const CollectiveFit fit =
        fit_for(costs_of(collective.kind, profile.scale_up), group.per_domain);
    cost.fabric_bytes = part_of(collective.tensor, volume.fabric);
    latency = fit.latency;
    transfer = fabric_time(cost.fabric_bytes, fit);
  }
  if (group.domains > 1) {
    const auto crossings = static_cast<double>(group.domains - 1);
    cost.network_bytes = part_of(collective.tensor, volume.network);
    latency += profile.scale_out.latency.value * (crossings * volume.rounds);
    transfer = std::max(transfer, cost.network_bytes / profile.scale_out.nic_bandwidth.value);
  }
  const auto further_tensors =
      static_cast<double>(std::max<std::int64_t>(collective.tensors - 1, 0));
  latency += profile.scale_up.per_tensor.value * further_tensors;
  cost.time = std::max(cost.time, latency + transfer);
  cost.hbm_bytes = part_of(collective.tensor, volume.leaving) * 2;
  return cost;
}

}  // namespace spillway
