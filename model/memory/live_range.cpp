#include "model/memory/live_range.h"

#include <algorithm>
#include <numeric>
namespace spillway {
namespace {

/// Union-find over value numbers.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  /// Keeps the smaller number as the representative, so that buffers come in order of first value.
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a > b) std::swap(a, b);
    parent_[b] = a;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

class LivenessFinder {
 public:
  LivenessFinder(const Program& program, const FlatSchedule& flat, const ValueTable& values,
                 const InPlacePairs& in_place)
      : program_(program),
        flat_(flat),
        values_(values),
        in_place_(in_place),
        sets_(values.values().size()) {}

  Liveness run() {
    for (const ComputationId id : ids(program_.computations)) {
      if (!flat_.reaches(id)) continue;
      for (const InstructionIndex i : program_[id].instructions()) join_aliases({id, i});
    }
    join_donated();
    make_buffers();
    result_.ranges = find_live_ranges(program_, flat_, values_, result_);
    return std::move(result_);
  }

 private:
  void join_all(ComputationId a_id, Operand a, ComputationId b_id, Operand b, std::uint32_t nodes);
  void join_aliases(InstructionId id);
  void join_donated();
  void make_buffers();
  void join(ValueId a, ValueId b) { sets_.join(a.index, b.index); }

  const Program& program_;
  const FlatSchedule& flat_;
  const ValueTable& values_;
  const InPlacePairs& in_place_;
  Sets sets_;
  Liveness result_;
};

/// Joins the values of every node of one shape at two places.
void LivenessFinder::join_all(ComputationId a_id, Operand a, ComputationId b_id, Operand b,
                              std::uint32_t nodes) {
  for (ShapeNodeIndex node = 0; node < nodes; ++node)
    join(values_.at(a_id, Operand{a.instruction, a.node + node}),
         values_.at(b_id, Operand{b.instruction, b.node + node}));
}

void LivenessFinder::join_aliases(InstructionId id) {
  const Computation& computation = program_[id.computation];
  const Instruction& in = computation[id.instruction];
  const auto operands = computation.operands(id.instruction);
  const auto called = computation.called(id.instruction);
  const Operand result{id.instruction, 0};
  const std::uint32_t nodes = in.shape.node_count();
  if (in.opcode == Opcode::kWhile) {
    join_all(id.computation, result, id.computation, operands[0], nodes);
    for (const ComputationId callee : called)
      join_all(id.computation, result, callee, Operand{program_[callee].parameters()[0], 0}, nodes);
    join_all(id.computation, result, called[1], program_[called[1]].root(), nodes);
    return;
  }
  if (in.opcode == Opcode::kConditional) {
    for (const ComputationId branch : called)
      join_all(id.computation, result, branch, program_[branch].root(), nodes);
    return;
  }
  for (const InPlacePair& pair : in_place_.of(id)) {
    check(pair.operand_number < operands.size(), "an in-place update has no such operand");
    const Operand operand = operands[pair.operand_number];
    join(
        values_.at(id, pair.output),
        values_.at(id.computation, Operand{operand.instruction, operand.node + pair.operand_node}));
  }
}

void LivenessFinder::join_donated() {
  const Computation& entry = program_.entry_computation();
  const Operand root = entry.root();
  for (const InputOutputAlias& alias : program_.aliases) {
    check(alias.parameter < entry.parameters().size(), "a donated parameter does not exist");
    const ValueId parameter =
        values_.at({program_.entry, entry.parameters()[alias.parameter]}, alias.parameter_node);
    join(values_.at(program_.entry, Operand{root.instruction, root.node + alias.output}),
         parameter);
    result_.donated.insert(parameter);
  }
}

void LivenessFinder::make_buffers() {
  const std::size_t n = values_.values().size();
  result_.buffer_of = IdVector<ValueId, BufferId>(n);
  std::vector<std::optional<BufferId>> of_set(n);
  for (const ValueId value : ids(values_.values())) {
    auto& buffer = of_set[sets_.find(value.index)];
    if (!buffer) buffer = result_.buffers.push({{}, Bytes(0), values_[value].shape.space(), false});
    Buffer& members = result_.buffers[*buffer];
    members.values.push_back(value);
    members.size = std::max(members.size, values_[value].shape.bytes());
    result_.buffer_of[value] = *buffer;
  }
  const Computation& entry = program_.entry_computation();
  const Operand root = entry.root();
  const std::uint32_t nodes = entry.shape_of(root).node_count();
  for (ShapeNodeIndex node = 0; node < nodes; ++node)
    result_
        .buffers[result_.buffer_of[values_.at(program_.entry,
                                              Operand{root.instruction, root.node + node})]]
        .live_out = true;
}

class RangeFinder {
 public:
  RangeFinder(const Program& program, const FlatSchedule& flat, const ValueTable& values,
              const Liveness& liveness)
      : program_(program),
        flat_(flat),
        values_(values),
        liveness_(liveness),
        ranges_(values.values().size()) {}

  IdVector<ValueId, LiveRange> run() {
    find_ranges();
    make_disjoint();
    return std::move(ranges_);
  }

