#include "sim/schedule/latency/kernel_model.h"

#include <algorithm>
#include <cmath>

#include "model/cost/operand_shape.h"
#include "sim/schedule/latency/fused_work.h"

namespace spillway {
namespace {

constexpr double kOverlap = 0.95;  ///< of the shorter of computing and memory
constexpr double kL2Speedup = 2.5, kL1Speedup = 8;
constexpr double kL1BytesOfSm = 2048;
constexpr double kBytesOfBlockPerClock = 32;
constexpr double kThreadsOfBlock = 128, kMostThreadsOfSm = 2048, kFpusOfSm = 128;

/// XLA's durations count quarters of a nanosecond.
double to_quarters(double nanoseconds) { return std::round(nanoseconds * 4) / 4; }

struct Launch {
  double blocks = 1, threads = 1;
};

double elements_of_first(Shape shape) {
  while (shape.is_tuple() && shape.tuple_size() > 0) shape = shape.element(0);
  return shape.is_array() ? static_cast<double>(shape.elements()) : 1;
}

/// Whether a reduction sums along the fastest dimension of its operand: then a block takes a row.
bool reduces_rows(const Computation& computation, InstructionIndex reduce) {
  const Shape operand = operand_shape(computation, reduce, 0);
  const auto dims = parse_integers(computation.attribute(reduce, "dimensions").value_or(""));
  const auto fastest = operand.minor_to_major();
  const auto last = static_cast<std::int64_t>(operand.dims().size()) - 1;
  return std::ranges::find(dims, fastest.empty() ? last : fastest[0]) != dims.end();
}

/// Loop fusions: 128 threads a block, four elements a thread once there are enough to fill the
/// device. Reductions: a block for eight rows, or for 64 columns.
Launch launch_of(const Program& program, InstructionId id, const Device& device) {
  const Computation& computation = program[id.computation];
  double elements = elements_of_first(computation[id.instruction].shape);
  if (computation[id.instruction].opcode == Opcode::kFusion) {
    const ComputationId fused = called_by(computation, id.instruction);
    for (const InstructionIndex i : program[fused].instructions()) {
      if (program[fused][i].opcode != Opcode::kReduce) continue;
      const double results = elements_of_first(program[fused][i].shape);
      const double of_block = reduces_rows(program[fused], i) ? 8 : 64;
      return {std::max(1.0, std::ceil(results / of_block)), kThreadsOfBlock};
    }
  }
  const double fills = kMostThreadsOfSm * static_cast<double>(device.sm_count.value.value());
  const auto count = static_cast<std::int64_t>(elements);
  if (elements >= fills) elements /= count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
  return {std::max(1.0, std::ceil(elements / kThreadsOfBlock)),
          std::clamp(elements, 1.0, kThreadsOfBlock)};
}

/// Nanoseconds to read an operand of `bytes`, `total` in all.
double read_time(double bytes, double total, const Launch& launch, const Device& device) {
  const double bandwidth = device.hbm_bandwidth.value.value();
  const double limit = launch.blocks * device.clock.value.value() * kBytesOfBlockPerClock;
  double again = bandwidth;
  if (bytes < static_cast<double>(device.l2_capacity.value.value())) {
    again *= kL2Speedup;
    const double l1 = kL1BytesOfSm * static_cast<double>(device.sm_count.value.value());
    if (bytes < l1) again *= kL1Speedup;
  }
  const double first = std::min(bytes, total);
  constexpr double kNanosecond = 1e9;
  return to_quarters(first / std::min(bandwidth, limit) * kNanosecond) +
         to_quarters((total - first) / std::min(again, limit) * kNanosecond);
}

}  // namespace

KernelBelief believed_kernel(const Program& program, InstructionId id, const Device& device) {
  const Computation& computation = program[id.computation];
  const FusedWork work = fused_work(program, id);
  const Launch launch = launch_of(program, id, device);
  KernelBelief belief;
  const double sms = static_cast<double>(device.sm_count.value.value());
  const double per_nanosecond =
      std::max(1.0, std::floor(device.clock.value.value() * 1e-9 * 2 *
                               std::min(launch.blocks, sms) * std::min(launch.threads, kFpusOfSm)));
  belief.compute = to_quarters(work.operations / per_nanosecond);
  const auto operands = computation.operands(id.instruction);
  for (std::size_t k = 0; k < operands.size() && k < work.bytes_read.size(); ++k) {
    const auto size = static_cast<double>(computation.shape_of(operands[k]).array_bytes().value());
    const double total = std::floor(work.bytes_read[k]);
    belief.read += read_time(std::min(size, total), total, launch, device);
  }
  belief.write = to_quarters(work.bytes_written / device.hbm_bandwidth.value.value() * 1e9);
  const double memory = belief.read + belief.write;
  belief.time = belief.compute + memory - to_quarters(kOverlap * std::min(belief.compute, memory));
  return belief;
}

}  // namespace spillway
