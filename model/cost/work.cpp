#include "model/cost/work.h"

#include "model/cost/element_ops.h"
#include "model/cost/library_call.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

/// The name of the first thing in it that is unknown, fusions and async starts looked into.
std::string_view unknown_name(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const Instruction& in = computation[id.instruction];
  if (in.opcode == Opcode::kFusion || in.opcode == Opcode::kAsyncStart) {
    const ComputationId inner = called_by(computation, id.instruction);
    for (const InstructionIndex i : program[inner].instructions())
      if (const auto name = unknown_name(program, {inner, i}); !name.empty()) return name;
    return {};
  }
  if (kernel_kind(program, id).kernel != KernelClass::kUnknown) return {};
  return in.opcode == Opcode::kCustomCall ? call_target(computation, id.instruction)
                                          : in.opcode_text;
}

/// Where operations on elements hide behind something longer, or are no kernel's at all.
bool counts_elements(const KernelKind& kind) {
  if (kind.is_memcpy) return false;
  switch (kind.kernel) {
    case KernelClass::kAttentionBackward:
    case KernelClass::kAttentionForward:
    case KernelClass::kCollective:
    case KernelClass::kFree:
    case KernelClass::kGemm:
      return false;
    default:
      return true;
  }
}

}  // namespace

Work work_of(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const KernelKind kind = kernel_kind(program, id);
  Work work{.kernel = kind.kernel, .is_memcpy = kind.is_memcpy, .launches = kind.launches};
  if (kind.kernel == KernelClass::kFree) return work;
  const bool wraps = computation[id.instruction].opcode == Opcode::kAsyncStart;
  work.ops =
      wraps ? count_ops(program, called_by(computation, id.instruction)) : count_ops(program, id);
  if (counts_elements(kind)) work.element_ops = count_element_ops(program, id);
  work.traffic = count_traffic(program, id);
  if (kind.kernel == KernelClass::kUnknown) work.unknown = unknown_name(program, id);
  return work;
}

}  // namespace spillway
