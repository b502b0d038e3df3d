#include "sim/rewrite/copy_carries.h"

#include <algorithm>
#include <vector>

#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;

/// Whether something reads an element of the carry that is no copy, beyond handing it on.
bool is_read_in_place(const Computation& body, Operand element) {
  for (const Use& use : body.uses(element.instruction)) {
    const Operand read = body.operands(use.user)[use.operand_number];
    if (read.node == element.node && use.user != body.root().instruction &&
        body[use.user].opcode != Opcode::kCopy)
      return true;
  }
  return false;
}

/// One body and what it does with an element of its carry that is no counter.
class CarriedArray {
 public:
  CarriedArray(const Program& program, const Computation& body, Operand element,
               std::uint32_t number)
      : program_(program), body_(body), element_(element), number_(number) {}

  /// Whether XLA would order the body with a copy of it that is gone now.
  bool has_lost_copy() const {
    const Shape shape = body_.shape_of(element_);
    if (!shape.is_array() || shape.elements() == 1 || is_host(shape.space())) return false;
    const InstructionIndex root = body_.root().instruction;
    if (body_[root].opcode != Opcode::kTuple) return false;
    const Operand next = behind_renamings(body_, body_.operands(root)[number_]);
    if (!makes_anew(next.instruction)) return false;
    std::vector<InstructionIndex> readers;
    if (!find_readers(element_, readers)) return false;
    const std::vector<bool> before = read_by(next.instruction);
    return std::ranges::any_of(readers, [&](InstructionIndex reader) {
      return reader != next.instruction && !before[reader.index];
    });
  }

 private:
  bool makes_anew(InstructionIndex i) const;
  bool find_readers(Operand value, std::vector<InstructionIndex>& readers) const;
  std::vector<bool> read_by(InstructionIndex end) const;

  const Program& program_;
  const Computation& body_;
  const Operand element_;
  const std::uint32_t number_;
};

/// Whether a fusion writes into buffers of its own.
bool CarriedArray::makes_anew(InstructionIndex i) const {
  if (body_[i].opcode != Opcode::kFusion) return false;
  const Computation& fused = program_[body_.called(i)[0]];
  for (const InstructionIndex inner : fused.instructions())
    if (fused[inner].opcode == Opcode::kDynamicUpdateSlice) return false;
  return true;
}

/// All who read a value, behind renamings; false where one is anything but such a fusion, a copy
/// among them.
bool CarriedArray::find_readers(Operand value, std::vector<InstructionIndex>& readers) const {
  for (const Use& use : body_.uses(value.instruction)) {
    if (body_.operands(use.user)[use.operand_number] != value) continue;
    if (is_renaming(body_[use.user].opcode)) {
      if (!find_readers({use.user, 0}, readers)) return false;
    } else if (makes_anew(use.user)) {
      readers.push_back(use.user);
    } else {
      return false;
    }
  }
  return true;
}

/// What an instruction is computed from, itself included.
std::vector<bool> CarriedArray::read_by(InstructionIndex end) const {
  std::vector<bool> read(body_.size(), false);
  read[end.index] = true;
  for (std::size_t k = body_.size(); k-- > 0;)
    if (read[k])
      for (const Operand& operand : body_.operands(InstructionIndex(k)))
        read[operand.instruction.index] = true;
  return read;
}

void copy_element(ProgramEditor& editor, ComputationId id, Operand element,
                  const std::string& name) {
  ComputationEditor& edited = editor.edit(id);
  const Reference carried{element.instruction.index, element.node};
  ComputationEditor::Node node =
      make_node(editor.text(name), Opcode::kCopy, edited.shape_of(carried));
  node.operands = {carried};
  const Handle copy = edited.add(std::move(node));
  edited.move_after(copy, carried.handle);
  edited.redirect(carried, {copy, 0}, copy);
}

}  // namespace

Program copy_carries(const Program& program) {
  ProgramEditor editor(program);
  const Multiplicity reached = multiplicity(program, is_control_flow);
  for (const ComputationId caller : ids(program.computations)) {
    if (reached.runs[caller] == 0) continue;
    for (const InstructionIndex i : program[caller].instructions()) {
      if (program[caller][i].opcode != Opcode::kWhile) continue;
      const InstructionId loop{caller, i};
      const ComputationId id = body_of(program, loop);
      const Computation& body = program[id];
      const InstructionIndex parameter = body.parameters()[0];
      const std::string name(body.name());
      const auto counter = find_counter(program, loop);
      if (counter && is_read_in_place(body, {parameter, counter->node}))
        copy_element(editor, id, {parameter, counter->node}, "copy.counter." + name);
      const Shape carry = body[parameter].shape;
      if (!carry.is_flat_tuple()) continue;
      for (std::uint32_t k = 0; k < carry.tuple_size(); ++k) {
        const Operand element{parameter, carry.element_node(k)};
        if (CarriedArray(program, body, element, k).has_lost_copy())
          copy_element(editor, id, element, "copy.carry." + std::to_string(k) + "." + name);
      }
    }
  }
  return editor.finish();
}

}  // namespace spillway
