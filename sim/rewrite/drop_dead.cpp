#include "sim/rewrite/drop_dead.h"

#include <algorithm>
#include <map>

#include "model/base/json_value.h"
#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/loop_carry.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;

bool has_effect(const Computation& computation, InstructionIndex i) {
  switch (computation[i].opcode) {
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRngGetAndUpdateState:
      return true;
    default:
      return has_attribute(computation, i, "custom_call_has_side_effect", "true");
  }
}

bool any_effect(const Computation& computation) {
  for (const InstructionIndex i : computation.instructions())
    if (has_effect(computation, i)) return true;
  return false;
}

/// Which direct element of a tuple a node belongs to.
std::uint32_t element_of(Shape tuple, ShapeNodeIndex node) { return tuple.path(node)[0]; }

/// The operands of a fusion that its output number `output` depends on.
std::vector<std::uint32_t> operands_behind(const Computation& fused, std::uint32_t output) {
  std::vector<bool> seen(fused.size());
  std::vector<InstructionIndex> open = {
      fused.operands(fused.root().instruction)[output].instruction};
  std::vector<std::uint32_t> numbers;
  while (!open.empty()) {
    const InstructionIndex i = open.back();
    open.pop_back();
    if (seen[i.index]) continue;
    seen[i.index] = true;
    if (fused[i].opcode == Opcode::kParameter) numbers.push_back(parameter_number(fused[i]));
    for (const Operand& operand : fused.operands(i)) open.push_back(operand.instruction);
  }
  return numbers;
}

class DeadCode {
 public:
  explicit DeadCode(const Program& program)
      : program_(program), runs_(multiplicity(program, is_control_flow)) {}

  Program run() {
    prepare();
    mark_all_of({program_.entry, program_.entry_computation().root().instruction});
    for (const InstructionId id : effects_) mark_with_callers(id);
    follow();
    ProgramEditor editor(program_);
    for (const ComputationId id : ids(program_.computations))
      if (is_reached(id)) erase_dead(editor, id);
    for (const auto& [id, kept] : elements_) shorten_tuples(editor, id, kept);
    for (const auto& [id, kept] : elements_) drop_elements(editor, id, kept);
    return editor.finish();
  }

 private:
  struct Mark {
    InstructionId at;
    std::optional<std::uint32_t> element;  ///< empty: all of it
  };

  bool is_reached(ComputationId id) const { return runs_.runs[id] > 0; }
  const Instruction& in(InstructionId id) const { return program_[id]; }
  bool is_live(InstructionId id) const { return live_[id.computation][id.instruction.index] != 0; }

  void prepare();
  void mark(ComputationId id, Operand operand);
  void mark_all_of(InstructionId id) { open_.push_back({id, {}}); }
  void mark_with_callers(InstructionId id);
  void follow();
  void enter(InstructionId id);
  void enter_element(InstructionId id, std::uint32_t element);
  bool by_element(InstructionId id) const;
  bool is_carry(InstructionId id) const {
    return in(id).opcode == Opcode::kParameter && loop_of_.contains(id.computation);
  }

  void erase_dead(ProgramEditor& editor, ComputationId id) const;
  void shorten_tuples(ProgramEditor& editor, InstructionId id, const std::vector<char>& kept) const;
  void drop_elements(ProgramEditor& editor, InstructionId id, const std::vector<char>& kept) const;
  void shrink_loop(ProgramEditor& editor, InstructionId loop, const std::vector<char>& kept) const;
  void shrink(ProgramEditor& editor, ComputationId id, Handle tuple,
              const std::vector<char>& kept) const;

  const Program& program_;
  const Multiplicity runs_;
  std::map<ComputationId, InstructionId> loop_of_;    ///< of bodies and conditions
  std::map<ComputationId, InstructionId> caller_of_;  ///< these, branches and what is called
  std::vector<InstructionId> effects_;
  IdVector<ComputationId, std::vector<char>> live_;
  std::map<InstructionId, std::vector<char>> elements_;  ///< of what is live by element
  std::vector<Mark> open_;
};

