#include "sim/rewrite/offload_state.h"

#include <algorithm>
#include <map>

#include "model/program/call_graph.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/parameter_streams.h"
#include "sim/rewrite/stack_access.h"
#include "sim/rewrite/stacks.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

MemorySpace space_of(Placement placement) {
  return placement == Placement::kDevice ? MemorySpace::kDevice : MemorySpace::kPinnedHost;
}

bool feeds_loops_alone(const ComputationEditor& editor, Handle tuple) {
  if (editor[tuple].instruction.opcode != Opcode::kTuple || editor.root().handle == tuple)
    return false;
  return std::ranges::all_of(editor.users(tuple), [&editor](Handle user) {
    return editor[user].instruction.opcode == Opcode::kWhile;
  });
}

/// Numbers have leading zeros: XLA's scheduler goes by name between equals, and XLA numbers what it
/// allocates for a loop in the order that the loop carries it.
std::string name_of_gradient(std::uint32_t loop, std::uint32_t element) {
  const std::string number = std::to_string(element);
  return "gradient." + std::to_string(loop) + "." +
         std::string(number.size() < 4 ? 4 - number.size() : 0, '0') + number;
}

class StateRewrite {
 public:
  StateRewrite(const Program& program, const Lifetimes& memory, const TrainingState& state)
      : program_(program), memory_(memory), state_(state), out_(program) {}

  Program run(const std::vector<StateChange>& changes) {
    for (const StateChange& change : changes)
      if (placement_of(state_, change.kind) != change.placement &&
          why_state_not_movable(program_, memory_, state_, change.kind).empty())
        wanted_[change.kind] = change.placement;
    if (wanted_.contains(StateClass::kParameters))
      streams_ = find_parameter_streams(program_, memory_, state_);
    plan_values();
    if (!target_.empty())
      move_values(out_, program_, memory_, [this](ValueId value) -> std::optional<MemorySpace> {
        const auto found = target_.find(value);
        return found == target_.end() ? std::nullopt : std::optional(found->second);
      });
    for (const StateArgument& argument : state_.arguments)
      if (const auto placement = wanted_.find(argument.kind); placement != wanted_.end())
        placement->second == Placement::kPinnedHost ? to_host(argument) : to_device(argument);
    for (const GradientStack& gradient : streams_.gradients) move_gradient(gradient);
    for (const ParameterStream& stream : streams_.streams) move_slices(stream);
    return out_.finish();
  }

 private:
  void plan_values();
  void to_host(const StateArgument& argument);
  void to_device(const StateArgument& argument);
  void move_gradient(const GradientStack& gradient);
  void move_slices(const ParameterStream& stream);
  void fetch_slices(ComputationId body, const std::vector<StackAccess>& reads,
                    const std::string& name);
  void fold_slices(ComputationId body, const std::vector<StackAccess>& reads);

  bool is_streamed(const StateArgument& argument) const {
    return std::ranges::any_of(streams_.streams, [&](const ParameterStream& stream) {
      return stream.argument.parameter == argument.parameter;
    });
  }
  std::vector<Reference> shown_at(ComputationId id, ValueId value) const;
  void fetch(ComputationId id, const std::vector<Reference>& places, bool loops_slice,
             const std::string& name);
  void read_copy(ComputationEditor& editor, Handle user, const std::vector<Reference>& places,
                 Reference copy);
  void drop_fetches(ComputationEditor& editor, Reference from);
  void set_result(const StateArgument& argument, Reference from, MemorySpace space);

  const Program& program_;
  const Lifetimes& memory_;
  const TrainingState& state_;
  ProgramEditor out_;
  std::map<StateClass, Placement> wanted_;
  ParameterStreams streams_;
  std::map<ValueId, MemorySpace> target_;  ///< of values that show elsewhere too
};

/// Values that move wherever they show: parameters that loops read in slices, and the stacks of
/// their gradients, but for what those begin with.
void StateRewrite::plan_values() {
  const auto placement = wanted_.find(StateClass::kParameters);
  if (placement == wanted_.end()) return;
  const MemorySpace space = space_of(placement->second);
  for (const ParameterStream& stream : streams_.streams) target_[stream.value] = space;
  for (const GradientStack& gradient : streams_.gradients) {
    const Computation& outer = program_[gradient.loop.computation];
    const InstructionIndex tuple = outer.operands(gradient.loop.instruction)[0].instruction;
    for (const ValueId value : memory_.liveness.buffers[gradient.stack].values) {
      const InstructionId at = memory_.values[value].defined_at.instruction;
      const bool is_initial = at.computation == gradient.loop.computation && at.instruction < tuple;
      if (!is_initial) target_[value] = space;
    }
  }
}

/// Where a value shows in a computation: elements of what instructions give.
std::vector<Reference> StateRewrite::shown_at(ComputationId id, ValueId value) const {
  std::vector<Reference> places;
  for (const InstructionIndex i : program_[id].instructions()) {
    const Shape shape = program_[id][i].shape;
    if (is_renaming(program_[id][i].opcode)) continue;
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
      if (memory_.values.at({id, i}, node) == value) places.push_back({i.index, node});
  }
  return places;
}

