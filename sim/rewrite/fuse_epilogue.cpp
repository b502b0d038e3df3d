#include "sim/rewrite/fuse_epilogue.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/program/call_graph.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/fusion_parts.h"
#include "sim/rewrite/program_editor.h"
#include "sim/rewrite/triton.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Node = ComputationEditor::Node;
using Reference = ComputationEditor::Reference;

/// A fusion that does nothing with a product but add it to another value.
struct Addition {
  InstructionIndex reader;
  std::uint32_t operand = 0;  ///< the product's number among its operands
  InstructionIndex add;       ///< within the fusion
  Operand other;              ///< within the fusion: what it is added to
};

/// The one add that a fusion's parameter goes into, behind renamings; empty where it goes into
/// anything else.
std::optional<Addition> find_addition(const Computation& fused, std::uint32_t parameter) {
  std::vector<InstructionIndex> renamed = {fused.parameters()[parameter]};
  std::optional<Addition> found;
  for (std::size_t n = 0; n < renamed.size(); ++n) {
    if (fused.root().instruction == renamed[n]) return std::nullopt;
    for (const Use& use : fused.uses(renamed[n])) {
      if (fused[use.user].opcode == Opcode::kBitcast) {
        renamed.push_back(use.user);
        continue;
      }
      if (fused[use.user].opcode != Opcode::kAdd || found) return std::nullopt;
      found = Addition{{}, parameter, use.user, fused.operands(use.user)[1 - use.operand_number]};
    }
  }
  if (!found) return std::nullopt;
  const Shape sum = fused[found->add].shape;
  for (const Operand& operand : fused.operands(found->add))
    if (!same_shape(fused.shape_of(operand), sum)) return std::nullopt;
  return found;
}

class EpilogueFuser {
 public:
  EpilogueFuser(const Program& program, InstructionId loop)
      : program_(program), loop_(loop), id_(body_of(program, loop)), body_(program[id_]) {}

  /// The program with one product more that adds; empty where there is none.
  std::optional<Program> run() {
    for (const InstructionIndex i : body_.instructions()) {
      if (!is_product(i)) continue;
      const auto additions = additions_of(i);
      if (additions.empty()) continue;
      if (!add_the_same(additions)) continue;
      out_.emplace(program_);
      const auto other = added_value(i, additions);
      if (other) return fuse(i, *other, additions);
    }
    return std::nullopt;
  }

 private:
  bool is_product(InstructionIndex i) const;
  std::vector<Addition> additions_of(InstructionIndex product) const;
  bool add_the_same(const std::vector<Addition>& additions);
  std::optional<Reference> added_value(InstructionIndex product,
                                       const std::vector<Addition>& additions);
  std::optional<Reference> sliced_value(InstructionIndex product, const Addition& addition);
  Program fuse(InstructionIndex product, Reference other, const std::vector<Addition>& additions);
  Reference renamed(Reference value, Shape shape, const std::string& name);
  void append_add(Handle product, Reference other);
  void hand_in(const Addition& addition, Reference sum);

  const Program& program_;
  const InstructionId loop_;
  const ComputationId id_;
  const Computation& body_;
  std::optional<ValueKeys> keys_;  ///< only where they are needed
  std::optional<ProgramEditor> out_;
};

bool EpilogueFuser::is_product(InstructionIndex i) const {
  return body_[i].shape.is_array() && is_triton_product(program_, body_, i);
}

/// What is added to the product, by each who reads it; empty where somebody does anything else.
std::vector<Addition> EpilogueFuser::additions_of(InstructionIndex product) const {
  std::vector<Addition> additions;
  std::vector<InstructionIndex> renamed = {product};
  for (std::size_t n = 0; n < renamed.size(); ++n) {
    if (body_.root().instruction == renamed[n]) return {};
    for (const Use& use : body_.uses(renamed[n])) {
      if (body_[use.user].opcode == Opcode::kBitcast) {
        renamed.push_back(use.user);
        continue;
      }
      if (body_[use.user].opcode != Opcode::kFusion || is_product(use.user)) return {};
      auto addition = find_addition(program_[body_.called(use.user)[0]], use.operand_number);
      if (!addition) return {};
      addition->reader = use.user;
      for (const Addition& before : additions)
        if (before.reader == use.user) return {};  // added to itself, or twice
      additions.push_back(*addition);
    }
  }
  return additions;
}

/// Whether they all add the same value to the product.
bool EpilogueFuser::add_the_same(const std::vector<Addition>& additions) {
  if (!keys_) keys_.emplace(program_, loop_);
  const ValueKey key = keys_->within(additions[0].reader, additions[0].other);
  return std::ranges::all_of(additions, [&](const Addition& addition) {
    return keys_->within(addition.reader, addition.other) == key;
  });
}

