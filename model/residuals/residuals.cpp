#include "model/residuals/residuals.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/program/slice_access.h"
#include "model/residuals/match_names.h"

namespace spillway {
namespace {

/// A slice of a stack touched inside some loop, the innermost while around it.
struct Touch {
  StackAccess where;
  SliceAccess access;
};

class ResidualFinder {
 public:
  ResidualFinder(const Program& program, const Lifetimes& memory)
      : program_(program), memory_(memory) {}

  ResidualTable run() {
    index_uses();
    collect_touches();
    collect_copies();
    for (auto& [buffer, touches] : touches_) add_residual(buffer, touches);
    std::ranges::sort(found_, {}, [this](const Residual& r) { return carry_order(r); });
    ResidualTable table;
    for (Residual& residual : found_) {
      residual.id = "r" + std::to_string(table.residuals.size());
      table.residuals.push(std::move(residual));
    }
    return table;
  }

 private:
  void index_uses();
  void collect_touches();
  void collect_copies();
  void add_residual(BufferId buffer, const std::vector<Touch>& touches);
  void describe_stack(Residual& residual, const SliceAccess& write);
  void describe_producer(Residual& residual, const Touch& write);
  void describe_reads(Residual& residual, const std::vector<Touch>& reads);
  std::optional<ValueId> saved_value(const Touch& write) const;
  bool only_slices(InstructionId id) const;
  ValueId behind_copy(ValueId value) const;
  ValueId before_pipelining(ValueId value) const;
  bool is_computed_with(ValueId value) const;
  bool updates_slice(InstructionId id) const;
  std::pair<std::int32_t, std::int32_t> carry_order(const Residual& residual) const;

  LogicalTime position(InstructionId id) const {
    return memory_.schedule.position[id.computation][id.instruction.index];
  }
  /// Position where the loop body sees the instruction: that of the start that wraps it.
  LogicalTime body_position(InstructionId id) const {
    while (program_[*memory_.schedule.caller[id.computation]].opcode != Opcode::kWhile)
      id = *memory_.schedule.caller[id.computation];
    return position(id);
  }
  BufferId buffer_of(ValueId value) const { return memory_.liveness.buffer_of[value]; }