/// `user` reads the copy instead of what shows at one of `places`; what it is a renaming of, it
/// gives in the copy's memory space.
void StateRewrite::read_copy(ComputationEditor& editor, Handle user,
                             const std::vector<Reference>& places, Reference copy) {
  for (Reference& operand : editor[user].operands)
    if (std::ranges::find(places, operand) != places.end()) operand = copy;
  std::vector<Handle> renamed = {user};
  for (std::size_t k = 0; k < renamed.size(); ++k) {
    Node& node = editor[renamed[k]];
    if (!is_renaming(node.instruction.opcode)) continue;
    node.instruction.shape =
        with_space(node.instruction.shape, {0}, editor.shape_of(copy).space(), *out_.storage());
    for (const Handle next : editor.users(renamed[k])) renamed.push_back(next);
  }
}

/// Whoever in a computation reads what shows at `places`, all of them in host memory, reads one
/// copy in HBM. The step's results do not, nor do loops that take slices of it.
void StateRewrite::fetch(ComputationId id, const std::vector<Reference>& places, bool loops_slice,
                         const std::string& name) {
  ComputationEditor& editor = out_.edit(id);
  std::vector<Handle> readers;
  for (const Reference& place : places)
    for (const Handle user : editor.users(place.handle)) {
      const auto& operands = editor[user].operands;
      const bool reads = std::ranges::find(operands, place) != operands.end();
      const bool hands_on =
          (loops_slice && feeds_loops_alone(editor, user)) || editor.root().handle == user;
      if (reads && !hands_on && std::ranges::find(readers, user) == readers.end())
        readers.push_back(user);
    }
  if (readers.empty()) return;
  const Handle done = add_copy(out_, editor, name + "-", places.front(), MemorySpace::kDevice);
  for (const Handle reader : readers) read_copy(editor, reader, places, {done, 0});
  const Handle start = editor[done].operands[0].handle;
  place_before_users(editor, done);
  editor.move_before(start, done);
}

/// Makes `from`, in `space`, the result that takes an argument's place.
void StateRewrite::set_result(const StateArgument& argument, Reference from, MemorySpace space) {
  ComputationEditor& entry = out_.edit(program_.entry);
  Node& root = entry[entry.root().handle];
  const std::uint32_t element = root.instruction.shape.path(argument.output)[0];
  root.operands[element] = from;
  root.instruction.shape =
      with_space(root.instruction.shape, {argument.output}, space, *out_.storage());
}

void StateRewrite::to_host(const StateArgument& argument) {
  ComputationEditor& entry = out_.edit(program_.entry);
  const Handle parameter = argument.instruction.index;
  const std::string name = std::string(program_[program_.entry][argument.instruction].name);
  const ValueId value = memory_.values.at({program_.entry, argument.instruction}, 0);
  const Handle root = entry.root().handle;
  const std::uint32_t element = entry[root].instruction.shape.path(argument.output)[0];
  const Reference result = entry[root].operands[element];
  const std::vector<Reference> places = is_streamed(argument)
                                            ? shown_at(program_.entry, value)
                                            : std::vector<Reference>{{parameter, 0}};
  const bool unchanged = std::ranges::find(places, result) != places.end();
  Shape& shape = entry[parameter].instruction.shape;
  shape = with_space(shape, {0}, MemorySpace::kPinnedHost, *out_.storage());
  if (!unchanged) {
    const Handle done =
        add_copy(out_, entry, "send." + name + "-", result, MemorySpace::kPinnedHost);
    place_after_operands(entry, entry[done].operands[0].handle);
    place_after_operands(entry, done);
    set_result(argument, {done, 0}, MemorySpace::kPinnedHost);
  } else {
    set_result(argument, {parameter, 0}, MemorySpace::kPinnedHost);
  }
  fetch(program_.entry, places, is_streamed(argument), "fetch." + name);
}

/// Whoever reads a copy of `from` in HBM reads `from` itself.
void StateRewrite::drop_fetches(ComputationEditor& editor, Reference from) {
  for (const Handle start : editor.users(from.handle)) {
    if (editor[start].instruction.opcode != Opcode::kCopyStart || editor[start].operands[0] != from)
      continue;
    for (const Handle done : editor.users(start)) {
      editor.redirect({done, 0}, from);
      editor.erase(done);
    }
    editor.erase(start);
  }
}

void StateRewrite::to_device(const StateArgument& argument) {
  ComputationEditor& entry = out_.edit(program_.entry);
  const Handle parameter = argument.instruction.index;
  Shape& shape = entry[parameter].instruction.shape;
  shape = with_space(shape, {0}, MemorySpace::kDevice, *out_.storage());
  drop_fetches(entry, {parameter, 0});
  const Handle root = entry.root().handle;
  const std::uint32_t element = entry[root].instruction.shape.path(argument.output)[0];
  Reference result = entry[root].operands[element];
  if (entry[result.handle].instruction.opcode == Opcode::kCopyDone) {
    const Handle done = result.handle, start = entry[done].operands[0].handle;
    result = entry[start].operands[0];
    set_result(argument, result, MemorySpace::kDevice);
    if (entry.users(done).empty()) entry.erase(done);
    if (entry.users(start).empty()) entry.erase(start);
  } else {
    set_result(argument, result, MemorySpace::kDevice);
  }
}

