#include <fmt/format.h>

#include "model/plan/plan_file.h"

namespace spillway {
namespace {

/// FNV-1a with 64 bits: the same on every machine, and good enough to tell programs apart that
/// nobody makes to collide.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xff);  // in no UTF-8: "ab", "c" is not "a", "bc"
  }
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8)
      add_byte(static_cast<unsigned char>((number >> shift) & 0xff));
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }

  std::uint64_t hash_ = 0xcbf29ce484222325;
};

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
