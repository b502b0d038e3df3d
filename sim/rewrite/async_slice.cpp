#include "sim/rewrite/async_slice.h"

#include <algorithm>

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

/// A copy of one instruction as a computation of its own, which takes its operands as parameters.
std::shared_ptr<const Computation> wrap(const Node& instruction,
                                        const std::vector<Shape>& operand_shapes,
                                        std::string_view name, ProgramEditor& program) {
  ComputationEditor wrapper;
  Node inner = instruction;
  for (std::uint32_t k = 0; k < operand_shapes.size(); ++k) {
    const Handle parameter = wrapper.add(make_parameter(program.text("param_" + std::to_string(k)),
                                                        k, operand_shapes[k], *program.storage()));
    inner.operands[k] = {parameter, 0};
  }
  wrapper.set_root({wrapper.add(std::move(inner)), 0});
  return wrapper.finish(name, program.storage());
}

/// An async pair around a fusion of `fused`. Returns the done; the start is what the done reads.
Handle make_async(ProgramEditor& program, ComputationId body_id,
                  std::shared_ptr<const Computation> fused, std::vector<Reference> operands,
                  Shape result, const std::string& name) {
  ComputationEditor& body = program.edit(body_id);
  RewriteStorage& storage = *program.storage();
  std::vector<Shape> shapes;
  for (const Reference& operand : operands) shapes.push_back(body.shape_of(operand));
  Node fusion = make_node(program.text("wrapped." + name), Opcode::kFusion, result);
  fusion.operands = operands;
  fusion.called = {program.add(std::move(fused))};
  fusion.attributes = {{"kind", "kLoop"}};
  const ComputationId wrapped =
      program.add(wrap(fusion, shapes, program.text("async_computation." + name), program));

  Node start = make_node(
      program.text(name + "-start"), Opcode::kAsyncStart,
      make_tuple_shape({make_tuple_shape(shapes, storage), result, make_context_shape(storage)},
                       storage));
  start.operands = std::move(operands);
  start.called = {wrapped};
  const Handle start_handle = body.add(std::move(start));
  Node done = make_node(program.text(name + "-done"), Opcode::kAsyncDone, result);
  done.operands = {{start_handle, 0}};
  return body.add(std::move(done));
}

/// Puts an instruction that is the update or the slice itself into an async pair.
Handle make_async_of(ProgramEditor& program, ComputationId body_id, Handle handle,
                     const std::string& name) {
  ComputationEditor& body = program.edit(body_id);
  const Node instruction = body[handle];
  std::vector<Shape> shapes;
  for (const Reference& operand : instruction.operands) shapes.push_back(body.shape_of(operand));
  const Handle done = make_async(program, body_id,
                                 wrap(instruction, shapes, program.text("fused." + name), program),
                                 instruction.operands, instruction.instruction.shape, name);
  body.redirect({handle, 0}, {done, 0});
  body.erase(handle);
  return done;
}

std::vector<Reference> pick(const std::vector<Reference>& all,
                            const std::vector<std::uint32_t>& numbers) {
  std::vector<Reference> picked;
  for (const std::uint32_t number : numbers) picked.push_back(all[number]);
  return picked;
}

/// Makes a fusion compute a part of what it did.
void become_part(ProgramEditor& program, Node& fusion, const FusionPart& part) {
  fusion.operands = pick(fusion.operands, part.parameters);
  fusion.instruction.shape = part.computation->shape_of(part.computation->root());
  fusion.called[0] = program.add(part.computation);
}

/// What a fusion still computes when output `output` is `slice` instead of the stack.
FusionPart without_update(const Computation& fused, std::uint32_t output, Operand slice,
                          const std::string& name, ProgramEditor& program) {
  const Operand root = fused.root();
  ComputationEditor rest(fused);
  if (!fused.shape_of(root).is_tuple()) {
    rest.set_root({slice.instruction.index, slice.node});
  } else {
    Node& tuple = rest[root.instruction.index];
    tuple.operands[output] = {slice.instruction.index, slice.node};
    std::vector<Shape> shapes;
    for (const Reference& element : tuple.operands) shapes.push_back(rest.shape_of(element));
    tuple.instruction.shape = make_tuple_shape(shapes, *program.storage());
  }
  const auto computation = rest.finish(program.text("rest." + name), program.storage());
  return cut_fusion(*computation, computation->root(), {}, "rest." + name, program.storage());
}

