#include "sim/rewrite/place_residuals.h"

#include <algorithm>
#include <map>

#include "model/program/call_graph.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/plain_copy.h"
#include "sim/rewrite/stack_access.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

/// Which element of the tuple that a forward loop begins with is the stack; empty where what it
/// begins with is no tuple of its own.
std::optional<std::uint32_t> initial_element(const Program& program, const MemoryAssignment& memory,
                                             const Residual& residual) {
  const InstructionId loop = residual.forward_loop;
  const Computation& outer = program[loop.computation];
  const Operand initial = outer.operands(loop.instruction)[0];
  if (initial.node != 0 || outer[initial.instruction].opcode != Opcode::kTuple) return std::nullopt;
  const Shape carried = program[loop].shape;
  for (std::uint32_t k = 0; k < carried.tuple_size(); ++k) {
    const ValueId value = memory.values.at(loop, carried.element_node(k));
    if (carried.element(k).is_array() && memory.liveness.buffer_of[value] == residual.stack)
      return k;
  }
  return std::nullopt;
}

/// Whether split_update can take the update out of what writes the stack.
bool can_split_update(const Program& program, const StackAccess& write) {
  const Computation& computation = program[write.instruction.computation];
  const InstructionIndex i = write.instruction.instruction;
  if (computation[i].opcode == Opcode::kDynamicUpdateSlice) return write.operand == 0;
  return computation[i].opcode == Opcode::kFusion &&
         find_update(program[computation.called(i)[0]], write.operand).has_value();
}

/// Whether split_read can give a reader the slice instead of the stack.
bool can_split_read(const Program& program, const StackAccess& read) {
  const Computation& computation = program[read.instruction.computation];
  const InstructionIndex i = read.instruction.instruction;
  const Opcode opcode = computation[i].opcode;
  if (opcode == Opcode::kDynamicSlice || opcode == Opcode::kSlice) return read.operand == 0;
  return opcode == Opcode::kFusion &&
         !find_slices(program[computation.called(i)[0]], read.operand).empty();
}

class PlacementRewrite {
 public:
  PlacementRewrite(const Program& program, const MemoryAssignment& memory,
                   const ResidualTable& residuals)
      : program_(program), memory_(memory), residuals_(residuals), out_(program) {}

  Program run(const std::vector<PlacementChange>& changes) {
    std::vector<PlacementChange> moved;
    for (const PlacementChange& change : changes) {
      const Residual& residual = residuals_.residuals[change.residual];
      const bool known = target_.contains(residual.stack);
      if (known || residual.placement == change.placement ||
          !why_not_movable(program_, memory_, residual).empty())
        continue;
      const Computation& outer = program_[residual.forward_loop.computation];
      target_[residual.stack] = {
          change.placement == Placement::kDevice ? MemorySpace::kDevice : MemorySpace::kPinnedHost,
          {residual.forward_loop.computation,
           outer.operands(residual.forward_loop.instruction)[0].instruction}};
      moved.push_back(change);
    }
    move_spaces();
    for (const PlacementChange& change : moved) {
      const Residual& residual = residuals_.residuals[change.residual];
      replace_initial_value(residual, change.placement);
      if (change.placement == Placement::kDevice)
        fold_reads(residual);
      else
        place_offload(residual);
    }
    // Each reload goes on top of those before it, and they take the link in turn: what is used
    // first comes last here.
    std::ranges::stable_sort(moved, std::ranges::greater(), [this](const PlacementChange& change) {
      return residuals_.residuals[change.residual].first_backward_use;
    });
    for (const PlacementChange& change : moved)
      if (change.placement == Placement::kPinnedHost)
        place_reloads(residuals_.residuals[change.residual]);
    for (const auto& [body, dones] : host_copies_) {
      PlainCopies copies(out_, body);
      for (const Handle done : dones) copies.unfuse(done);
    }
    return out_.finish();
  }

