#include "sim/lowering/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/cost/run_time.h"

namespace spillway {
namespace {

using engine::SlotId;
using engine::StepId;
using engine::StreamId;
using engine::TaskId;

class Lowering {
 public:
  Lowering(const Program& program, const Schedule& schedule, const Lifetimes& memory,
           const CostTable& costs, const StreamAssignment& streams, const HardwareProfile& profile,
           const Topology& topology)
      : program_(program),
        schedule_(schedule),
        memory_(memory),
        costs_(costs),
        streams_(streams),
        gpus_of_cpu_(gpus_sharing_cpu(topology, profile)),
        tasks_(out_.program, profile, gpus_of_cpu_) {}

  LoweredProgram run() {
    out_.resources = tasks_.resources();
    if (gpus_of_cpu_ > 1)
      out_.assumptions.push_back(fmt::format(
          "all {} GPUs of a host CPU copy at the same time and share its memory", gpus_of_cpu_));
    lower_computation(program_.entry);
    return std::move(out_);
  }

 private:
  void lower_computation(ComputationId id);
  void lower_instruction(InstructionId id);
  void lower_loop(InstructionId id);
  void lower_conditional(InstructionId id);
  void lower_start(InstructionId id);
  void lower_done(InstructionId id);
  void lower_synchronous(InstructionId id);
  void wait(SlotId slot, StepId started, InstructionId done);

  TaskId make_task(InstructionId id);
  StreamId stream_of(DeviceStream stream);
  SlotId slot_of(InstructionId start);
  Seconds total_time(ComputationId id);

  void record(StepId step, StepOrigin origin) {
    if (out_.origins.size() <= step.index) out_.origins.resize(step.index + 1);
    out_.origins[step] = origin;
  }

