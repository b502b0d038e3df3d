#include "sim/trace/record_history.h"

#include "model/program/host_transfer.h"
#include "sim/trace/chronicle.h"
#include "sim/trace/flows.h"

namespace spillway {

Result<RecordedStep> record_history(const Program& program, const MemoryAssignment& memory,
                                    const PreparedStep& prepared, std::size_t most_happenings) {
  const LoweredProgram& lowered = prepared.lowered;
  const MachineResources& machine = lowered.resources;
  ChronicleWriter writer(lowered.program,
                         {machine.device_to_host, machine.host_to_device, machine.hbm},
                         most_happenings);
  Result<engine::EngineResult> run = run_step(program, prepared, {}, &writer);
  if (!run.ok()) return run.error();
  History history = make_history(lowered, writer.take(), find_readers(program, memory, lowered),
                                 find_memory_levels(program, memory, lowered), run->makespan);
  return RecordedStep{std::move(run).value(), std::move(history)};
}

Bytes moved_bytes(const Program& program, const CostTable& costs, InstructionId id) {
  const Cost& cost = costs.cost(id);
  if (cost.kernel == KernelClass::kCollective) return cost.fabric_bytes + cost.network_bytes;
  const auto transfer = host_transfer(program, id);
  return transfer ? transfer->bytes : cost.hbm_bytes;
}

}  // namespace spillway