 private:
  /// Where a value of a moved stack lies; empty for others. What it began with is replaced, and
  /// stays where it is: it may begin another stack as well.
  std::optional<MemorySpace> target_of(ValueId value) const {
    const auto found = target_.find(memory_.liveness.buffer_of[value]);
    if (found == target_.end()) return std::nullopt;
    const auto& [space, tuple] = found->second;
    const InstructionId defined = memory_.values[value].defined_at.instruction;
    const bool is_initial = defined.computation == tuple.computation &&
                            defined.instruction.index < tuple.instruction.index;
    return is_initial ? std::nullopt : std::optional(space);
  }

  void move_spaces();
  void move_fusion_parameters(InstructionId id);
  void replace_initial_value(const Residual& residual, Placement placement);
  Node allocate(std::string_view name, Shape shape);
  Node zeros(std::string_view name, Shape shape);
  void place_offload(const Residual& residual);
  void place_reloads(const Residual& residual);
  void fold_reads(const Residual& residual);

  const Program& program_;
  const MemoryAssignment& memory_;
  const ResidualTable& residuals_;
  ProgramEditor out_;
  struct Target {
    MemorySpace space = MemorySpace::kDevice;
    InstructionId initial;  ///< the tuple that its forward loop begins with
  };
  std::map<BufferId, Target> target_;
  std::map<ComputationId, std::vector<Handle>> host_copies_;  ///< their dones, by body
};

/// Every shape that shows a moved stack says where it now lies.
void PlacementRewrite::move_spaces() {
  if (target_.empty()) return;
  for (const ComputationId id : ids(program_.computations)) {
    if (!memory_.schedule.reaches(id)) continue;
    for (const InstructionIndex i : program_[id].instructions()) {
      const Shape shape = program_[id][i].shape;
      std::map<MemorySpace, std::vector<ShapeNodeIndex>> nodes;
      for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
        if (const auto space = target_of(memory_.values.at({id, i}, node));
            space && shape.at(node).is_array())
          nodes[*space].push_back(node);
      for (const auto& [space, list] : nodes) {
        Node& edited = out_.edit(id)[i.index];
        edited.instruction.shape =
            with_space(edited.instruction.shape, list, space, *out_.storage());
      }
      if (program_[id][i].opcode == Opcode::kFusion) move_fusion_parameters({id, i});
    }
  }
}

void PlacementRewrite::move_fusion_parameters(InstructionId id) {
  const auto operands = program_[id.computation].operands(id.instruction);
  for (const MemorySpace space : {MemorySpace::kDevice, MemorySpace::kPinnedHost}) {
    std::vector<std::uint32_t> parameters;
    for (std::uint32_t k = 0; k < operands.size(); ++k)
      if (target_of(memory_.values.at(id.computation, operands[k])) == space)
        parameters.push_back(k);
    if (parameters.empty()) continue;
    Node& node = out_.edit(id.computation)[id.instruction.index];
    node.called[0] = out_.add(
        move_parameters(*out_.computation(node.called[0]), parameters, space, out_.storage()));
  }
}

/// A stack in HBM begins as zeros that a kernel writes; one in host memory is only allocated.
void PlacementRewrite::replace_initial_value(const Residual& residual, Placement placement) {
  const auto element = initial_element(program_, memory_, residual);
  check(element.has_value(), "a residual is moved whose first value stays where it is");
  const ComputationId outer_id = residual.forward_loop.computation;
  ComputationEditor& outer = out_.edit(outer_id);
  const Handle tuple = outer[residual.forward_loop.instruction.index].operands[0].handle;
  const Reference old = outer[tuple].operands[*element];
  const bool on_host = placement == Placement::kPinnedHost;
  const std::string_view name = out_.text((on_host ? "allocate." : "zeros.") + residual.id);
  Shape& begins_with = outer[tuple].instruction.shape;
  begins_with = with_space(begins_with, {begins_with.element_node(*element)},
                           target_.at(residual.stack).space, *out_.storage());
  const Shape shape = begins_with.element(*element);
  const Handle fresh = outer.add(on_host ? allocate(name, shape) : zeros(name, shape));
  outer.move_after(fresh, old.handle);
  outer[tuple].operands[*element] = {fresh, 0};
  // What made the old one goes, or makes one result less.
  const Shape whole = outer[old.handle].instruction.shape;
  const bool is_one_of_several =
      outer[old.handle].instruction.opcode == Opcode::kFusion && whole.is_tuple();
  if (is_one_of_several)
    drop_fusion_output(out_, outer_id, old.handle, whole.path(old.node)[0]);
  else
    outer.erase_unread(old.handle);
}

