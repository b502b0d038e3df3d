#include "sim/rewrite/loop_peeler.h"

#include <algorithm>

#include "model/program/call_graph.h"
#include "model/program/control_predecessors.h"

namespace spillway {

LoopPeeler::LoopPeeler(const Program& program, ProgramEditor& editor, InstructionId loop)
    : program_(program),
      editor_(editor),
      loop_(loop),
      body_id_(body_of(program, loop)),
      body_(program[body_id_]),
      caller_(editor.edit(loop.computation)),
      elements_(body_.root_instruction().shape.tuple_size()) {}

namespace {

/// Whether somebody reads a tuple whole, `but_for` aside.
bool is_read_whole(const Computation& computation, InstructionIndex tuple,
                   std::optional<InstructionIndex> but_for = {}) {
  const Operand whole{tuple, 0};
  if (computation.root() == whole) return true;
  for (const Use& use : computation.uses(tuple))
    if (use.user != but_for && std::ranges::find(computation.operands(use.user), whole) !=
                                   computation.operands(use.user).end())
      return true;
  return false;
}

/// Whether other instructions call what the loop calls.
bool shares_its_computations(const Program& program, InstructionId loop) {
  const auto called = program[loop.computation].called(loop.instruction);
  const auto sites = callers(program);
  return std::ranges::any_of(called, [&](ComputationId id) { return sites[id].size() != 1; });
}

}  // namespace

bool LoopPeeler::can_peel(const Program& program, InstructionId loop) {
  const Computation& caller = program[loop.computation];
  const Computation& body = program[body_of(program, loop)];
  const Operand begins = caller.operands(loop.instruction)[0];
  if (body.parameters().size() != 1 || body.root().node != 0 ||
      body.root_instruction().opcode != Opcode::kTuple ||
      !body.root_instruction().shape.is_flat_tuple() ||
      caller[begins.instruction].opcode != Opcode::kTuple)
    return false;
  if (is_read_whole(caller, loop.instruction) ||
      is_read_whole(caller, begins.instruction, loop.instruction) ||
      is_read_whole(body, body.parameters()[0]) || shares_its_computations(program, loop))
    return false;
  for (const InstructionIndex i : body.instructions())
    if (is_control_flow(body[i].opcode)) return false;
  return true;
}

std::string_view LoopPeeler::new_name(std::string_view base) {
  return editor_.text(std::string(base) + "." + std::string(body_.name()) + "." +
                      std::to_string(names_++));
}

Shape LoopPeeler::copy_shape(Shape shape) const {
  return with_space(shape, {}, MemorySpace::kDevice, *editor_.storage());
}

ComputationEditor::Node LoopPeeler::clone(InstructionIndex i) {
  ComputationEditor::Node node;
  node.instruction = body_[i];
  node.instruction.name = new_name(body_[i].name);
  node.instruction.shape = copy_shape(body_[i].shape);
  node.instruction.literal = editor_.text(std::string(body_[i].literal));
  for (const Attribute& attribute : body_.attributes(i))
    if (attribute.name != kControlPredecessors)  // they name what stays in the body
      node.attributes.push_back(
          {editor_.text(std::string(attribute.name)), editor_.text(std::string(attribute.value))});
  for (const ComputationId called : body_.called(i))
    node.called.push_back(
        runs_what_it_calls(body_[i].opcode) ? editor_.add(program_.computations[called]) : called);
  return node;
}

LoopPeeler::Reference LoopPeeler::translate(const References& known, const Elements& element_of,
                                            Operand operand) const {
  if (operand.instruction.index == parameter()) return element_of(operand.node - 1);
  const Reference& base = known.at(operand.instruction.index);
  return {base.handle, base.node + operand.node};
}

ComputationEditor::Node LoopPeeler::clone_with_operands(InstructionIndex i,
                                                        const Elements& element_of,
                                                        const References& known) {
  ComputationEditor::Node node = clone(i);
  for (const Operand& operand : body_.operands(i))
    node.operands.push_back(translate(known, element_of, operand));
  return node;
}

void LoopPeeler::clone_before(const std::vector<InstructionIndex>& instructions,
                              ComputationEditor& target, Handle before, const Elements& element_of,
                              References& known) {
  for (const InstructionIndex i : instructions) {
    if (known.contains(i.index)) continue;
    const Handle handle = target.add(clone_with_operands(i, element_of, known));
    target.move_before(handle, before);
    known[i.index] = {handle, 0};
  }
}

LoopPeeler::References LoopPeeler::inline_body(std::optional<Handle> before,
                                               const std::set<Handle>& left_out,
                                               const Elements& element_of, References known) {
  Handle at = loop();
  for (const InstructionIndex i : body_.instructions()) {
    if (i.index == parameter() || i.index == root() || left_out.contains(i.index)) continue;
    const Handle handle = caller_.add(clone_with_operands(i, element_of, known));
    if (before)
      caller_.move_before(handle, *before);
    else
      caller_.move_after(handle, at);
    at = handle;
    known[i.index] = {handle, 0};
  }
  return known;
}

void LoopPeeler::widen(const std::vector<Reference>& values) {
  ComputationEditor& body = edit_body();
  std::vector<Shape> shapes;
  const Shape carry = body_.root_instruction().shape;
  for (std::uint32_t k = 0; k < elements_; ++k) shapes.push_back(carry.element(k));
  for (const Reference& value : values) {
    shapes.push_back(body.shape_of(value));
    body[root()].operands.push_back(value);
  }
  const Shape wide = make_tuple_shape(shapes, *editor_.storage());
  body[parameter()].instruction.shape = wide;
  body[root()].instruction.shape = wide;
  caller_[loop()].instruction.shape = wide;
  caller_[initial()].instruction.shape = wide;
  const ComputationId condition = program_[loop_.computation].called(loop_.instruction)[0];
  editor_.edit(condition)[program_[condition].parameters()[0].index].instruction.shape = wide;
}

void LoopPeeler::set_trip_count(std::int64_t trips) {
  for (Attribute& attribute : caller_[loop()].attributes) {
    if (attribute.name != "backend_config") continue;
    std::string config(attribute.value);
    const std::size_t key = config.find("known_trip_count");
    if (key == std::string::npos) continue;
    const std::size_t begin = config.find_first_of("0123456789", key);
    if (begin == std::string::npos) continue;
    const std::size_t end = std::min(config.find_first_not_of("0123456789", begin), config.size());
    config.replace(begin, end - begin, std::to_string(trips));
    attribute.value = editor_.text(std::move(config));
  }
}

}  // namespace spillway