  const Program& program_;
  const Schedule& schedule_;
  const Lifetimes& memory_;
  const CostTable& costs_;
  const StreamAssignment& streams_;
  std::int64_t gpus_of_cpu_;
  LoweredProgram out_;
  MachineTasks tasks_;                          // adds to `out_`
  IdVector<ComputationId, Seconds> run_times_;  ///< filled when a conditional asks
  std::map<DeviceStream, StreamId> engine_streams_;
  std::map<BufferId, SlotId> slots_;     ///< by the tuple that a start hands to its done
  std::map<SlotId, StepId> started_by_;  ///< the latest start lowered into a slot
};

void Lowering::lower_computation(ComputationId id) {
  const auto& order = schedule_.order[id];
  for (std::size_t k = 0; k < program_[id].size(); ++k)
    lower_instruction({id, order.empty() ? InstructionIndex(k) : order[k]});
}

void Lowering::lower_instruction(InstructionId id) {
  const Opcode opcode = program_[id].opcode;
  if (opcode == Opcode::kWhile) return lower_loop(id);
  if (opcode == Opcode::kConditional) return lower_conditional(id);
  if (opcode == Opcode::kCall)
    return lower_computation(program_[id.computation].called(id.instruction)[0]);
  if (is_async_start(opcode)) return lower_start(id);
  if (is_async_done(opcode)) return lower_done(id);
  if (opcode == Opcode::kAsyncUpdate || is_free(program_[id])) return;
  lower_synchronous(id);
}

void Lowering::lower_loop(InstructionId id) {
  const Computation& computation = program_[id.computation];
  const auto trips = known_trip_count(computation, id.instruction);
  if (!trips)
    out_.assumptions.push_back(
        fmt::format("loop {} runs once: its trip count is not known", program_[id].name));
  const StepId loop = add_loop(out_.program, trips.value_or(1), [&] {
    // XLA does not evaluate the condition of a loop whose count it knows.
    if (!trips) lower_computation(computation.called(id.instruction)[0]);
    lower_computation(computation.called(id.instruction)[1]);
  });
  record(loop, {.kind = StepOrigin::kLoop,
                .instruction = id,
                .direction = {},
                .stream = {},
                .done = {},
                .started = {}});
}

/// Which branch runs is not known: the longest is taken.
void Lowering::lower_conditional(InstructionId id) {
  const auto branches = program_[id.computation].called(id.instruction);
  const auto longest = std::ranges::max_element(
      branches, {}, [this](ComputationId branch) { return total_time(branch).value(); });
  lower_computation(*longest);
  out_.assumptions.push_back(
      fmt::format("conditional {} takes its longest branch", program_[id].name));
}

Seconds Lowering::total_time(ComputationId id) {
  if (run_times_.empty())
    run_times_ = run_times(program_, costs_, BranchTaken::kLongest,
                           [this](InstructionId in) { return costs_.cost(in).time; });
  return run_times_[id];
}

StreamId Lowering::stream_of(DeviceStream stream) {
  const auto found = engine_streams_.find(stream);
  if (found != engine_streams_.end()) return found->second;
  return engine_streams_[stream] = add_stream(out_.program);
}

/// One slot for everything that reaches one done: a start in the body and the one in front of the
/// loop hand the same carried tuple on.
SlotId Lowering::slot_of(InstructionId start) {
  const BufferId tuple = memory_.liveness.buffer_of[memory_.values.at(start, 0)];
  const auto found = slots_.find(tuple);
  if (found != slots_.end()) return found->second;
  return slots_[tuple] = add_slot(out_.program);
}

TaskId Lowering::make_task(InstructionId id) {
  const Cost& cost = costs_.cost(id);
  const auto transfer = host_transfer(program_, id);
  return transfer && cost.bound != Bound::kMeasured
             ? tasks_.add_host_copy(transfer->direction, transfer->bytes)
             : tasks_.add_device_task(cost);
}

void Lowering::lower_start(InstructionId id) {
  const auto stream = streams_[id.computation][id.instruction.index];
  const DeviceStream where = stream.value_or(DeviceStream{StreamPool::kComputation, 0});
  if (where.pool == StreamPool::kMain) return lower_synchronous(id);  // its done waits for nothing
  const auto transfer = host_transfer(program_, id);
  const SlotId slot = slot_of(id);
  const StepId step = add_start(out_.program, make_task(id), stream_of(where), slot);
  const bool collective = where.pool == StreamPool::kCommunication;
  StepOrigin origin{.kind = collective ? StepOrigin::kCollective : StepOrigin::kCopy,
                    .instruction = id,
                    .direction = {},
                    .stream = where,
                    .done = {},
                    .started = {}};
  if (transfer) origin.direction = transfer->direction;
  started_by_[slot] = step;
  record(step, origin);
}

void Lowering::lower_done(InstructionId id) {
  const Operand operand = program_[id.computation].operands(id.instruction)[0];
  const BufferId tuple = memory_.liveness.buffer_of[memory_.values.at(id.computation, operand)];
  const auto slot = slots_.find(tuple);
  if (slot == slots_.end()) return;  // its start was not lowered: a branch not taken
  wait(slot->second, started_by_[slot->second], id);
}

void Lowering::wait(SlotId slot, StepId started, InstructionId done) {
  const InstructionId start = out_.origins[started].instruction;
  StepOrigin origin{.kind = StepOrigin::kWait,
                    .instruction = start,
                    .direction = {},
                    .stream = {},
                    .done = done,
                    .started = started};
  if (const auto transfer = host_transfer(program_, start)) origin.direction = transfer->direction;
  const auto& stream = streams_[start.computation][start.instruction.index];
  origin.waits_for_collective = stream && stream->pool == StreamPool::kCommunication;
  record(add_wait(out_.program, slot), origin);
}

/// A kernel or a collective on the main stream; a host copy that blocks it.
void Lowering::lower_synchronous(InstructionId id) {
  const auto transfer = host_transfer(program_, id);
  const Cost& cost = costs_.cost(id);
  if (!transfer && cost.bound == Bound::kNone) return;
  if (!transfer) {
    const bool collective = cost.kernel == KernelClass::kCollective;
    record(add_run(out_.program, make_task(id)),
           {.kind = collective ? StepOrigin::kCollective : StepOrigin::kKernel,
            .instruction = id,
            .direction = {},
            .stream = {},
            .done = {},
            .started = {}});
    return;
  }
  const bool out = transfer->direction == TransferDirection::kDeviceToHost;
  const DeviceStream where{out ? StreamPool::kDeviceToHost : StreamPool::kHostToDevice, 0};
  const SlotId slot = add_slot(out_.program);
  const StepId start = add_start(out_.program, make_task(id), stream_of(where), slot);
  record(start, {.kind = StepOrigin::kCopy,
                 .instruction = id,
                 .direction = transfer->direction,
                 .stream = where,
                 .done = {},
                 .started = {}});
  wait(slot, start, id);
}

}  // namespace

LoweredProgram lower(const Program& program, const Schedule& schedule, const Lifetimes& memory,
                     const CostTable& costs, const StreamAssignment& streams,
                     const HardwareProfile& profile, const Topology& topology) {
  return Lowering(program, schedule, memory, costs, streams, profile, topology).run();
}

}  // namespace spillway
