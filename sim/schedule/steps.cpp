#include "sim/schedule/steps.h"

namespace spillway {
namespace {

std::int64_t counted_bytes(const Program& program, const Value& value) {
  const Opcode opcode = program[value.defined_at.instruction].opcode;
  if (opcode == Opcode::kParameter || opcode == Opcode::kConstant) return 0;
  return is_host(value.shape.space()) ? 0 : value.shape.bytes().value();
}

class ArrayFinder {
 public:
  ArrayFinder(const Program& program, const ValueTable& values)
      : program_(program), values_(values), number_(values.values().size(), 0) {}

  void add_arrays(Steps& steps) {
    std::vector<StepLists::Edge> reads;
    steps.makes.resize(steps.size());
    for (std::uint32_t step = 0; step < steps.size(); ++step)
      for (const auto& i :
           {std::optional(steps.graph.steps[step].instruction), steps.graph.steps[step].done}) {
        if (!i) continue;
        steps.makes[step] += bytes_made({steps.id, *i});
        for (const Operand& operand : steps.computation->operands(*i))
          for_each_value(steps, operand, [&](ValueId value) {
            if (const auto array = number(steps, value)) reads.push_back({step, *array});
          });
      }
    for_each_value(steps, steps.computation->root(), [&](ValueId value) {
      if (number_[value] > 0) steps.arrays[number_[value] - 1].lives_out = true;
    });
    steps.reads = StepLists(steps.size(), steps.arrays.size(), reads);
    for (const ValueId value : numbered_) number_[value] = 0;
    numbered_.clear();
  }

 private:
  template <typename Visit>
  void for_each_value(const Steps& steps, Operand operand, Visit visit) const {
    const std::uint32_t nodes = steps.computation->shape_of(operand).node_count();
    for (ShapeNodeIndex node = 0; node < nodes; ++node)
      visit(values_.at(steps.id, {operand.instruction, operand.node + node}));
  }

  std::int64_t bytes_made(InstructionId id) const {
    std::int64_t bytes = 0;
    const std::uint32_t nodes = program_[id].shape.node_count();
    for (ShapeNodeIndex node = 0; node < nodes; ++node) {
      const Value& value = values_[values_.at(id, node)];
      if (value.defined_at.instruction == id && value.defined_at.node == node)
        bytes += counted_bytes(program_, value);
    }
    return bytes;
  }

  std::optional<std::uint32_t> number(Steps& steps, ValueId value) {
    if (number_[value] == 0) {
      const std::int64_t bytes = counted_bytes(program_, values_[value]);
      if (bytes == 0) return std::nullopt;
      steps.arrays.push_back({bytes, false});
      numbered_.push_back(value);
      number_[value] = static_cast<std::uint32_t>(steps.arrays.size());
    }
    return number_[value] - 1;
  }

  const Program& program_;
  const ValueTable& values_;
  IdVector<ValueId, std::uint32_t> number_;  ///< one more than that of the array; 0 is none
  std::vector<ValueId> numbered_;
};

}  // namespace

std::vector<Steps> make_steps(const Program& program, const Lifetimes& given) {
  const auto precedences = find_precedences(program, given);
  ArrayFinder finder(program, given.values);
  std::vector<Steps> all;
  for (const ComputationId id : ids(program.computations)) {
    if (!given.schedule.reaches(id)) continue;
    Steps& steps = all.emplace_back();
    steps.id = id;
    steps.computation = &program[id];
    steps.graph = make_step_graph(program[id], given.schedule.position[id], precedences[id]);
    finder.add_arrays(steps);
  }
  return all;
}

}  // namespace spillway
