#include "model/program/host_transfer.h"

#include <algorithm>

namespace spillway {
namespace {

bool on_host(Shape shape) { return shape.is_array() && is_host(shape.space()); }

/// A slice, an update or a copy somewhere behind bitcasts at a computation's root. Of a copy of a
/// slice, the slice.
std::optional<InstructionIndex> slice_at_root(const Computation& computation) {
  Operand at = computation.root();
  std::optional<InstructionIndex> copy;
  for (;;) {
    const InstructionIndex i = behind_renamings(computation, at).instruction;
    switch (computation[i].opcode) {
      case Opcode::kCopy:
        copy = i;
        at = computation.operands(i)[0];
        break;
      case Opcode::kDynamicSlice:
      case Opcode::kDynamicUpdateSlice:
      case Opcode::kSlice:
        return i;
      default:
        return copy;
    }
  }
}

/// What a copy or slice moves, given where it reads and where it writes.
std::optional<HostTransfer> classify(const Computation& computation, InstructionIndex i,
                                     bool to_host, bool from_host) {
  const Instruction& in = computation[i];
  if (to_host == from_host) return std::nullopt;
  HostTransfer transfer;
  transfer.direction =
      to_host ? TransferDirection::kDeviceToHost : TransferDirection::kHostToDevice;
  const bool is_update = in.opcode == Opcode::kDynamicUpdateSlice;
  transfer.shape = is_update ? computation.shape_of(computation.operands(i)[1]) : in.shape;
  transfer.bytes = transfer.shape.bytes();
  return transfer;
}

/// A transfer whose slice or copy stands inside a fusion, or inside what an async start wraps.
std::optional<HostTransfer> wrapped_transfer(const Program& program, InstructionId id) {
  const Computation& outer = program[id.computation];
  const Computation* inner = &program[outer.called(id.instruction)[0]];
  // An async start wraps a fusion that wraps the slice.
  std::vector<std::uint32_t> through;  // operand numbers of the inner call, empty: as they are
  if (inner->root_instruction().opcode == Opcode::kFusion) {
    const InstructionIndex fusion = inner->root().instruction;
    for (const Operand& operand : inner->operands(fusion)) {
      const auto number = find_parameter(*inner, operand);
      if (!number) return std::nullopt;
      through.push_back(*number);
    }
    inner = &program[inner->called(fusion)[0]];
  }
  const auto slice = slice_at_root(*inner);
  if (!slice) return std::nullopt;
  const auto number = find_parameter(*inner, inner->operands(*slice)[0]);
  if (!number) return std::nullopt;
  const std::uint32_t operand_number = through.empty() ? *number : through[*number];
  const auto operands = outer.operands(id.instruction);
  if (operand_number >= operands.size()) return std::nullopt;
  const Operand array = operands[operand_number];
  const Shape result = outer[id.instruction].opcode == Opcode::kAsyncStart
                           ? outer[id.instruction].shape.element(1)
                           : outer[id.instruction].shape;
  const bool update = (*inner)[*slice].opcode == Opcode::kDynamicUpdateSlice;
  const bool array_on_host = on_host(outer.shape_of(array));
  // An update writes where its array lies; a slice or copy reads there and writes its result.
  auto transfer = update ? classify(*inner, *slice, array_on_host, !array_on_host)
                         : classify(*inner, *slice, on_host(result), array_on_host);
  if (update && !array_on_host) return std::nullopt;  // device to device
  if (transfer && array_on_host) transfer->host_array = array;
  return transfer;
}

}  // namespace

std::optional<HostTransfer> host_transfer(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Instruction& in = computation[id.instruction];
  const auto operands = computation.operands(id.instruction);
  switch (in.opcode) {
    case Opcode::kCopy:
    case Opcode::kSlice:
    case Opcode::kDynamicSlice: {
      const bool from_host = on_host(computation.shape_of(operands[0]));
      auto transfer = classify(computation, id.instruction, on_host(in.shape), from_host);
      if (transfer && from_host) transfer->host_array = operands[0];
      return transfer;
    }
    case Opcode::kDynamicUpdateSlice: {
      if (!on_host(in.shape)) return std::nullopt;
      auto transfer =
          classify(computation, id.instruction, true, on_host(computation.shape_of(operands[1])));
      if (transfer) transfer->host_array = operands[0];
      return transfer;
    }
    case Opcode::kCopyStart: {  // (destination, source, context)
      if (in.shape.tuple_size() < 2) return std::nullopt;
      const bool from_host = on_host(in.shape.element(1));
      auto transfer =
          classify(computation, id.instruction, on_host(in.shape.element(0)), from_host);
      if (!transfer) return std::nullopt;
      transfer->shape = in.shape.element(0);
      transfer->bytes = transfer->shape.bytes();
      if (from_host) transfer->host_array = operands[0];
      return transfer;
    }
    case Opcode::kAsyncStart:
    case Opcode::kFusion:
      return wrapped_transfer(program, id);
    default:
      return std::nullopt;
  }
}

std::vector<TransferSite> find_transfers(const Program& program) {
  return find_transfers(program, multiplicity(program));
}

std::vector<TransferSite> find_transfers(const Program& program, const Multiplicity& times) {
  const auto sites = callers(program);
  std::vector<TransferSite> transfers;
  for (const ComputationId id : ids(program.computations)) {
    if (times.runs[id] == 0) continue;
    // Bodies of fusions and of async starts are counted where they are called.
    const bool is_inner = std::ranges::any_of(sites[id], [&program](InstructionId site) {
      return !is_control_flow(program[site].opcode);
    });
    if (is_inner) continue;
    for (const InstructionIndex i : program[id].instructions())
      if (const auto transfer = host_transfer(program, {id, i}))
        transfers.push_back({{id, i}, *transfer, times.runs[id]});
  }
  return transfers;
}

bool is_host_compute(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Instruction& in = computation[id.instruction];
  const auto frontend = computation.attribute(id.instruction, "frontend_attributes").value_or("");
  if (frontend.find("_xla_compute_type=\"host\"") != std::string_view::npos) return true;
  if (is_free(in) || is_async_done(in.opcode) || host_transfer(program, id)) return false;
  switch (in.opcode) {
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kCopyStart:
    case Opcode::kCustomCall:
    case Opcode::kWhile:
      return false;
    default:
      break;
  }
  for (const Operand& operand : computation.operands(id.instruction))
    if (on_host(computation.shape_of(operand))) return true;
  return false;
}

}  // namespace spillway