/// Whether XLA fuses a slice into an instruction that reads it: into fusions that it writes loops
/// for, not into Triton's or library calls.
bool slices_by_itself(const Node& node) {
  return node.instruction.opcode == Opcode::kFusion &&
         std::ranges::any_of(node.attributes, [](const Attribute& attribute) {
           return attribute.name == "kind" &&
                  (attribute.value == "kLoop" || attribute.value == "kInput");
         });
}

/// Another output of a fusion that is this value, behind renamings.
std::optional<std::uint32_t> other_output(const Computation& fused, std::uint32_t output,
                                          Operand value) {
  if (fused.root_instruction().opcode != Opcode::kTuple) return std::nullopt;
  const auto outputs = fused.operands(fused.root().instruction);
  for (std::uint32_t k = 0; k < outputs.size(); ++k)
    if (k != output && behind_renamings(fused, outputs[k]) == behind_renamings(fused, value))
      return k;
  return std::nullopt;
}

/// An update taken out of a fusion, and what it is to be called with.
struct UpdatePart {
  std::shared_ptr<const Computation> computation;
  std::vector<Reference> operands;
  bool replaces_stack = false;  ///< the fusion now gives the slice where it gave the stack
};

/// The slice comes from outside, or is another result already, or takes the place of the stack.
UpdatePart take_out_update(ProgramEditor& program, Node& fusion, Handle handle,
                           const Computation& fused, const FusedUpdate& update,
                           const std::string& name) {
  const Shape result = fusion.instruction.shape;
  const Operand slice = fused.operands(update.instruction)[1];
  const bool handed_in = find_parameter(fused, slice).has_value();
  const auto twin = other_output(fused, update.output, slice);
  std::vector<Cut> cuts;
  if (!handed_in)
    cuts.push_back({{slice.instruction}, twin ? result.element(*twin) : fused.shape_of(slice)});
  const FusionPart copy =
      cut_fusion(fused, Operand{update.instruction, 0}, cuts, "fused." + name, program.storage());
  UpdatePart part{copy.computation, pick(fusion.operands, copy.parameters), !handed_in && !twin};
  if (part.replaces_stack) {
    part.operands.push_back({handle, result.is_tuple() ? result.element_node(update.output) : 0});
    become_part(program, fusion, without_update(fused, update.output, slice, name, program));
  } else if (!handed_in) {
    part.operands.push_back({handle, result.element_node(*twin)});
  }
  return part;
}

/// Has fusions of loops and reductions that read `value`, itself or renamed, compute it inside,
/// from `arguments`; it goes where nobody else reads it.
void compute_in_users(ProgramEditor& program, ComputationId body_id, Handle value,
                      const Computation& computation, const std::vector<Reference>& arguments) {
  ComputationEditor& body = program.edit(body_id);
  std::vector<Handle> renamed = {value};
  for (std::size_t k = 0; k < renamed.size(); ++k)
    for (const Handle user : body.users(renamed[k])) {
      if (body[user].instruction.opcode == Opcode::kBitcast) renamed.push_back(user);
      while (slices_by_itself(body[user])) {
        auto& operands = body[user].operands;
        const auto found = std::ranges::find(operands, Reference{renamed[k], 0});
        if (found == operands.end()) break;
        body[user].called[0] = program.add(compute_parameter(
            *program.computation(body[user].called[0]),
            static_cast<std::uint32_t>(found - operands.begin()), computation,
            program.text("folded." + std::string(body[user].instruction.name)), program.storage()));
        operands.erase(found);
        operands.insert(operands.end(), arguments.begin(), arguments.end());
      }
    }
  for (auto handle = renamed.rbegin(); handle != renamed.rend(); ++handle) {
    if (!body.users(*handle).empty() || *handle == body.root().handle) continue;
    body.erase(*handle);
  }
}

}  // namespace

