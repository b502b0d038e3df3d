#include "sim/rewrite/plain_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "sim/rewrite/fusion_parts.h"
#include "sim/rewrite/share_index.h"

namespace spillway {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

/// A fusion that a start wraps, with what its parameters are in the body.
struct PlainCopies::Fusion {
  std::shared_ptr<const Computation> computation;
  std::vector<Reference> arguments;
  std::string name;
};

namespace {

bool is_slice(Opcode opcode) {
  return opcode == Opcode::kDynamicSlice || opcode == Opcode::kDynamicUpdateSlice;
}

/// The same text for scalars that are worked out alike.
std::string recipe(const Computation& fused, const std::vector<Reference>& arguments,
                   Operand value) {
  const Instruction& in = fused[value.instruction];
  if (in.opcode == Opcode::kParameter) {
    const Reference& argument = arguments[parameter_number(in)];
    return fmt::format("%{}.{}", argument.handle, argument.node);
  }
  std::string text = fmt::format("{}{}(", in.opcode_text, in.literal);
  for (const Operand& operand : fused.operands(value.instruction))
    text += recipe(fused, arguments, operand) + ",";
  for (const Attribute& attribute : fused.attributes(value.instruction))
    if (attribute.name == "direction") text += attribute.value;
  return text + ")";
}

}  // namespace

Reference PlainCopies::constant(const Instruction& original, Handle before) {
  const std::string key =
      fmt::format("constant {} {}", element_type_name(original.shape.type()), original.literal);
  const auto found = scalars_.find(key);
  if (found != scalars_.end() && body_.place(found->second.handle) < body_.place(before))
    return found->second;
  Node node =
      make_node(program_.text(fmt::format("index.{}.{}", original.literal, scalars_.size())),
                Opcode::kConstant, original.shape);
  node.instruction.literal = program_.text(std::string(original.literal));
  const Handle handle = body_.add(std::move(node));
  body_.move_before(handle, before);
  return scalars_[key] = Reference{handle, 0};
}

Reference PlainCopies::scalar(const Fusion& fusion, Operand inner, Handle before) {
  const std::string key = recipe(*fusion.computation, fusion.arguments, inner);
  const auto found = scalars_.find(key);
  if (found != scalars_.end()) {
    if (body_.place(found->second.handle) > body_.place(before))
      body_.move_before(found->second.handle, before);
    return found->second;
  }
  const FusionPart part =
      cut_fusion(*fusion.computation, inner, {}, "index." + fusion.name, program_.storage());
  Node node = make_node(program_.text("index." + fusion.name), Opcode::kFusion,
                        fusion.computation->shape_of(inner));
  for (const std::uint32_t number : part.parameters)
    node.operands.push_back(fusion.arguments[number]);
  node.called = {program_.add(part.computation)};
  node.attributes = {{"kind", "kLoop"}};
  const Handle handle = body_.add(std::move(node));
  body_.move_before(handle, before);
  return scalars_[key] = Reference{handle, 0};
}

/// What an operand of the slice within the fusion is in the body; empty where the fusion computes
/// more than an index.
std::optional<Reference> PlainCopies::operand(const Fusion& fusion, Operand inner, Handle before) {
  const Computation& fused = *fusion.computation;
  const Shape shape = fused.shape_of(inner);
  const Instruction& in = fused[behind_renamings(fused, inner).instruction];
  if (in.opcode == Opcode::kConstant) return constant(in, before);
  if (in.opcode != Opcode::kParameter)
    return shape.elements() == 1 ? std::optional(scalar(fusion, inner, before)) : std::nullopt;
  const Reference argument = fusion.arguments[parameter_number(in)];
  if (in.shape.dims().size() == shape.dims().size() &&
      std::ranges::equal(in.shape.dims(), shape.dims()))
    return argument;
  // What an existing start wraps may still show the stack where it was before it moved.
  const Reference renamed =
      add_bitcast(program_, body_, fusion.name + ".stack", argument,
                  with_space(shape, {0}, body_.shape_of(argument).space(), *program_.storage()));
  body_.move_before(renamed.handle, before);
  return renamed;
}

/// One instruction as a computation, with parameters of these shapes for its operands.
std::shared_ptr<const Computation> PlainCopies::wrap(Node instruction,
                                                     const std::vector<Shape>& operands,
                                                     const std::string& name,
                                                     const Computation& owner) {
  ComputationEditor wrapper;
  wrapper.keep_alive(owner);
  instruction.operands.clear();
  for (std::uint32_t k = 0; k < operands.size(); ++k)
    instruction.operands.push_back(
        {wrapper.add(make_parameter(program_.text(fmt::format("param_{}", k)), k, operands[k],
                                    *program_.storage())),
         0});
  wrapper.set_root({wrapper.add(std::move(instruction)), 0});
  return wrapper.finish(program_.text(name), program_.storage());
}

void PlainCopies::unfuse(Handle done) {
  const Handle start = body_[done].operands[0].handle;
  const auto wrapped = program_.computation(body_[start].called[0]);
  const InstructionIndex root = wrapped->root().instruction;
  if ((*wrapped)[root].opcode != Opcode::kFusion) return;
  Fusion fusion{program_.computation(wrapped->called(root)[0]),
                {},
                std::string(body_[start].instruction.name)};
  for (const Operand& argument : wrapped->operands(root)) {
    const auto number = find_parameter(*wrapped, argument);
    if (!number) return;
    fusion.arguments.push_back(body_[start].operands[*number]);
  }
  const Computation& fused = *fusion.computation;
  const InstructionIndex slice = behind_renamings(fused, fused.root()).instruction;
  if (!is_slice(fused[slice].opcode)) return;
  const bool updates = fused[slice].opcode == Opcode::kDynamicUpdateSlice;
  std::vector<Reference> operands;
  for (const Operand& inner : fused.operands(slice)) {
    const auto found = operand(fusion, inner, start);
    if (!found) return;
    operands.push_back(*found);
  }

  Node plain = make_node(program_.text("plain." + fusion.name), fused[slice].opcode,
                         updates ? body_.shape_of(operands[0]) : fused[slice].shape);
  plain.attributes.assign(fused.attributes(slice).begin(), fused.attributes(slice).end());
  const Shape result = plain.instruction.shape;
  std::vector<Shape> shapes;
  for (const Reference& argument : operands) shapes.push_back(body_.shape_of(argument));
  Node around = make_node(program_.text("wrapped." + fusion.name), Opcode::kFusion, result);
  around.attributes = {{"kind", "kLoop"}};
  around.called = {
      program_.add(wrap(std::move(plain), shapes, "plain_computation." + fusion.name, fused))};
  body_[start].called = {
      program_.add(wrap(std::move(around), shapes, "async_computation." + fusion.name, fused))};
  body_[start].operands = std::move(operands);
  RewriteStorage& storage = *program_.storage();
  body_[start].instruction.shape = make_tuple_shape(
      {make_tuple_shape(shapes, storage), result, make_context_shape(storage)}, storage);
  const Shape before = body_[done].instruction.shape;
  if (!std::ranges::equal(before.dims(), result.dims())) {
    const Reference renamed =
        add_bitcast(program_, body_, fusion.name + ".done", {done, 0}, before);
    body_.move_after(renamed.handle, done);
    body_.redirect({done, 0}, renamed, renamed.handle);
    body_[done].instruction.shape = result;
  }
}

void PlainCopies::share_indices() {
  for (const auto& [recipe, scalar] : scalars_) share_index(program_, body_id_, scalar.handle);
}

}  // namespace spillway