void DeadCode::prepare() {
  live_.resize(program_.computations.size());
  for (const ComputationId id : ids(program_.computations)) {
    if (!is_reached(id)) continue;
    live_[id].resize(program_[id].size());
    for (const InstructionIndex i : program_[id].instructions()) {
      for (const ComputationId called : program_[id].called(i)) {
        if (program_[id][i].opcode == Opcode::kWhile) loop_of_[called] = {id, i};
        if (is_control_flow(program_[id][i].opcode)) caller_of_[called] = {id, i};
        if (is_async_start(program_[id][i].opcode) && any_effect(program_[called]))
          effects_.push_back({id, i});
      }
      if (has_effect(program_[id], i)) effects_.push_back({id, i});
    }
  }
}

/// What has an effect is needed, and so is every loop, branch and call around it.
void DeadCode::mark_with_callers(InstructionId id) {
  mark_all_of(id);
  for (auto caller = caller_of_.find(id.computation); caller != caller_of_.end();
       caller = caller_of_.find(caller->second.computation)) {
    auto& live = live_[caller->second.computation][caller->second.instruction.index];
    if (!live) enter(caller->second);
    live = 1;
  }
}

/// Whether an instruction may be needed in part.
bool DeadCode::by_element(InstructionId id) const {
  const Instruction& instruction = in(id);
  if (!instruction.shape.is_tuple()) return false;
  switch (instruction.opcode) {
    case Opcode::kTuple:
      return true;
    case Opcode::kWhile:
      return LoopCarry::is_flat(program_, id);
    case Opcode::kParameter:
      return is_carry(id) && LoopCarry::is_flat(program_, loop_of_.at(id.computation));
    case Opcode::kFusion:
      return instruction.shape.is_flat_tuple() &&
             program_[program_[id.computation].called(id.instruction)[0]]
                     .root_instruction()
                     .opcode == Opcode::kTuple;
    default:
      return false;
  }
}

void DeadCode::mark(ComputationId id, Operand operand) {
  const InstructionId at{id, operand.instruction};
  if (operand.node == 0 || !by_element(at))
    open_.push_back({at, {}});
  else
    open_.push_back({at, element_of(in(at).shape, operand.node)});
}

void DeadCode::follow() {
  while (!open_.empty()) {
    const Mark mark = open_.back();
    open_.pop_back();
    auto& live = live_[mark.at.computation][mark.at.instruction.index];
    if (!live) {
      live = 1;
      enter(mark.at);
    }
    if (!by_element(mark.at)) continue;
    auto& elements = elements_[mark.at];
    elements.resize(in(mark.at).shape.tuple_size());
    for (std::uint32_t k = 0; k < elements.size(); ++k) {
      if (elements[k] || (mark.element && *mark.element != k)) continue;
      elements[k] = 1;
      enter_element(mark.at, k);
    }
  }
}

/// What an instruction needs whatever is wanted of it.
void DeadCode::enter(InstructionId id) {
  const Computation& computation = program_[id.computation];
  const Opcode opcode = in(id).opcode;
  if (opcode == Opcode::kWhile) {
    for (const ComputationId called : computation.called(id.instruction))
      if (called != body_of(program_, id) || !LoopCarry::is_flat(program_, id))
        mark(called, program_[called].root());
  } else if (is_control_flow(opcode)) {
    for (const ComputationId called : computation.called(id.instruction))
      if (is_reached(called)) mark(called, program_[called].root());
  }
  if (opcode == Opcode::kParameter && is_carry(id) && !by_element(id))
    mark_all_of(loop_of_.at(id.computation));
  if (by_element(id)) return;
  for (const Operand& operand : computation.operands(id.instruction)) mark(id.computation, operand);
}

void DeadCode::enter_element(InstructionId id, std::uint32_t element) {
  const Computation& computation = program_[id.computation];
  switch (in(id).opcode) {
    case Opcode::kTuple:
      mark(id.computation, computation.operands(id.instruction)[element]);
      break;
    case Opcode::kParameter:
      open_.push_back({loop_of_.at(id.computation), element});
      break;
    case Opcode::kWhile: {
      const ComputationId body = body_of(program_, id);
      const Operand root = program_[body].root();
      open_.push_back({{body, root.instruction}, element});
      open_.push_back(
          {{id.computation, computation.operands(id.instruction)[0].instruction}, element});
      break;
    }
    case Opcode::kFusion: {
      const Computation& fused = program_[computation.called(id.instruction)[0]];
      for (const std::uint32_t number : operands_behind(fused, element))
        mark(id.computation, computation.operands(id.instruction)[number]);
      break;
    }
    default:
      break;
  }
}

