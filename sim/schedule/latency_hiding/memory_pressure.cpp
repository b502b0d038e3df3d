#include "sim/schedule/latency_hiding/memory_pressure.h"

#include <algorithm>

namespace spillway {

CountedBuffers::CountedBuffers(const Program& program, const FlatSchedule& flat,
                               const ValueTable& values, const Liveness& liveness)
    : program_(program),
      flat_(flat),
      values_(values),
      liveness_(liveness),
      counted_(liveness.buffers.size()) {
  for (const BufferId buffer : ids(liveness.buffers)) {
    const Shape shape = values[liveness.buffers[buffer].values[0]].shape;
    counted_[buffer].bytes = shape.bytes().value();
    counted_[buffer].is_counted = shape.is_tuple() || shape.space() == MemorySpace::kDevice;
  }
  std::vector<std::uint8_t> seen(counted_.size(), 0);
  for (const InstructionId id : flat.order) {
    const Instruction& in = program[id];
    for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node) {
      const ValueId value = values.at(id, node);
      const BufferId buffer = liveness.buffer_of[value];
      Counted& counted = counted_[buffer];
      if (seen[buffer.index] == 0) {
        seen[buffer.index] = 1;
        counted.first = id;
        counted.is_argument = in.opcode == Opcode::kParameter && id.computation == program.entry;
      }
      if (counted.first == id && values[value].defined_at.instruction == id)
        counted.is_made_by_first = true;
    }
  }
}

bool CountedBuffers::ends_with(BufferId buffer, InstructionId id) const {
  const Counted& counted = counted_[buffer];
  if (!counted.is_counted) return false;
  if (counted.first == id) return counted.is_made_by_first;
  if (!runs_what_it_calls(program_[id].opcode)) return false;
  for (auto caller = flat_.caller[counted.first.computation]; caller;
       caller = flat_.caller[caller->computation])
    if (*caller == id) return true;
  return false;
}

NodeBuffers::NodeBuffers(const CountedBuffers& buffers, ComputationId id,
                         const ElementOrder& nodes) {
  const Computation& computation = buffers.program()[id];
  const auto begin = [&](InstructionIndex i, ShapeNodeIndex at) {
    const BufferId buffer = buffers.at({id, i}, at);
    if (buffers.begins(buffer)) ids_.push_back(buffer);
  };
  first_.reserve(2 * nodes.size() + 1);
  first_.push_back(0);
  const auto close = [&] { first_.push_back(static_cast<std::uint32_t>(ids_.size())); };
  for (const Operand& node : nodes) {
    const InstructionId self{id, node.instruction};
    if (node.node != 0) {  // only the tuple's table is read
      begin(node.instruction, 0);
      close();
      close();
      continue;
    }
    const Instruction& in = computation[node.instruction];
    for (const Operand& operand : computation.operands(node.instruction)) {
      const std::uint32_t count =
          in.opcode == Opcode::kBitcast ? 1 : computation.shape_of(operand).node_count();
      for (ShapeNodeIndex k = 0; k < count; ++k) begin(operand.instruction, operand.node + k);
    }
    close();
    if (in.opcode != Opcode::kParameter)
      for (ShapeNodeIndex k = 0; k < in.shape.node_count(); ++k)
        if (const BufferId buffer = buffers.at(self, k); buffers.ends_with(buffer, self))
          ids_.push_back(buffer);
    close();
  }
}

MemoryPressure::MemoryPressure(const CountedBuffers& buffers, const std::vector<BufferId>& around)
    : buffers_(&buffers), is_live_(buffers.size(), 0) {
  for (const BufferId buffer : around) {
    is_live_[buffer] = 1;
    around_ += buffers.bytes(buffer);
  }
}

MemoryPressure::Change MemoryPressure::change(const NodeBuffers& of_nodes, NodeIndex node,
                                              std::int64_t inner) const {
  Change change;
  for (const BufferId buffer : of_nodes.begun(node))
    if (is_live_[buffer] == 0) change.net += buffers_->bytes(buffer);
  change.peak = std::max(change.net, inner);
  for (const BufferId buffer : of_nodes.ended(node))
    if (is_live_[buffer] != 0) change.net -= buffers_->bytes(buffer);
  return change;
}