void StateRewrite::move_gradient(const GradientStack& gradient) {
  const Placement placement = wanted_.at(StateClass::kParameters);
  const InstructionId loop = gradient.loop;
  const ShapeNodeIndex node = program_[loop].shape.element_node(gradient.element);
  const std::string name = name_of_gradient(loop.instruction.index, gradient.element);
  replace_initial_value(out_, loop, gradient.element, space_of(placement), name);
  ComputationEditor& outer = out_.edit(loop.computation);
  if (placement == Placement::kDevice) {
    drop_fetches(outer, {loop.instruction.index, node});
    return;
  }
  fetch(loop.computation, {{loop.instruction.index, node}}, false, "fetch." + name);
  const ComputationId body_id = body_of(program_, loop);
  ComputationEditor& body = out_.edit(body_id);
  if (gradient.write.instruction.computation != body_id) return;  // is a copy by itself already
  const Handle done = split_update(out_, body_id, gradient.write.instruction.instruction.index,
                                   operand_now(program_, out_, gradient.write), "send." + name);
  place_after_operands(body, body[done].operands[0].handle);
  place_before_users(body, done);
}

void StateRewrite::move_slices(const ParameterStream& stream) {
  std::map<InstructionId, std::vector<StackAccess>> by_loop;
  for (const StackAccess& read : stream.reads) by_loop[read.loop].push_back(read);
  for (const auto& [loop, reads] : by_loop) {
    const ComputationId body = body_of(program_, loop);
    if (wanted_.at(StateClass::kParameters) == Placement::kDevice)
      fold_slices(body, reads);
    else
      fetch_slices(
          body, reads,
          "fetch." + std::string(program_[program_.entry][stream.argument.instruction].name));
  }
}

/// One copy an iteration.
void StateRewrite::fetch_slices(ComputationId body_id, const std::vector<StackAccess>& reads,
                                const std::string& name) {
  const Reference slice = fetch_slice(program_, memory_, out_, body_id, reads, name);
  ComputationEditor& body = out_.edit(body_id);
  place_before_users(body, slice.handle);
  body.move_before(body[slice.handle].operands[0].handle, slice.handle);
}

/// Whoever can slices the parameter by itself; the others' copies stay, within HBM.
void StateRewrite::fold_slices(ComputationId body_id, const std::vector<StackAccess>& reads) {
  for (const StackAccess& read : reads)
    if (const auto done = done_of_wrapper(program_, memory_, body_id, read.instruction))
      fold_read(out_, body_id, done->index);
}

}  // namespace

std::optional<Placement> placement_of(const TrainingState& state, StateClass kind) {
  const Bytes all = bytes_of(state, kind), host = host_bytes_of(state, kind);
  if (all == Bytes(0) || (host > Bytes(0) && host < all)) return std::nullopt;
  return host == all ? Placement::kPinnedHost : Placement::kDevice;
}

std::string why_state_not_movable(const Program& program, const Lifetimes& memory,
                                  const TrainingState& state, StateClass kind) {
  if (!state.unknown_because.empty()) return state.unknown_because;
  if (bytes_of(state, kind) == Bytes(0))
    return kind == StateClass::kParameters
               ? "no donated argument is one that the model multiplies with"
               : "no donated argument is one that the update alone reads";
  if (!placement_of(state, kind)) return "some of it lies in HBM and some in pinned host memory";
  const Computation& entry = program.entry_computation();
  if (entry.root().node != 0 || entry.root_instruction().opcode != Opcode::kTuple)
    return "the step's results are not put together at its end";
  for (const StateArgument& argument : state.arguments)
    if (entry.root_instruction().shape.path(argument.output).size() != 1)
      return "the step's results are tuples of tuples";
  if (kind == StateClass::kOptimizer) return "";
  return find_parameter_streams(program, memory, state).refused_because;
}

std::set<BufferId> stacks_of_state(const Program& program, const Lifetimes& memory,
                                   const TrainingState& state, StateClass kind) {
  std::set<BufferId> stacks;
  for (const StateArgument& argument : state.of(kind))
    stacks.insert(
        memory.liveness.buffer_of[memory.values.at({program.entry, argument.instruction}, 0)]);
  if (kind == StateClass::kParameters)
    for (const GradientStack& gradient : find_parameter_streams(program, memory, state).gradients)
      stacks.insert(gradient.stack);
  return stacks;
}

Program move_state(const Program& program, const Lifetimes& memory, const TrainingState& state,
                   const std::vector<StateChange>& changes) {
  return StateRewrite(program, memory, state).run(changes);
}

}  // namespace spillway
