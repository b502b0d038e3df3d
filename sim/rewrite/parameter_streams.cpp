#include "sim/rewrite/parameter_streams.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/program/call_graph.h"
#include "model/program/slice_access.h"
#include "sim/rewrite/stack_access.h"
#include "sim/rewrite/stacks.h"

namespace spillway {
namespace {

/// Whether an instruction only hands a stack on, to a loop or under another shape.
bool hands_on(Opcode opcode) {
  return opcode == Opcode::kTuple || opcode == Opcode::kWhile || is_renaming(opcode) ||
         is_async_start(opcode) || is_async_done(opcode);
}

/// Whether a slice takes whole layers of a stack that lie next to each other: it differs from the
/// stack in the outermost dimension alone.
bool is_outermost(Shape stack, Shape slice) {
  const auto from = stack.dims(), to = slice.dims();
  const auto order = stack.minor_to_major();
  if (from.size() != to.size() || from.empty()) return false;
  const std::size_t outermost = order.empty() ? 0 : static_cast<std::size_t>(order.back());
  for (std::size_t k = 0; k < from.size(); ++k)
    if (from[k] != to[k] && k != outermost) return false;
  return true;
}

class StreamFinder {
 public:
  StreamFinder(const Program& program, const Lifetimes& memory, const TrainingState& state)
      : program_(program), memory_(memory), state_(state) {}

  ParameterStreams run() {
    for (const StateArgument& argument : state_.of(StateClass::kParameters))
      candidates_[memory_.values.at({program_.entry, argument.instruction}, 0)].argument = argument;
    for (const InstructionId id : memory_.schedule.order) look_at(id);
    ParameterStreams found;
    for (auto& [value, stream] : candidates_) {
      if (whole_.contains(value) || stream.reads.empty()) continue;
      stream.value = value;
      found.streams.push_back(std::move(stream));
    }
    std::ranges::sort(found.streams, {},
                      [](const ParameterStream& s) { return s.argument.parameter; });
    find_gradients(found);
    found.refused_because = why_refused(found);
    return found;
  }

 private:
  void look_at(InstructionId id);
  void find_gradients(ParameterStreams& found) const;
  bool is_gradient(BufferId stack, Shape shape, const ParameterStreams& found) const;
  bool stays_in_loop(const GradientStack& gradient) const;
  std::string why_refused(const ParameterStreams& found) const;
  bool can_move(const GradientStack& gradient) const;

  BufferId buffer_of(ValueId value) const { return memory_.liveness.buffer_of[value]; }

  const Program& program_;
  const Lifetimes& memory_;
  const TrainingState& state_;
  std::map<ValueId, ParameterStream> candidates_;
  std::set<ValueId> whole_;                  ///< parameters of which a loop reads all at once
  std::map<BufferId, StackAccess> written_;  ///< stacks that a loop updates slice by slice
  std::set<BufferId> read_in_slices_;
  std::string not_outermost_;  ///< a parameter whose layers are not
};

void StreamFinder::look_at(InstructionId id) {
  const Computation& computation = program_[id.computation];
  if (hands_on(computation[id.instruction].opcode)) return;
  const auto loop = loop_around(program_, memory_.schedule, id.computation);
  if (!loop) return;
  const auto operands = computation.operands(id.instruction);
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    const Shape shape = computation.shape_of(operands[k]);
    if (!shape.is_array()) continue;
    const ValueId value = memory_.values.at(id.computation, operands[k]);
    const SliceAccess access = slice_access(program_, id, k);
    if (access.kind == AccessKind::kSliceRead) read_in_slices_.insert(buffer_of(value));
    if (access.kind == AccessKind::kSliceUpdate)
      written_.emplace(buffer_of(value), StackAccess{id, k, *loop});
    const auto candidate = candidates_.find(value);
    if (candidate == candidates_.end()) continue;
    if (access.kind != AccessKind::kSliceRead) {
      whole_.insert(value);
      continue;
    }
    if (!is_outermost(shape, access.slice) && not_outermost_.empty())
      not_outermost_ = metadata_text(program_.entry_computation(),
                                     candidate->second.argument.instruction, "op_name");
    candidate->second.reads.push_back({id, k, *loop});
  }
}

/// A stack that one loop fills and no other reads, of the shape of a parameter.
bool StreamFinder::is_gradient(BufferId stack, Shape shape, const ParameterStreams& found) const {
  return !read_in_slices_.contains(stack) &&
         std::ranges::any_of(found.streams, [shape](const ParameterStream& stream) {
           return stream.argument.shape.type() == shape.type() &&
                  std::ranges::equal(stream.argument.shape.dims(), shape.dims());
         });
}

void StreamFinder::find_gradients(ParameterStreams& found) const {
  for (const auto& [stack, write] : written_) {
    const Shape carried = program_[write.loop].shape;
    for (std::uint32_t k = 0; k < carried.tuple_size(); ++k) {
      if (!carried.element(k).is_array() ||
          buffer_of(memory_.values.at(write.loop, carried.element_node(k))) != stack)
        continue;
      if (is_gradient(stack, carried.element(k), found))
        found.gradients.push_back({write.loop, k, stack, write});
      break;
    }
  }
  std::ranges::sort(found.gradients, {},
                    [](const GradientStack& g) { return std::pair(g.loop, g.element); });
}

/// Whether nothing behind its loop writes into a stack, or hands it on to another loop.
bool StreamFinder::stays_in_loop(const GradientStack& gradient) const {
  const InstructionId loop = gradient.loop;
  for (const ValueId value : memory_.liveness.buffers[gradient.stack].values) {
    const InstructionId at = memory_.values[value].defined_at.instruction;
    if (at.computation == loop.computation && at.instruction > loop.instruction) return false;
  }
  const Computation& outer = program_[loop.computation];
  const ShapeNodeIndex node = program_[loop].shape.element_node(gradient.element);
  return std::ranges::none_of(outer.uses(loop.instruction), [&](const Use& use) {
    return outer[use.user].opcode == Opcode::kTuple &&
           outer.operands(use.user)[use.operand_number].node == node;
  });
}

bool StreamFinder::can_move(const GradientStack& gradient) const {
  return can_take_update(program_, memory_, body_of(program_, gradient.loop), gradient.write) &&
         stays_in_loop(gradient) &&
         initial_element(program_, memory_, gradient.loop, gradient.stack) == gradient.element;
}

std::string StreamFinder::why_refused(const ParameterStreams& found) const {
  if (!not_outermost_.empty())
    return "the layers of " + not_outermost_ +
           " are not its outermost dimension: how XLA moves such slices is not known here";
  if (found.streams.empty())
    return "no loop reads parameters layer by layer (scan_layers): where XLA would fetch those of "
           "unrolled layers again is not known here";
  for (const ParameterStream& stream : found.streams)
    for (const StackAccess& read : stream.reads)
      if (!can_take_slice(program_, memory_, body_of(program_, read.loop), read))
        return "a parameter is read by something other than slices of it";
  for (const GradientStack& gradient : found.gradients)
    if (!can_move(gradient)) return "the gradients of a parameter are not gathered slice by slice";
  return "";
}

}  // namespace

ParameterStreams find_parameter_streams(const Program& program, const Lifetimes& memory,
                                        const TrainingState& state) {
  return StreamFinder(program, memory, state).run();
}

}  // namespace spillway
