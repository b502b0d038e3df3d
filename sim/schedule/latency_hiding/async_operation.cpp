#include "sim/schedule/latency_hiding/async_operation.h"

#include "model/program/backend_config.h"

namespace spillway {
namespace {

bool on_host(Shape shape) { return shape.is_array() && is_host(shape.space()); }

/// XLA's IsDynamicSliceCopyFusion: the body of a fusion slices, or updates with what a parameter
/// holds, where the loop's index says; nothing is computed.
bool copies_slice(const Program& program, ComputationId body) {
  const Computation& computation = program[body];
  const InstructionIndex root = behind_renamings(computation, computation.root()).instruction;
  const Opcode opcode = computation[root].opcode;
  if (opcode != Opcode::kDynamicSlice && opcode != Opcode::kDynamicUpdateSlice) return false;
  if (!config_contains(computation, root, "dynamic_slice_config")) return false;
  if (opcode == Opcode::kDynamicSlice)
    return find_parameter(computation, computation.operands(root)[0]).has_value();
  const Operand update = behind_renamings(computation, computation.operands(root)[1]);
  const Instruction& source = computation[update.instruction];
  if (source.opcode == Opcode::kDynamicSlice)
    return config_contains(computation, update.instruction, "dynamic_slice_config");
  return source.opcode == Opcode::kParameter || source.opcode == Opcode::kSlice;
}

/// What an async start runs, where it stands in its own computation.
InstructionId wrapped(const Program& program, InstructionId start) {
  const ComputationId inner = program[start.computation].called(start.instruction)[0];
  return {inner, program[inner].root().instruction};
}

AsyncOperation generic_operation(const Program& program, InstructionId start) {
  const InstructionId inner = wrapped(program, start);
  const Computation& computation = program[inner.computation];
  AsyncOperation operation;
  if (is_collective(program[inner].opcode)) {
    operation.resource = AsyncResource::kCollectives;
    operation.is_hidden = !is_synchronous(program[start.computation], start.instruction);
    return operation;
  }
  const bool is_fusion = program[inner].opcode == Opcode::kFusion;
  const bool slices = is_fusion && copies_slice(program, computation.called(inner.instruction)[0]);
  if (slices) operation.resource = AsyncResource::kSlices;
  const bool copies_to_or_from_host =
      is_fusion && (on_host(program[inner].shape) ||
                    on_host(computation.shape_of(computation.operands(inner.instruction)[0])));
  const auto thread =
      program[start.computation].attribute(start.instruction, "async_execution_thread");
  operation.is_hidden = slices || copies_to_or_from_host || (thread && *thread != "\"main\"");
  return operation;
}

/// The start that a done ends; empty where another iteration or computation made it.
std::optional<InstructionIndex> start_of(const Computation& computation, InstructionIndex done) {
  Operand at = computation.operands(done)[0];
  while (computation[at.instruction].opcode == Opcode::kAsyncUpdate)
    at = computation.operands(at.instruction)[0];
  if (!is_async_start(computation[at.instruction].opcode)) return std::nullopt;
  return at.instruction;
}

}  // namespace

std::optional<AsyncOperation> async_operation(const Program& program, InstructionId id) {
  using Role = AsyncOperation::Role;
  const Computation& computation = program[id.computation];
  switch (computation[id.instruction].opcode) {
    case Opcode::kCopyStart:
      return AsyncOperation{Role::kStart, AsyncResource::kComputes};
    case Opcode::kCopyDone:
      return AsyncOperation{Role::kDone, AsyncResource::kComputes};
    case Opcode::kSend:
      return AsyncOperation{Role::kStart, AsyncResource::kSend};
    case Opcode::kSendDone:
      return AsyncOperation{Role::kDone, AsyncResource::kSend};
    case Opcode::kRecv:
      return AsyncOperation{Role::kStart, AsyncResource::kReceive};
    case Opcode::kRecvDone:
      return AsyncOperation{Role::kDone, AsyncResource::kReceive};
    case Opcode::kAsyncStart:
      return generic_operation(program, id);
    default:
      break;
  }
  const Opcode opcode = computation[id.instruction].opcode;
  if (is_async_start(opcode))  // all-gather-start and the like
    return AsyncOperation{Role::kStart, AsyncResource::kCollectives,
                          !is_synchronous(computation, id.instruction)};
  if (!is_async_done(opcode)) return std::nullopt;
  const auto start = start_of(computation, id.instruction);
  if (!start) return std::nullopt;
  auto operation = async_operation(program, {id.computation, *start});
  if (operation) operation->role = Role::kDone;
  return operation;
}

bool is_offload_of_slice(const Program& program, InstructionId start) {
  if (program[start].opcode != Opcode::kAsyncStart) return false;
  const InstructionId inner = wrapped(program, start);
  if (program[inner].opcode != Opcode::kFusion) return false;
  const Computation& body = program[program[inner.computation].called(inner.instruction)[0]];
  for (const InstructionIndex i : body.instructions())
    if (body[i].opcode == Opcode::kDynamicUpdateSlice &&
        (on_host(body[i].shape) || on_host(body.shape_of(body.operands(i)[0]))))
      return true;
  return false;
}

}  // namespace spillway
