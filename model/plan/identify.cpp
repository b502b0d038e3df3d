#include <fmt/format.h>

#include "model/base/fingerprint.h"
#include "model/plan/plan_file.h"

namespace spillway {
namespace {

void add_computation(const Computation& computation, Fingerprint& print) {
  print.add(computation.name());
  for (const InstructionIndex i : computation.instructions()) {
    const Instruction& in = computation[i];
    print.add(in.name);
    print.add(in.opcode_text);
    print.add(to_string(in.shape));
    print.add(in.literal);
    for (const Operand& operand : computation.operands(i)) {
      print.add(operand.instruction.index);
      print.add(operand.node);
    }
    for (const ComputationId called : computation.called(i)) print.add(called.index);
  }
}

}  // namespace

ProgramIdentity identify(const Program& program, const MemoryTotals& totals) {
  Fingerprint print;
  print.add(program.name);
  for (const ComputationId id : ids(program.computations)) add_computation(program[id], print);
  return {.name = program.name,
          .fingerprint = fmt::format("{:016x}", print.value()),
          .instructions = static_cast<std::int64_t>(program.instruction_count()),
          .devices = program.device_count(),
          .arguments = totals.argument + totals.host_argument};
}

}  // namespace spillway