/// The value that all of them add to the product, in the body.
std::optional<Reference> EpilogueFuser::added_value(InstructionIndex product,
                                                    const std::vector<Addition>& additions) {
  const ValueKey key = keys_->within(additions[0].reader, additions[0].other);
  const Shape sum = body_[product].shape;
  for (const InstructionIndex i : body_.instructions()) {
    if (is_async_start(body_[i].opcode)) continue;
    for (ShapeNodeIndex node = 0; node < body_[i].shape.node_count(); ++node) {
      const Shape shape = body_[i].shape.at(node);
      if (shape.is_array() && shape.type() == sum.type() && shape.space() == sum.space() &&
          shape.bytes() == sum.bytes() && (*keys_)[Operand{i, node}] == key &&
          !out_->edit(id_).depends_on(i.index, product.index))
        return Reference{i.index, node};
    }
  }
  return sliced_value(product, additions[0]);
}

/// The value as an instruction of its own, where a reader slices it from a stack.
std::optional<Reference> EpilogueFuser::sliced_value(InstructionIndex product,
                                                     const Addition& addition) {
  ComputationEditor& body = out_->edit(id_);
  const Node& reader = body[addition.reader.index];
  const Computation& fused = program_[reader.called[0]];
  const Operand slice = behind_renamings(fused, addition.other);
  if (fused[slice.instruction].opcode != Opcode::kDynamicSlice) return std::nullopt;
  const std::string name = std::string(body_[product].name) + ".slice";
  const FusionPart part = cut_fusion(fused, slice, {}, "fused." + name, out_->storage());
  Node node = make_node(out_->text(name), Opcode::kFusion,
                        part.computation->shape_of(part.computation->root()));
  for (const std::uint32_t number : part.parameters) {
    node.operands.push_back(reader.operands[number]);
    if (body.depends_on(reader.operands[number].handle, product.index)) return std::nullopt;
  }
  node.called = {out_->add(part.computation)};
  node.attributes = {{"kind", "kLoop"}};
  return Reference{body.add(std::move(node)), 0};
}

Program EpilogueFuser::fuse(InstructionIndex product, Reference other,
                            const std::vector<Addition>& additions) {
  append_add(product.index, other);
  for (const Addition& addition : additions) hand_in(addition, {product.index, 0});
  out_->edit(id_).erase_all_unread();
  out_->edit(id_).sort_by_operands();
  return out_->finish();
}

Reference EpilogueFuser::renamed(Reference value, Shape shape, const std::string& name) {
  ComputationEditor& body = out_->edit(id_);
  if (same_shape(body.shape_of(value), shape)) return value;
  return add_bitcast(*out_, body, name, value, shape);
}

/// Makes the product's kernel add `other` to what it computes.
void EpilogueFuser::append_add(Handle product, Reference other) {
  ComputationEditor& body = out_->edit(id_);
  const Shape shape = body[product].instruction.shape;
  const std::string name(body[product].instruction.name);
  const Computation& fused = program_[body[product].called[0]];
  ComputationEditor inner(fused);
  const Handle parameter = inner.add(make_parameter(
      "added", static_cast<std::uint32_t>(fused.parameters().size()), shape, *out_->storage()));
  Node add = make_node("sum", Opcode::kAdd, shape);
  add.operands = {{parameter, 0}, inner.root()};
  inner.set_root({inner.add(std::move(add)), 0});
  inner.move_to_top(parameter);
  const Reference operand = renamed(other, shape, name + ".added");
  Node& node = out_->edit(id_)[product];
  node.operands.push_back(operand);
  node.called[0] = out_->add(inner.finish(out_->text("summed." + name), out_->storage()));
}

/// Makes a fusion that added read the sum; what it only hands on it makes no longer.
void EpilogueFuser::hand_in(const Addition& addition, Reference sum) {
  ComputationEditor& body = out_->edit(id_);
  const Handle reader = addition.reader.index;
  const std::string name(body[reader].instruction.name);
  const Computation& fused = program_[body_.called(addition.reader)[0]];
  const FusionPart part = cut_fusion(fused, fused.root(), {{{addition.add}, body.shape_of(sum)}},
                                     "summed." + name, out_->storage());
  std::vector<Reference> operands;
  for (const std::uint32_t number : part.parameters)
    operands.push_back(body[reader].operands[number]);
  operands.push_back(sum);
  body[reader].operands = operands;
  body[reader].called[0] = out_->add(part.computation);
  drop_handed_on(*out_, id_, reader, sum);
}

}  // namespace

Program fuse_epilogues(const Program& program, InstructionId loop) {
  Program result = program;
  for (auto fused = EpilogueFuser(result, loop).run(); fused;
       fused = EpilogueFuser(result, loop).run())
    result = *std::move(fused);
  return result;
}

}  // namespace spillway