Node PlacementRewrite::allocate(std::string_view name, Shape shape) {
  Node node = make_node(name, Opcode::kCustomCall, shape);
  node.attributes = {{"custom_call_target", "\"AllocateBuffer\""}};
  return node;
}

/// A fusion that broadcasts a zero, as XLA makes it.
Node PlacementRewrite::zeros(std::string_view name, Shape shape) {
  ShapeData scalar;
  scalar.nodes.push_back({.type = shape.type(),
                          .bits = static_cast<std::uint8_t>(shape.bits()),
                          .bytes = (shape.bits() + 7) / 8});
  ComputationEditor fused;
  Node zero = make_node("zero", Opcode::kConstant, out_.storage()->shape(std::move(scalar)));
  zero.instruction.literal = shape.type() == ElementType::kPred ? "false" : "0";
  Node broadcast = make_node("broadcast", Opcode::kBroadcast, shape);
  broadcast.operands = {{fused.add(std::move(zero)), 0}};
  broadcast.attributes = {{"dimensions", "{}"}};
  fused.set_root({fused.add(std::move(broadcast)), 0});
  Node node = make_node(name, Opcode::kFusion, shape);
  node.called = {out_.add(fused.finish(out_.text("fused." + std::string(name)), out_.storage()))};
  node.attributes = {{"kind", "kLoop"}};
  return node;
}

/// Puts an instruction right behind the last of its operands.
void place_after_operands(ComputationEditor& body, Handle handle) {
  std::optional<Handle> last;
  for (const Reference& operand : body[handle].operands)
    if (!last || body.place(operand.handle) > body.place(*last)) last = operand.handle;
  if (last) body.move_after(handle, *last);
}

/// Puts a done right before the first instruction that computes with it, or hands it on at the end;
/// renamings in between come along.
void place_before_users(ComputationEditor& body, Handle done) {
  std::optional<Handle> first;
  std::vector<Handle> renamed = {done};
  for (std::size_t k = 0; k < renamed.size(); ++k)
    for (const Handle user : body.users(renamed[k])) {
      if (body[user].instruction.opcode == Opcode::kBitcast && user != body.root().handle)
        renamed.push_back(user);
      else if (!first || body.place(user) < body.place(*first))
        first = user;
    }
  if (!first) return;
  for (const Handle handle : renamed) body.move_before(handle, *first);
}

/// The scalars that an instruction's indices are computed from, in their order.
std::vector<Handle> index_arithmetic(const ComputationEditor& body, Handle start) {
  std::vector<Handle> scalars = {start};
  for (std::size_t k = 0; k < scalars.size(); ++k)
    for (const Reference& operand : body[scalars[k]].operands) {
      const Shape shape = body.shape_of(operand);
      if (shape.is_array() && shape.elements() == 1 &&
          std::ranges::find(scalars, operand.handle) == scalars.end())
        scalars.push_back(operand.handle);
    }
  scalars.erase(scalars.begin());
  std::ranges::sort(scalars, {}, [&body](Handle handle) { return body.place(handle); });
  return scalars;
}

