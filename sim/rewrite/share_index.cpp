#include "sim/rewrite/share_index.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "model/program/loop_scalar.h"
#include "sim/rewrite/fusion_parts.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

/// sign * parameter + offset.
struct Affine {
  std::int64_t sign = 0;  ///< 0 for a constant
  std::int64_t offset = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// What a scalar integer is of one parameter; empty for anything else.
std::optional<Affine> affine_of(const Computation& fused, Operand value, std::uint32_t parameter) {
  const Operand at = behind_renamings(fused, value);
  const Instruction& in = fused[at.instruction];
  if (in.shape.is_tuple() || in.shape.elements() != 1) return std::nullopt;
  if (in.opcode == Opcode::kParameter)
    return parameter_number(in) == parameter ? std::optional(Affine{1, 0}) : std::nullopt;
  if (in.opcode == Opcode::kConstant) {
    const auto literal = to_integer(in.literal);
    return literal ? std::optional(Affine{0, *literal}) : std::nullopt;
  }
  if (in.opcode != Opcode::kAdd && in.opcode != Opcode::kSubtract) return std::nullopt;
  const auto operands = fused.operands(at.instruction);
  const auto a = affine_of(fused, operands[0], parameter);
  auto b = affine_of(fused, operands[1], parameter);
  if (!a || !b || (a->sign != 0 && b->sign != 0)) return std::nullopt;
  if (in.opcode == Opcode::kSubtract) *b = {-b->sign, -b->offset};
  return Affine{a->sign + b->sign, a->offset + b->offset};
}

/// Sums and differences within a fusion that come to this.
std::vector<InstructionIndex> find_affine(const Computation& fused, std::uint32_t parameter,
                                          const Affine& wanted) {
  std::vector<InstructionIndex> found;
  for (const InstructionIndex i : fused.instructions()) {
    const Opcode opcode = fused[i].opcode;
    if ((opcode == Opcode::kAdd || opcode == Opcode::kSubtract) &&
        affine_of(fused, {i, 0}, parameter) == wanted)
      found.push_back(i);
  }
  return found;
}

class IndexSharer {
 public:
  IndexSharer(ProgramEditor& program, ComputationId body, Handle index)
      : program_(program), body_(program.edit(body)), index_(index) {}

  void run() {
    const Node& index = body_[index_];
    if (index.instruction.opcode != Opcode::kFusion || index.operands.size() != 1) return;
    counter_ = index.operands[0];
    const Computation& fused = *program_.computation(index.called[0]);
    const auto affine = affine_of(fused, fused.root(), 0);
    if (!affine || affine->sign == 0) return;
    affine_ = *affine;
    for (const Handle user : body_.users(counter_.handle)) {
      if (user == index_) continue;
      const auto operand = std::ranges::find(body_[user].operands, counter_);
      if (operand == body_[user].operands.end()) continue;
      const auto number = static_cast<std::uint32_t>(operand - body_[user].operands.begin());
      if (body_[user].instruction.opcode == Opcode::kFusion)
        share_with_fusion(user, number);
      else if (body_[user].instruction.opcode == Opcode::kAsyncStart)
        share_with_start(user, number);
    }
  }

 private:
  std::optional<FusionPart> take_index(const Computation& fused, std::uint32_t parameter);
  std::vector<Reference> operands_of(const FusionPart& part,
                                     const std::vector<Reference>& before) const;
  void share_with_fusion(Handle user, std::uint32_t operand);
  void share_with_start(Handle start, std::uint32_t operand);
  void stand_behind_index(Handle user);

  ProgramEditor& program_;
  ComputationEditor& body_;
  const Handle index_;
  Reference counter_;
  Affine affine_;
};

/// A fusion that takes the index as its last parameter; empty where it does not work it out.
std::optional<FusionPart> IndexSharer::take_index(const Computation& fused,
                                                  std::uint32_t parameter) {
  std::vector<InstructionIndex> same = find_affine(fused, parameter, affine_);
  if (same.empty() || !same_shape(fused[same[0]].shape, body_.shape_of({index_, 0})))
    return std::nullopt;
  return cut_fusion(fused, fused.root(), {Cut{std::move(same), body_.shape_of({index_, 0})}},
                    fused.name(), program_.storage());
}

std::vector<Reference> IndexSharer::operands_of(const FusionPart& part,
                                                const std::vector<Reference>& before) const {
  std::vector<Reference> operands;
  for (const std::uint32_t number : part.parameters) operands.push_back(before[number]);
  operands.push_back({index_, 0});
  return operands;
}

void IndexSharer::stand_behind_index(Handle user) {
  if (body_.place(index_) > body_.place(user)) body_.move_before(index_, user);
}

void IndexSharer::share_with_fusion(Handle user, std::uint32_t operand) {
  const auto part = take_index(*program_.computation(body_[user].called[0]), operand);
  if (!part) return;
  body_[user].operands = operands_of(*part, body_[user].operands);
  body_[user].called[0] = program_.add(part->computation);
  stand_behind_index(user);
}

/// What the start wraps is a fusion of all that the start takes, in order.
void IndexSharer::share_with_start(Handle start, std::uint32_t operand) {
  const auto wrapped = program_.computation(body_[start].called[0]);
  const InstructionIndex root = wrapped->root().instruction;
  if ((*wrapped)[root].opcode != Opcode::kFusion ||
      wrapped->operands(root).size() != body_[start].operands.size())
    return;
  const auto arguments = wrapped->operands(root);
  for (std::uint32_t k = 0; k < arguments.size(); ++k)
    if (find_parameter(*wrapped, arguments[k]) != k) return;
  const auto part = take_index(*program_.computation(wrapped->called(root)[0]), operand);
  if (!part) return;
  RewriteStorage& storage = *program_.storage();
  body_[start].operands = operands_of(*part, body_[start].operands);
  ComputationEditor around;
  around.keep_alive(*wrapped);
  Node fusion = make_node((*wrapped)[root].name, Opcode::kFusion, (*wrapped)[root].shape);
  fusion.attributes.assign(wrapped->attributes(root).begin(), wrapped->attributes(root).end());
  fusion.called = {program_.add(part->computation)};
  std::vector<Shape> shapes;
  for (const Reference& argument : body_[start].operands) {
    const auto number = static_cast<std::uint32_t>(shapes.size());
    shapes.push_back(body_.shape_of(argument));
    fusion.operands.push_back(
        {around.add(make_parameter(program_.text("param_" + std::to_string(number)), number,
                                   shapes.back(), storage)),
         0});
  }
  around.set_root({around.add(std::move(fusion)), 0});
  body_[start].called[0] = program_.add(around.finish(wrapped->name(), program_.storage()));
  const Shape before = body_[start].instruction.shape;
  std::vector<Shape> elements = {make_tuple_shape(shapes, storage)};
  for (std::uint32_t k = 1; k < before.tuple_size(); ++k) elements.push_back(before.element(k));
  body_[start].instruction.shape = make_tuple_shape(elements, storage);
  stand_behind_index(start);
}

}  // namespace

void share_index(ProgramEditor& program, ComputationId body, Handle index) {
  IndexSharer(program, body, index).run();
}

}  // namespace spillway