  const Program& program_;
  const Lifetimes& memory_;
  IdVector<ValueId, std::vector<LogicalTime>> uses_;  ///< positions that read a value, ascending
  std::map<BufferId, std::vector<Touch>> touches_;
  std::set<BufferId> touched_outside_;
  /// Stacks that are copied or transposed between the loops, to what they become.
  std::map<BufferId, BufferId> copied_to_;
  std::vector<Residual> found_;
};

bool only_hands_on(Opcode opcode) {
  return opcode == Opcode::kTuple || opcode == Opcode::kBitcast || opcode == Opcode::kWhile ||
         opcode == Opcode::kOptimizationBarrier || is_async_start(opcode) || is_async_done(opcode);
}

void ResidualFinder::index_uses() {
  uses_.resize(memory_.values.values().size());
  for (const InstructionId id : memory_.schedule.order) {
    const Computation& computation = program_[id.computation];
    if (only_hands_on(computation[id.instruction].opcode)) continue;
    for (const Operand& operand : computation.operands(id.instruction))
      uses_[memory_.values.at(id.computation, operand)].push_back(position(id));
  }
}

void ResidualFinder::collect_touches() {
  for (const InstructionId id : memory_.schedule.order) {
    const Computation& computation = program_[id.computation];
    const auto operands = computation.operands(id.instruction);
    if (operands.empty()) continue;
    const auto loop = loop_around(program_, memory_.schedule, id.computation);
    for (std::uint32_t k = 0; k < operands.size(); ++k) {
      if (!computation.shape_of(operands[k]).is_array()) continue;
      const SliceAccess access = slice_access(program_, id, k);
      if (access.kind == AccessKind::kWhole) continue;
      const BufferId buffer = buffer_of(memory_.values.at(id.computation, operands[k]));
      if (loop)
        touches_[buffer].push_back({{id, k, *loop}, access});
      else
        touched_outside_.insert(buffer);
    }
  }
}

/// Instructions outside the loops that only copy or transpose a whole array.
void ResidualFinder::collect_copies() {
  for (const InstructionId id : memory_.schedule.order) {
    const Computation& computation = program_[id.computation];
    const Instruction& in = computation[id.instruction];
    const bool copies = in.opcode == Opcode::kCopy || in.opcode == Opcode::kTranspose ||
                        in.opcode == Opcode::kFusion;
    if (!copies || in.operand_count != 1 || !in.shape.is_array()) continue;
    const Operand operand = computation.operands(id.instruction)[0];
    const Shape from = computation.shape_of(operand);
    if (!from.is_array() || from.bytes() != in.shape.bytes()) continue;
    const BufferId source = buffer_of(memory_.values.at(id.computation, operand));
    const BufferId target = buffer_of(memory_.values.at(id, 0));
    if (source != target && touches_.contains(source) && touches_.contains(target))
      copied_to_[source] = target;
  }
}

void ResidualFinder::add_residual(BufferId buffer, const std::vector<Touch>& touches) {
  const auto write = std::ranges::find_if(
      touches, [](const Touch& t) { return t.access.kind == AccessKind::kSliceUpdate; });
  if (write == touches.end()) return;
  std::vector<Touch> reads;
  const auto add_reads = [&](const std::vector<Touch>& of) {
    for (const Touch& touch : of)
      if (touch.access.kind == AccessKind::kSliceRead && touch.where.loop != write->where.loop &&
          position(touch.where.loop) > position(write->where.loop))
        reads.push_back(touch);
  };
  add_reads(touches);
  const auto copy = copied_to_.find(buffer);
  const bool copied = reads.empty() && copy != copied_to_.end();
  if (copied) add_reads(touches_.at(copy->second));
  if (reads.empty()) return;
  Residual residual;
  residual.copied_between_loops = copied;
  residual.peeled = touched_outside_.contains(buffer);
  residual.stack = buffer;
  residual.forward_loop = write->where.loop;
  residual.backward_loop = reads.front().where.loop;
  residual.write = write->where;
  describe_stack(residual, write->access);
  if (residual.layers < 2) return;
  describe_producer(residual, *write);
  describe_reads(residual, reads);
  found_.push_back(std::move(residual));
}

void ResidualFinder::describe_stack(Residual& residual, const SliceAccess& write) {
  const Buffer& stack = memory_.liveness.buffers[residual.stack];
  residual.total_bytes = stack.size;
  residual.bytes_per_layer = write.slice.bytes();
  residual.placement = is_host(stack.space) ? Placement::kPinnedHost : Placement::kDevice;
  residual.slice = write.slice;
  if (residual.bytes_per_layer > Bytes(0))
    residual.layers = residual.total_bytes.value() / residual.bytes_per_layer.value();
}

/// The value whose slice is written: handed in, or another result of the fusion that makes it.
/// Empty where the fusion keeps it to itself.
std::optional<ValueId> ResidualFinder::saved_value(const Touch& write) const {
  const InstructionId id = write.where.instruction;
  if (write.access.update) return memory_.values.at(id.computation, *write.access.update);
  const Computation& fused = program_[program_[id.computation].called(id.instruction)[0]];
  if (fused.root_instruction().opcode != Opcode::kTuple) return std::nullopt;
  std::vector<InstructionIndex> outputs;
  for (const Operand& output : fused.operands(fused.root().instruction))
    outputs.push_back(behind_renamings(fused, output).instruction);
  for (const InstructionIndex update : outputs) {
    if (fused[update].opcode != Opcode::kDynamicUpdateSlice) continue;
    const auto operands = fused.operands(update);
    if (find_parameter(fused, operands[0]) != write.where.operand) continue;
    const auto twin = std::ranges::find(outputs, behind_renamings(fused, operands[1]).instruction);
    if (twin == outputs.end()) return std::nullopt;
    const auto k = static_cast<std::uint32_t>(twin - outputs.begin());
    return memory_.values.at(id, program_[id].shape.element_node(k));
  }
  return std::nullopt;
}

/// Whether a reader of a stack only fetches the slice, and copies it if need be: others compute
/// with it.
bool ResidualFinder::only_slices(InstructionId id) const {
  Opcode opcode = program_[id].opcode;
  if (opcode == Opcode::kFusion) {
    const Computation& fused = program_[program_[id.computation].called(id.instruction)[0]];
    InstructionIndex root = behind_renamings(fused, fused.root()).instruction;
    while (fused[root].opcode == Opcode::kCopy)
      root = behind_renamings(fused, fused.operands(root)[0]).instruction;
    opcode = fused[root].opcode;
  }
  return opcode == Opcode::kDynamicSlice || opcode == Opcode::kSlice;
}

/// The value that a copy copies, else the value itself.
ValueId ResidualFinder::behind_copy(ValueId value) const {
  const InstructionId definer = memory_.values[value].defined_at.instruction;
  if (program_[definer].opcode != Opcode::kCopy) return value;
  return memory_.values.at(definer.computation,
                           program_[definer.computation].operands(definer.instruction)[0]);
}

/// Whether something other than a copy, or the copies of it, reads the value.
bool ResidualFinder::is_computed_with(ValueId value) const {
  std::vector<ValueId> copies = {value};
  for (std::size_t k = 0; k < copies.size(); ++k)
    for (const LogicalTime at : uses_[copies[k]]) {
      const InstructionId user = memory_.schedule.order[static_cast<std::size_t>(at.value())];
      if (program_[user].opcode == Opcode::kCopy)
        copies.push_back(memory_.values.at(user, 0));
      else if (!updates_slice(user))
        return true;
    }
  return false;
}

bool ResidualFinder::updates_slice(InstructionId id) const {
  const std::uint32_t operands = program_[id].operand_count;
  for (std::uint32_t k = 0; k < operands; ++k)
    if (slice_access(program_, id, k).kind == AccessKind::kSliceUpdate) return true;
  return false;
}

/// With pipelined copies the body writes what the iteration before produced and the loop carried
/// over: the value that the body hands on at that place.
ValueId ResidualFinder::before_pipelining(ValueId value) const {
  const Value& v = memory_.values[value];
  if (!v.is_phi || program_[v.defined_at.instruction].opcode != Opcode::kParameter) return value;
  const ComputationId body = v.defined_at.instruction.computation;
  const Operand root = program_[body].root();
  return memory_.values.at(body, Operand{root.instruction, root.node + v.defined_at.node});
}

void ResidualFinder::describe_producer(Residual& residual, const Touch& write) {
  residual.defined_at = residual.last_forward_use = body_position(write.where.instruction);
  InstructionId producer = write.where.instruction;
  if (const auto saved = saved_value(write)) {
    ValueId value = *saved;
    const ValueId source = behind_copy(value);
    if (memory_.values[source].is_phi) {
      // Carried from layer to layer: the layer's input, unless it is carried only because its copy
      // to the host is pipelined, and nothing but that copy reads it.
      const ValueId earlier = before_pipelining(source);
      residual.is_layer_input = is_computed_with(source);
      if (!residual.is_layer_input && earlier != source) value = earlier;
    }
    producer = memory_.values[value].defined_at.instruction;
    residual.defined_at = position(producer);
    residual.last_forward_use = std::max(
        residual.defined_at, uses_[value].empty() ? residual.defined_at : uses_[value].back());
  }
  residual.op_name = metadata_text(program_[producer.computation], producer.instruction, "op_name");
  residual.source = source_line(program_, producer);
}

void ResidualFinder::describe_reads(Residual& residual, const std::vector<Touch>& reads) {
  bool first = true;
  for (const Touch& read : reads) {
    residual.reads.push_back(read.where);
    const InstructionId reader = read.where.instruction;
    LogicalTime from = position(reader);
    LogicalTime to = from;
    // Where the read only fetches the slice, its uses are those of the result.
    if (only_slices(reader)) {
      const auto& uses = uses_[memory_.values.at(reader, 0)];
      if (!uses.empty()) from = uses.front(), to = uses.back();
    }
    residual.first_backward_use = first ? from : std::min(residual.first_backward_use, from);
    residual.last_use = first ? to : std::max(residual.last_use, to);
    first = false;
  }
}

/// Loops in order of the schedule, and in each the place of the stack in what it carries.
std::pair<std::int32_t, std::int32_t> ResidualFinder::carry_order(const Residual& residual) const {
  const Shape carried = program_[residual.forward_loop].shape;
  std::int32_t place = 0;
  for (ShapeNodeIndex node = 0; node < carried.node_count(); ++node)
    if (buffer_of(memory_.values.at(residual.forward_loop, node)) == residual.stack)
      place = static_cast<std::int32_t>(node);
  return {position(residual.forward_loop).value(), place};
}

}  // namespace

std::string_view name_of(Placement placement) {
  return placement == Placement::kDevice ? "device" : "pinned_host";
}

std::string_view name_of(NameEvidence evidence) {
  switch (evidence) {
    case NameEvidence::kNone:
      return "none";
    case NameEvidence::kShape:
      return "shape";
    case NameEvidence::kCarry:
      return "layer input";
    case NameEvidence::kSource:
      return "source";
    case NameEvidence::kOrder:
      return "order";
    case NameEvidence::kGuess:
      return "guess";
  }
  return "";
}

std::string joined_names(const Residual& residual) {
  std::string joined;
  for (const std::string& name : residual.names) joined += (joined.empty() ? "" : "=") + name;
  return joined;
}

std::string label_of(const Residual& residual) {
  return residual.names.empty() ? residual.id : joined_names(residual);
}

ResidualTable find_residuals(const Program& program, const Lifetimes& memory,
                             const NameList& names) {
  ResidualTable table = ResidualFinder(program, memory).run();
  match_names(names, program.device_count(), table);
  return table;
}

}  // namespace spillway