 private:
  void find_ranges();
  void extend_to(ValueId value, LogicalTime time) {
    ranges_[value].end = std::max(ranges_[value].end, time);
  }
  void extend_positions(InstructionId id);
  void extend_uses(InstructionId id);
  LogicalTime definition_start(InstructionId id, const FlatSchedule::Span& span) const;
  LogicalTime definition_end(InstructionId id, const FlatSchedule::Span& span) const;
  void make_disjoint();

  const Program& program_;
  const FlatSchedule& flat_;
  const ValueTable& values_;
  const Liveness& liveness_;  ///< its buffers
  IdVector<ValueId, LiveRange> ranges_;
};

void RangeFinder::find_ranges() {
  for (const ValueId value : ids(values_.values())) {
    const InstructionId id = values_[value].defined_at.instruction;
    const FlatSchedule::Span& span = flat_.span[id.computation];
    const LogicalTime start = definition_start(id, span);
    ranges_[value] = {start, std::max(start, definition_end(id, span))};
  }
  for (const ComputationId id : ids(program_.computations)) {
    if (!flat_.reaches(id)) continue;
    for (const InstructionIndex i : program_[id].instructions()) {
      extend_positions({id, i});
      extend_uses({id, i});
    }
  }
  // What the caller did not donate stays his until the end.
  for (const InstructionIndex parameter : program_.entry_computation().parameters()) {
    const InstructionId id{program_.entry, parameter};
    for (ShapeNodeIndex node = 0; node < program_[id].shape.node_count(); ++node)
      if (const ValueId value = values_.at(id, node); !liveness_.donated.contains(value))
        extend_to(value, flat_.end());
  }
}

LogicalTime RangeFinder::definition_start(InstructionId id, const FlatSchedule::Span& span) const {
  const bool parameter = program_[id].opcode == Opcode::kParameter;
  const LogicalTime start =
      parameter ? span.start : flat_.position[id.computation][id.instruction.index];
  // Soon after it began to write %x#1, XLA began to count what an async start wraps from the start.
  const auto async = flat_.async_start[id.computation];
  return async && !program_.has_explicit_elements ? std::max(start, *async) : start;
}

LogicalTime RangeFinder::definition_end(InstructionId id, const FlatSchedule::Span& span) const {
  const bool root = program_[id.computation].root().instruction == id.instruction;
  LogicalTime end = root ? span.end : flat_.position[id.computation][id.instruction.index];
  // What an async start wraps runs until the done; a done in a later iteration is beyond the end.
  if (const auto done = flat_.async_done[id.computation]) end = std::max(end, *done);
  return end;
}

/// A value lives wherever it appears: in a tuple, behind a bitcast, in a loop's state.
void RangeFinder::extend_positions(InstructionId id) {
  const bool root = program_[id.computation].root().instruction == id.instruction;
  const LogicalTime time =
      root ? flat_.span[id.computation].end : flat_.position[id.computation][id.instruction.index];
  for (ShapeNodeIndex node = 0; node < program_[id].shape.node_count(); ++node) {
    const ValueId value = values_.at(id, node);
    if (values_[value].defined_at.instruction == id) continue;
    extend_to(value, time);
  }
}

void RangeFinder::extend_uses(InstructionId id) {
  const Computation& computation = program_[id.computation];
  const Instruction& in = computation[id.instruction];
  // A call's uses are those inside; a loop's initial state dies when the body starts.
  if (in.opcode == Opcode::kCall) return;
  LogicalTime time = flat_.position[id.computation][id.instruction.index];
  if (in.opcode == Opcode::kWhile) {
    const ComputationId body = computation.called(id.instruction)[1];
    time = flat_.position[body][program_[body].parameters()[0].index];
  }
  const bool passes_through = in.opcode == Opcode::kTuple || in.opcode == Opcode::kDomain;
  for (const Operand& operand : computation.operands(id.instruction)) {
    const std::uint32_t nodes =
        in.opcode == Opcode::kCopy ? 1 : computation.shape_of(operand).node_count();
    for (ShapeNodeIndex node = 0; node < nodes && !passes_through; ++node)
      extend_to(values_.at(id.computation, Operand{operand.instruction, operand.node + node}),
                time);
  }
}

/// Values of one buffer follow one another: each ends where the next begins.
void RangeFinder::make_disjoint() {
  for (const Buffer& buffer : liveness_.buffers) {
    if (buffer.values.size() < 2) continue;
    std::vector<ValueId> sorted = buffer.values;
    std::ranges::sort(sorted, [this](ValueId a, ValueId b) {
      const LiveRange& x = ranges_[a];
      const LiveRange& y = ranges_[b];
      return std::tie(x.start, x.end, a.index) < std::tie(y.start, y.end, b.index);
    });
    for (std::size_t k = 0; k + 1 < sorted.size(); ++k) {
      LiveRange& first = ranges_[sorted[k]];
      LiveRange& second = ranges_[sorted[k + 1]];
      second.end = std::max(first.end, second.end);
      first.end = std::min(first.end, second.start);
    }
  }
}

}  // namespace

Liveness find_liveness(const Program& program, const FlatSchedule& schedule,
                       const ValueTable& values, const InPlacePairs& in_place) {
  return LivenessFinder(program, schedule, values, in_place).run();
}

IdVector<ValueId, LiveRange> find_live_ranges(const Program& program, const FlatSchedule& schedule,
                                              const ValueTable& values, const Liveness& liveness) {
  return RangeFinder(program, schedule, values, liveness).run();
}

}  // namespace spillway