/// Puts a start at the top of the body, with as much of its index arithmetic as depends on nothing
/// but what is there already.
void hoist(ComputationEditor& body, Handle start) {
  std::vector<Handle> hoisted;
  const auto is_at_top = [&](const Reference& operand) {
    const Opcode opcode = body[operand.handle].instruction.opcode;
    return opcode == Opcode::kParameter || opcode == Opcode::kConstant ||
           std::ranges::find(hoisted, operand.handle) != hoisted.end();
  };
  for (const Handle scalar : index_arithmetic(body, start))
    if (!is_at_top({scalar, 0}) && std::ranges::all_of(body[scalar].operands, is_at_top))
      hoisted.push_back(scalar);
  body.move_to_top(start);
  for (auto handle = hoisted.rbegin(); handle != hoisted.rend(); ++handle)
    body.move_to_top(*handle);
  // Parameters may stand further down.
  for (const Handle handle : hoisted) place_after_operands(body, handle);
  place_after_operands(body, start);
}

void PlacementRewrite::place_offload(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.forward_loop);
  ComputationEditor& body = out_.edit(body_id);
  const auto wrapped = done_of_wrapper(program_, memory_, body_id, residual.write.instruction);
  const Handle done =
      wrapped ? wrapped->index
              : split_update(out_, body_id, residual.write.instruction.instruction.index,
                             operand_now(program_, out_, residual.write), "offload." + residual.id);
  if (!wrapped && !body[residual.write.instruction.instruction.index].erased)
    place_after_operands(body, residual.write.instruction.instruction.index);
  place_after_operands(body, body[done].operands[0].handle);
  place_before_users(body, done);
  host_copies_[body_id].push_back(done);
}

/// One copy brings the slice to HBM; whoever read the stack reads that.
void PlacementRewrite::place_reloads(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.backward_loop);
  ComputationEditor& body = out_.edit(body_id);
  const Reference slice = fetch_slice(program_, memory_, out_, residual);
  hoist(body, body[slice.handle].operands[0].handle);
  place_before_users(body, slice.handle);
  host_copies_[body_id].push_back(slice.handle);
}

/// Whoever can slices the stack by itself; for the others the slice is made right before its use.
void PlacementRewrite::fold_reads(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.backward_loop);
  ComputationEditor& body = out_.edit(body_id);
  for (const StackAccess& read : residual.reads)
    if (const auto wrapped = done_of_wrapper(program_, memory_, body_id, read.instruction)) {
      const auto done = fold_read(out_, body_id, wrapped->index);
      if (!done) continue;
      place_before_users(body, *done);
      body.move_before(body[*done].operands[0].handle, *done);
    }
}

}  // namespace

std::string why_not_movable(const Program& program, const MemoryAssignment& memory,
                            const Residual& residual) {
  if (residual.copied_between_loops) return "XLA copies the whole stack between the loops";
  if (!initial_element(program, memory, residual))
    return "what its loop begins with is not put together right in front of it";
  return why_not_separable(program, memory, residual);
}

std::string why_not_separable(const Program& program, const MemoryAssignment& memory,
                              const Residual& residual) {
  if (residual.peeled) return "its copies are pipelined across iterations";
  const ComputationId forward = body_of(program, residual.forward_loop);
  const InstructionId write = residual.write.instruction;
  const bool can_write = write.computation == forward
                             ? can_split_update(program, residual.write)
                             : done_of_wrapper(program, memory, forward, write).has_value();
  if (!can_write) return "it is saved by something other than a slice update";
  const ComputationId backward = body_of(program, residual.backward_loop);
  for (const StackAccess& read : residual.reads) {
    if (read.loop != residual.backward_loop) return "several loops read it";
    const InstructionId id = read.instruction;
    const bool can_read = id.computation == backward
                              ? can_split_read(program, read)
                              : done_of_wrapper(program, memory, backward, id).has_value();
    if (!can_read) return "it is read by something other than slices of it";
  }
  return "";
}

Program place_residuals(const Program& program, const MemoryAssignment& memory,
                        const ResidualTable& residuals,
                        const std::vector<PlacementChange>& changes) {
  return PlacementRewrite(program, memory, residuals).run(changes);
}

}  // namespace spillway
