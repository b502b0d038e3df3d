#include "sim/schedule/latency/sol_estimator.h"

#include <algorithm>

#include "sim/schedule/latency/kernel_model.h"
#include "sim/schedule/latency/matmul_belief.h"
#include "sim/schedule/latency/tshirt_estimator.h"

namespace spillway {
namespace {

constexpr double kMicrosecond = 1e6;  ///< in a second

bool has_kernel_model(const Computation& computation, InstructionIndex i) {
  return computation[i].opcode == Opcode::kFusion &&
         (has_attribute(computation, i, "kind", "kLoop") ||
          has_attribute(computation, i, "kind", "kInput"));
}

}  // namespace

SolEstimator::SolEstimator(HardwareProfile profile, SolOptions options)
    : profile_(std::move(profile)), options_(options), rest_(std::make_unique<TshirtEstimator>()) {
  if (options_.partition_size == 0) options_.partition_size = options_.network.gpus_per_host;
}

double SolEstimator::node_cost(const Program& program, InstructionId instruction) const {
  const Computation& computation = program[instruction.computation];
  const InstructionIndex i = instruction.instruction;
  if (const auto cost = cost_from_metadata(computation, i)) return *cost;
  if (is_collective_start_or_done(program, instruction)) return 1;
  if (const auto sizes = find_matmul(program, instruction))
    return believed_matmul(*sizes, profile_);
  constexpr double kNanosecondsOfMicrosecond = 1000, kShareOfTshirt = 0.01;
  if (has_kernel_model(computation, i))
    return believed_kernel(program, instruction, profile_.device).time / kNanosecondsOfMicrosecond;
  return kShareOfTshirt * rest_->node_cost(program, instruction);
}

double SolEstimator::latency(const Program& program, ComputationId computation,
                             InstructionIndex from, InstructionIndex to) const {
  const bool synchronous = is_collective(program[computation][from].opcode);
  if (synchronous || is_async_pair(program, computation, from, to))
    if (const auto time = collective_time(program, {computation, from})) return *time;
  return rest_->latency(program, computation, from, to);
}

std::optional<double> SolEstimator::collective_time(const Program& program,
                                                    InstructionId start) const {
  const std::int64_t devices = program.device_count();
  const std::int64_t domain = std::min(devices, options_.partition_size);
  const Topology topology{.devices = devices, .gpus_per_domain = domain, .gpus_per_host = domain};
  const auto collective = find_collective(program, start, topology);
  if (!collective) return std::nullopt;
  const std::int64_t hosts = collective->group.domains;
  if (hosts <= 1) return collective_cost(*collective, profile_).time.value() * kMicrosecond;
  const auto bytes = static_cast<double>(collective->tensor.value());
  return bytes * 2 / profile_.device.hbm_bandwidth.value.value() * kMicrosecond +
         believed_network_time(collective->kind, bytes, hosts, options_.network);
}

}  // namespace spillway