/// Leaves only the kept elements of a flat tuple, and has its readers read them where they now are.
void DeadCode::shrink(ProgramEditor& editor, ComputationId id, Handle tuple,
                      const std::vector<char>& kept) const {
  ComputationEditor& computation = editor.edit(id);
  const Shape before = computation[tuple].instruction.shape;
  std::vector<Shape> shapes;
  std::vector<Reference> operands;
  std::vector<std::optional<ShapeNodeIndex>> nodes(before.node_count());
  nodes[0] = 0;
  const bool is_tuple = computation[tuple].instruction.opcode == Opcode::kTuple;
  for (std::uint32_t k = 0; k < kept.size(); ++k) {
    if (!kept[k]) continue;
    shapes.push_back(before.element(k));
    nodes[before.element_node(k)] = static_cast<ShapeNodeIndex>(shapes.size());
    if (is_tuple) operands.push_back(computation[tuple].operands[k]);
  }
  computation[tuple].instruction.shape = make_tuple_shape(shapes, *editor.storage());
  if (is_tuple) computation[tuple].operands = std::move(operands);
  computation.renumber(tuple, nodes);
}

/// The number of the counter's element, which backend_config names, when others before it go.
void move_counter(ProgramEditor& editor, ComputationEditor::Node& loop,
                  const std::vector<char>& kept) {
  for (Attribute& attribute : loop.attributes) {
    if (attribute.name != "backend_config") continue;
    const std::string_view number =
        json_value(json_value(attribute.value, "known_induction_variable"), "tuple_index");
    const auto index = to_integer(number);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= kept.size()) continue;
    const auto now = std::count(kept.begin(), kept.begin() + *index, 1);
    std::string config(attribute.value);
    config.replace(static_cast<std::size_t>(number.data() - attribute.value.data()), number.size(),
                   std::to_string(now));
    attribute.value = editor.text(std::move(config));
  }
}

/// What a loop begins with and what its body ends with: first of all, since one loop begins with
/// what another one ended with.
void DeadCode::shorten_tuples(ProgramEditor& editor, InstructionId id,
                              const std::vector<char>& kept) const {
  if (in(id).opcode != Opcode::kWhile || std::ranges::find(kept, 0) == kept.end()) return;
  const ComputationId body = body_of(program_, id);
  const Operand begins = program_[id.computation].operands(id.instruction)[0];
  shrink(editor, id.computation, begins.instruction.index, kept);
  shrink(editor, body, program_[body].root().instruction.index, kept);
}

void DeadCode::shrink_loop(ProgramEditor& editor, InstructionId loop,
                           const std::vector<char>& kept) const {
  const ComputationId body = body_of(program_, loop);
  const ComputationId condition = program_[loop.computation].called(loop.instruction)[0];
  move_counter(editor, editor.edit(loop.computation)[loop.instruction.index], kept);
  shrink(editor, loop.computation, loop.instruction.index, kept);
  for (const ComputationId id : {body, condition})
    shrink(editor, id, program_[id].parameters()[0].index, kept);
}

void DeadCode::erase_dead(ProgramEditor& editor, ComputationId id) const {
  for (const InstructionIndex i : program_[id].instructions())
    if (!is_live({id, i}) && program_[id][i].opcode != Opcode::kParameter)
      editor.edit(id).erase(i.index);
}

void DeadCode::drop_elements(ProgramEditor& editor, InstructionId id,
                             const std::vector<char>& kept) const {
  if (std::ranges::find(kept, 0) == kept.end()) return;
  if (in(id).opcode == Opcode::kWhile) shrink_loop(editor, id, kept);
  if (in(id).opcode != Opcode::kFusion) return;
  for (auto k = static_cast<std::uint32_t>(kept.size()); k-- > 0;)
    if (!kept[k]) drop_fusion_output(editor, id.computation, id.instruction.index, k);
}

}  // namespace

Program drop_dead(const Program& program) { return DeadCode(program).run(); }

}  // namespace spillway
