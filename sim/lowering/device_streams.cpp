#include "sim/lowering/device_streams.h"

#include <deque>

#include "model/hlo/dump_facts.h"
#include "model/program/backend_config.h"
#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

/// kNumComputeStreams of XLA's GPU compiler; its dumps number them computation_stream[0] to [3].
constexpr std::uint32_t kComputationStreams = 4;

bool moves_between_devices(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Opcode opcode = computation[id.instruction].opcode;
  if (opcode == Opcode::kAsyncStart) {
    const Instruction& wrapped = program[computation.called(id.instruction)[0]].root_instruction();
    return is_collective(wrapped.opcode);
  }
  return is_async_start(opcode) && opcode != Opcode::kCopyStart;
}

}  // namespace

std::string to_string(DeviceStream stream) {
  switch (stream.pool) {
    case StreamPool::kMain:
      return "main";
    case StreamPool::kComputation:
      return "computation_stream[" + std::to_string(stream.index) + "]";
    case StreamPool::kCommunication:
      return "communication_stream[" + std::to_string(stream.index) + "]";
    case StreamPool::kDeviceToHost:
      return "memcpy_d2h_stream";
    case StreamPool::kHostToDevice:
      return "memcpy_h2d_stream";
  }
  return "";
}

CopyStreams copy_streams_of(const JaxlibVersion& version) {
  constexpr JaxlibVersion kFirst{{0, 12, 0, 0}};
  return version < kFirst ? CopyStreams::kRoundRobin : CopyStreams::kDedicated;
}

std::optional<CopyStreams> find_copy_streams(const std::optional<JaxlibVersion>& jaxlib,
                                             const Program& program) {
  if (jaxlib) return copy_streams_of(*jaxlib);
  const auto dedicated = thunks_have_copy_streams(program.path);
  if (!dedicated || find_transfers(program).empty()) return std::nullopt;
  return *dedicated ? CopyStreams::kDedicated : CopyStreams::kRoundRobin;
}

CopyStreams copy_streams_of(const Program& program) {
  return program.has_explicit_elements ? CopyStreams::kRoundRobin : CopyStreams::kDedicated;
}

StreamAssignment assign_streams(const Program& program, CopyStreams copies) {
  StreamAssignment streams(program.computations.size());
  std::deque<ComputationId> queue = {program.entry};
  std::uint32_t next = 0;
  while (!queue.empty()) {
    const ComputationId id = queue.front();
    queue.pop_front();
    const Computation& computation = program[id];
    if (!streams[id].empty()) continue;
    streams[id].resize(computation.size());
    for (const InstructionIndex i : instruction_post_order(computation)) {
      const Opcode opcode = computation[i].opcode;
      if (is_control_flow(opcode))
        for (const ComputationId callee : computation.called(i)) queue.push_back(callee);
      if (!is_async_start(opcode)) continue;
      auto& stream = streams[id][i.index];
      if (moves_between_devices(program, {id, i})) {
        stream = DeviceStream{
            is_synchronous(computation, i) ? StreamPool::kMain : StreamPool::kCommunication, 0};
        continue;
      }
      const auto transfer = host_transfer(program, {id, i});
      if (transfer && copies == CopyStreams::kBlocking) {
        stream = DeviceStream{StreamPool::kMain, 0};
        continue;
      }
      if (transfer && copies == CopyStreams::kDedicated) {
        const bool out = transfer->direction == TransferDirection::kDeviceToHost;
        stream = DeviceStream{out ? StreamPool::kDeviceToHost : StreamPool::kHostToDevice, 0};
        continue;
      }
      stream = DeviceStream{StreamPool::kComputation, next};
      next = (next + 1) % kComputationStreams;
    }
  }
  return streams;
}

}  // namespace spillway