void fuse_into_users(ProgramEditor& program, ComputationId body_id, Handle fusion) {
  const ComputationEditor::Node producer = program.edit(body_id)[fusion];
  if (producer.instruction.opcode != Opcode::kFusion) return;
  const auto computation = program.computation(producer.called[0]);
  compute_in_users(program, body_id, fusion, *computation, producer.operands);
}

void fuse_renamings(ProgramEditor& program, ComputationId body_id) {
  ComputationEditor& body = program.edit(body_id);
  for (Handle handle = body.size(); handle-- > 0;) {
    const Node renaming = body[handle];
    if (renaming.erased || renaming.instruction.opcode != Opcode::kBitcast ||
        !renaming.instruction.name.ends_with(kRenamedSuffix))
      continue;
    const auto inside =
        wrap(renaming, {body.shape_of(renaming.operands[0])}, renaming.instruction.name, program);
    compute_in_users(program, body_id, handle, *inside, renaming.operands);
  }
}

void drop_fusion_output(ProgramEditor& program, ComputationId body_id, Handle fusion,
                        std::uint32_t output) {
  ComputationEditor& body = program.edit(body_id);
  const Shape before = body[fusion].instruction.shape;
  if (body.is_read({fusion, 0}) || body.is_read({fusion, before.element_node(output)})) return;
  const FusionPart rest = drop_output(*program.computation(body[fusion].called[0]), output,
                                      body[fusion].instruction.name, program.storage());
  const Shape after = rest.computation->shape_of(rest.computation->root());
  std::vector<std::optional<ShapeNodeIndex>> nodes(before.node_count());
  for (std::uint32_t k = 0, left = 0; k < before.tuple_size(); ++k) {
    if (k == output) continue;
    const ShapeNodeIndex to = after.is_tuple() ? after.element_node(left++) : 0;
    for (ShapeNodeIndex n = 0; n < before.element(k).node_count(); ++n)
      nodes[before.element_node(k) + n] = to + n;
  }
  become_part(program, body[fusion], rest);
  body.renumber(fusion, nodes);
}

Handle split_update(ProgramEditor& program, ComputationId body_id, Handle writer,
                    std::uint32_t operand, const std::string& name) {
  ComputationEditor& body = program.edit(body_id);
  if (body[writer].instruction.opcode == Opcode::kDynamicUpdateSlice)
    return make_async_of(program, body_id, writer, name);
  const std::shared_ptr<const Computation> fused = program.computation(body[writer].called[0]);
  const auto update = find_update(*fused, operand);
  check(update.has_value(), "a writer of a residual no longer updates it");
  const Shape result = body[writer].instruction.shape;
  const bool handed_in =
      find_parameter(*fused, fused->operands(update->instruction)[1]).has_value();
  if (handed_in && !result.is_tuple()) {  // nothing but the update
    const Handle done = make_async(program, body_id, fused, body[writer].operands, result, name);
    body.redirect({writer, 0}, {done, 0});
    body.erase(writer);
    return done;
  }
  const ShapeNodeIndex stack_node = result.is_tuple() ? result.element_node(update->output) : 0;
  UpdatePart part = take_out_update(program, body[writer], writer, *fused, *update, name);
  const Handle done = make_async(program, body_id, std::move(part.computation),
                                 std::move(part.operands), result.at(stack_node), name);
  body.redirect({writer, stack_node}, {done, 0}, body[done].operands[0].handle);
  if (!part.replaces_stack) drop_fusion_output(program, body_id, writer, update->output);
  return done;
}

