#include "sim/rewrite/stacks.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/fusion_parts.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

void move_fusion_parameters(ProgramEditor& out, const Program& program, const Lifetimes& memory,
                            const SpaceOfValue& space_of, InstructionId id) {
  const auto operands = program[id.computation].operands(id.instruction);
  for (const MemorySpace space : {MemorySpace::kDevice, MemorySpace::kPinnedHost}) {
    std::vector<std::uint32_t> parameters;
    for (std::uint32_t k = 0; k < operands.size(); ++k)
      if (space_of(memory.values.at(id.computation, operands[k])) == space) parameters.push_back(k);
    if (parameters.empty()) continue;
    Node& node = out.edit(id.computation)[id.instruction.index];
    node.called[0] = out.add(
        move_parameters(*out.computation(node.called[0]), parameters, space, out.storage()));
  }
}

Node allocate(std::string_view name, Shape shape) {
  Node node = make_node(name, Opcode::kCustomCall, shape);
  node.attributes = {{"custom_call_target", "\"AllocateBuffer\""}};
  return node;
}

/// A fusion that broadcasts a zero, as XLA makes it.
Node zeros(ProgramEditor& out, std::string_view name, Shape shape) {
  ShapeData scalar;
  scalar.nodes.push_back({.type = shape.type(),
                          .bits = static_cast<std::uint8_t>(shape.bits()),
                          .bytes = (shape.bits() + 7) / 8});
  ComputationEditor fused;
  Node zero = make_node("zero", Opcode::kConstant, out.storage()->shape(std::move(scalar)));
  zero.instruction.literal = shape.type() == ElementType::kPred ? "false" : "0";
  Node broadcast = make_node("broadcast", Opcode::kBroadcast, shape);
  broadcast.operands = {{fused.add(std::move(zero)), 0}};
  broadcast.attributes = {{"dimensions", "{}"}};
  fused.set_root({fused.add(std::move(broadcast)), 0});
  Node node = make_node(name, Opcode::kFusion, shape);
  node.called = {out.add(fused.finish(out.text("fused." + std::string(name)), out.storage()))};
  node.attributes = {{"kind", "kLoop"}};
  return node;
}

}  // namespace

void move_values(ProgramEditor& out, const Program& program, const Lifetimes& memory,
                 const SpaceOfValue& space_of) {
  for (const ComputationId id : ids(program.computations)) {
    if (!memory.schedule.reaches(id)) continue;
    for (const InstructionIndex i : program[id].instructions()) {
      const Shape shape = program[id][i].shape;
      std::map<MemorySpace, std::vector<ShapeNodeIndex>> nodes;
      for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
        if (const auto space = space_of(memory.values.at({id, i}, node));
            space && shape.at(node).is_array())
          nodes[*space].push_back(node);
      for (const auto& [space, list] : nodes) {
        Node& edited = out.edit(id)[i.index];
        edited.instruction.shape =
            with_space(edited.instruction.shape, list, space, *out.storage());
      }
      if (program[id][i].opcode == Opcode::kFusion)
        move_fusion_parameters(out, program, memory, space_of, {id, i});
    }
  }
}

std::optional<std::uint32_t> initial_element(const Program& program, const Lifetimes& memory,
                                             InstructionId loop, BufferId stack) {
  const Computation& outer = program[loop.computation];
  const Operand initial = outer.operands(loop.instruction)[0];
  if (initial.node != 0 || outer[initial.instruction].opcode != Opcode::kTuple) return std::nullopt;
  const Shape carried = program[loop].shape;
  for (std::uint32_t k = 0; k < carried.tuple_size(); ++k) {
    const ValueId value = memory.values.at(loop, carried.element_node(k));
    if (carried.element(k).is_array() && memory.liveness.buffer_of[value] == stack) return k;
  }
  return std::nullopt;
}

void replace_initial_value(ProgramEditor& out, InstructionId loop, std::uint32_t element,
                           MemorySpace space, const std::string& name) {
  ComputationEditor& outer = out.edit(loop.computation);
  const Handle tuple = outer[loop.instruction.index].operands[0].handle;
  const Reference old = outer[tuple].operands[element];
  Shape& begins_with = outer[tuple].instruction.shape;
  begins_with = with_space(begins_with, {begins_with.element_node(element)}, space, *out.storage());
  const Shape shape = begins_with.element(element);
  const std::string_view text = out.text((is_host(space) ? "allocate." : "zeros.") + name);
  const Handle fresh = outer.add(is_host(space) ? allocate(text, shape) : zeros(out, text, shape));
  outer.move_after(fresh, old.handle);
  outer[tuple].operands[element] = {fresh, 0};
  // What made the old one goes, or makes one result less.
  const Shape whole = outer[old.handle].instruction.shape;
  const bool is_one_of_several =
      outer[old.handle].instruction.opcode == Opcode::kFusion && whole.is_tuple();
  if (is_one_of_several)
    drop_fusion_output(out, loop.computation, old.handle, whole.path(old.node)[0]);
  else
    outer.erase_unread(old.handle);
}

void place_after_operands(ComputationEditor& body, Handle handle) {
  std::optional<Handle> last;
  for (const Reference& operand : body[handle].operands)
    if (!last || body.place(operand.handle) > body.place(*last)) last = operand.handle;
  if (last) body.move_after(handle, *last);
}

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

}  // namespace spillway