void MemoryPressure::add(const NodeBuffers& of_nodes, NodeIndex node, std::int64_t inner) {
  peak_ = std::max(peak_, within_ + inner);
  for (const BufferId buffer : of_nodes.begun(node))
    if (is_live_[buffer] == 0) {
      is_live_[buffer] = 1;
      within_ += buffers_->bytes(buffer);
    }
  peak_ = std::max(peak_, within_);
  for (const BufferId buffer : of_nodes.ended(node))
    if (is_live_[buffer] != 0) {
      is_live_[buffer] = 0;
      within_ -= buffers_->bytes(buffer);
    }
}

std::vector<BufferId> MemoryPressure::live() const {
  std::vector<BufferId> live;
  const auto begin = is_live_.begin();
  for (auto at = std::find(begin, is_live_.end(), 1); at != is_live_.end();
       at = std::find(at + 1, is_live_.end(), 1))
    live.push_back(BufferId(static_cast<std::size_t>(at - begin)));
  return live;
}

std::int64_t ProgramPressure::inner_peak(const Computation& computation, InstructionIndex i) const {
  std::int64_t most = 0;
  if (!runs_what_it_calls(computation[i].opcode)) return most;
  for (const ComputationId callee : computation.called(i)) most = std::max(most, peak[callee]);
  return most;
}

namespace {

class PressureFinder {
 public:
  PressureFinder(const CountedBuffers& buffers, const IdVector<ComputationId, ElementOrder>& orders)
      : buffers_(buffers), program_(buffers.program()), orders_(orders) {
    found_.around.resize(program_.computations.size());
    found_.peak = IdVector<ComputationId, std::int64_t>(program_.computations.size(), 0);
  }

  ProgramPressure run() {
    enter(program_.entry, {});
    while (!frames_.empty()) advance();
    return std::move(found_);
  }

 private:
  /// A computation under way. Programs may nest deeper than the machine's stack, so these stand on
  /// one of our own.
  struct Frame {
    ComputationId id;
    NodeBuffers of_nodes;
    MemoryPressure pressure;
    NodeIndex left;               ///< nodes before it are still to come
    std::size_t next_callee = 0;  ///< of the last of these
  };

  void enter(ComputationId id, std::vector<BufferId> around) {
    frames_.push_back({id, NodeBuffers(buffers_, id, orders_[id]), MemoryPressure(buffers_, around),
                       static_cast<NodeIndex>(orders_[id].size())});
    found_.around[id] = std::move(around);
  }

  /// Enters what the next node runs, or passes it. What is called from several places keeps what
  /// the first of them leaves it.
  void advance() {
    Frame& frame = frames_.back();
    if (frame.left == 0) {
      found_.peak[frame.id] = frame.pressure.peak();
      frames_.pop_back();
      return;
    }
    const Computation& computation = program_[frame.id];
    const Operand node = orders_[frame.id][frame.left - 1];
    std::int64_t inner = 0;
    if (node.node == 0 && runs_what_it_calls(computation[node.instruction].opcode)) {
      const auto callees = computation.called(node.instruction);
      if (frame.next_callee < callees.size())
        return enter(callees[frame.next_callee++], frame.pressure.live());
      inner = found_.inner_peak(computation, node.instruction);
    }
    --frame.left;
    frame.next_callee = 0;
    frame.pressure.add(frame.of_nodes, frame.left, inner);
  }

  const CountedBuffers& buffers_;
  const Program& program_;
  const IdVector<ComputationId, ElementOrder>& orders_;
  ProgramPressure found_;
  std::vector<Frame> frames_;
};

}  // namespace

ProgramPressure find_pressure(const CountedBuffers& buffers,
                              const IdVector<ComputationId, ElementOrder>& orders) {
  return PressureFinder(buffers, orders).run();
}

}  // namespace spillway