/// Whoever reads from a fusion what it only hands on reads it where it comes from: `value`, the
/// fusion's last operand.
void drop_handed_on(ProgramEditor& program, ComputationId body_id, Handle fusion, Reference value) {
  ComputationEditor& body = program.edit(body_id);
  const std::shared_ptr<const Computation> fused = program.computation(body[fusion].called[0]);
  const auto last = static_cast<std::uint32_t>(fused->parameters().size() - 1);
  const Operand root = fused->root();
  const Shape shape = body[fusion].instruction.shape;
  const std::string name(body[fusion].instruction.name);
  const auto hand_on = [&](ShapeNodeIndex node) {
    body.redirect({fusion, node},
                  add_bitcast(program, body, name + ".handed_on", value, shape.at(node)));
  };
  if (!shape.is_tuple()) {
    if (find_parameter(*fused, root) != last) return;
    hand_on(0);
    body.erase(fusion);
    return;
  }
  if ((*fused)[root.instruction].opcode != Opcode::kTuple) return;
  std::vector<std::uint32_t> handed_on;
  for (std::uint32_t k = shape.tuple_size(); k-- > 0;)
    if (find_parameter(*fused, fused->operands(root.instruction)[k]) == last)
      handed_on.push_back(k);
  for (const std::uint32_t k : handed_on) hand_on(shape.element_node(k));
  if (handed_on.size() == shape.tuple_size() && body.users(fusion).empty() &&
      body.root().handle != fusion) {
    body.erase(fusion);
    return;
  }
  // The last one stays where all are handed on, and something reads the whole.
  if (handed_on.size() == shape.tuple_size()) return;
  for (const std::uint32_t k : handed_on) drop_fusion_output(program, body_id, fusion, k);
}

void split_read(ProgramEditor& program, ComputationId body_id, Handle reader, std::uint32_t operand,
                const std::string& name, std::optional<Reference>& slice) {
  ComputationEditor& body = program.edit(body_id);
  if (body[reader].instruction.opcode != Opcode::kFusion) {
    if (!slice) {
      slice = Reference{make_async_of(program, body_id, reader, name), 0};
      return;
    }
    Node& renaming = body[reader];  // the shapes may differ by a dimension of 1
    renaming.instruction.opcode = Opcode::kBitcast;
    renaming.instruction.opcode_text = opcode_name(Opcode::kBitcast);
    renaming.operands = {*slice};
    renaming.attributes.clear();
    return;
  }
  const std::shared_ptr<const Computation> fused = program.computation(body[reader].called[0]);
  const std::vector<InstructionIndex> slices = find_slices(*fused, operand);
  check(!slices.empty(), "a reader of a residual no longer reads slices of it");
  if (!slice) {
    const FusionPart copy =
        cut_fusion(*fused, Operand{slices.front(), 0}, {}, "fused." + name, program.storage());
    slice = Reference{
        make_async(program, body_id, copy.computation, pick(body[reader].operands, copy.parameters),
                   (*fused)[slices.front()].shape, name),
        0};
  }
  become_part(program, body[reader],
              cut_fusion(*fused, fused->root(), {Cut{slices, body.shape_of(*slice)}},
                         "rest." + name, program.storage()));
  body[reader].operands.push_back(*slice);
  drop_handed_on(program, body_id, reader, *slice);
}

std::optional<Handle> fold_read(ProgramEditor& program, ComputationId body_id, Handle done) {
  ComputationEditor& body = program.edit(body_id);
  const Handle start = body[done].operands[0].handle;
  // What the start wraps is a fusion of the slice, or the slice itself.
  const std::shared_ptr<const Computation> wrapped = program.computation(body[start].called[0]);
  const InstructionIndex root = wrapped->root().instruction;
  std::shared_ptr<const Computation> slice = wrapped;
  std::vector<Reference> arguments = body[start].operands;
  if ((*wrapped)[root].opcode == Opcode::kFusion) {
    slice = program.computation(wrapped->called(root)[0]);
    std::vector<std::uint32_t> numbers;
    for (const Operand& operand : wrapped->operands(root)) {
      const auto number = find_parameter(*wrapped, operand);
      if (!number) return done;
      numbers.push_back(*number);
    }
    arguments = pick(arguments, numbers);
  }
  compute_in_users(program, body_id, done, *slice, arguments);
  if (!body[done].erased) return done;
  body.erase(start);
  return std::nullopt;
}

}  // namespace spillway
