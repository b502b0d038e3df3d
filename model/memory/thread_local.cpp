#include "model/memory/thread_local.h"

namespace spillway {
namespace {

class ThreadLocalFinder {
 public:
  explicit ThreadLocalFinder(const Program& program)
      : program_(program), seen_(program.computations.size(), 0) {}

  std::vector<Allocation> run() {
    visit(program_.entry);
    return std::move(found_);
  }

 private:
  void visit(ComputationId id) {
    std::vector<ComputationId> stack = {id};
    seen_[id] = 1;
    while (!stack.empty()) {
      const Computation& computation = program_[stack.back()];
      stack.pop_back();
      for (const InstructionIndex i : computation.instructions()) {
        const Opcode opcode = computation[i].opcode;
        for (const ComputationId callee : computation.called(i)) {
          if (seen_[callee]) continue;
          seen_[callee] = 1;
          stack.push_back(callee);
          if (!runs_what_it_calls(opcode) && opcode != Opcode::kFusion) add(program_[callee]);
        }
      }
    }
  }

  void add(const Computation& computation) {
    for (const InstructionIndex i : computation.instructions()) {
      const Instruction& in = computation[i];
      if (in.opcode == Opcode::kBitcast) continue;  // no value of its own
      const std::uint32_t nodes = in.opcode == Opcode::kTuple ? 1 : in.shape.node_count();
      for (ShapeNodeIndex node = 0; node < nodes; ++node) {
        Allocation allocation{.size = in.shape.at(node).bytes(), .parameter = {}};
        allocation.constant = in.opcode == Opcode::kConstant;
        allocation.thread_local_scalar = !allocation.constant;
        found_.push_back(allocation);
      }
    }
  }

  const Program& program_;
  IdVector<ComputationId, std::uint8_t> seen_;
  std::vector<Allocation> found_;
};

}  // namespace

std::vector<Allocation> thread_local_allocations(const Program& program) {
  return ThreadLocalFinder(program).run();
}

}  // namespace spillway
