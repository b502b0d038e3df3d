#include "sim/rewrite/merge_equal.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/program/call_graph.h"
#include "sim/rewrite/program_editor.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {
namespace {

using Reference = ComputationEditor::Reference;

/// What only names, groups or begins a value is not worth keeping instead of another.
bool makes_a_value(Opcode opcode) {
  return opcode != Opcode::kParameter && opcode != Opcode::kConstant &&
         opcode != Opcode::kBitcast && opcode != Opcode::kTuple && !is_async_start(opcode);
}

/// Products and calls of libraries are told by where they come from, whatever their form. So is
/// anything else that two fusions only arrange in two ways.
bool is_product(const Program& program, const Computation& body, InstructionIndex i) {
  if (body[i].opcode == Opcode::kCustomCall || body[i].opcode == Opcode::kDot) return true;
  if (body[i].opcode != Opcode::kFusion) return false;
  const Computation& fused = program[body.called(i)[0]];
  for (const InstructionIndex inner : fused.instructions())
    if (fused[inner].opcode == Opcode::kDot) return true;
  return false;
}

/// The same dimensions in another order.
bool is_rearranged(Shape a, Shape b) {
  return !std::ranges::equal(a.dims(), b.dims()) && std::ranges::is_permutation(a.dims(), b.dims());
}

/// The JAX operation that an instruction carries out, told by its path within the layer, its line
/// of the program and its result. XLA rearranges a product or a mask that it needs twice in two
/// ways, but jax.checkpoint repeats one operation: "…/body/layer/dot_general" of the forward loop
/// is "…/checkpoint/rematted_computation/layer/dot_general" of the backward loop.
struct Origin {
  std::string_view path, frame;
  bool rematted = false;
  bool is_product = false;
  Shape shape;
};

std::optional<Origin> origin_of(const Program& program, const Computation& body,
                                InstructionIndex i) {
  constexpr std::string_view kRematted = "/rematted_computation/";
  const bool product = is_product(program, body, i);
  if (!body[i].shape.is_array() || (!product && body[i].opcode != Opcode::kFusion))
    return std::nullopt;
  Origin origin;
  origin.is_product = product;
  origin.shape = body[i].shape;
  origin.path = metadata_field(body, i, "op_name");
  origin.frame = metadata_field(body, i, "stack_frame_id");
  if (origin.path.empty() || origin.frame.empty()) return std::nullopt;
  if (const std::size_t at = origin.path.find(kRematted); at != std::string_view::npos) {
    origin.path.remove_prefix(at + kRematted.size());
    origin.rematted = true;
  }
  return origin;
}

bool is_same_operation(const Origin& forward, const Origin& rematted) {
  return !forward.rematted && rematted.rematted && forward.frame == rematted.frame &&
         forward.shape.type() == rematted.shape.type() &&
         forward.shape.elements() == rematted.shape.elements() &&
         ((forward.is_product && rematted.is_product) ||
          is_rearranged(forward.shape, rematted.shape)) &&
         forward.path.size() > rematted.path.size() && forward.path.ends_with(rematted.path) &&
         forward.path[forward.path.size() - rematted.path.size() - 1] == '/';
}

class Merger {
 public:
  Merger(const Program& program, InstructionId loop,
         const std::function<bool(const Instruction&)>& added)
      : program_(program),
        loop_(loop),
        id_(body_of(program, loop)),
        body_(program[id_]),
        added_(added),
        editor_(program) {}

  Program run() {
    merge_by_key();
    merge_by_origin();
    if (changed_) editor_.edit(id_).sort_by_operands();
    return editor_.finish();
  }

 private:
  bool is_added(Operand value) const { return added_(body_[value.instruction]); }

  void merge_by_key() {
    const ValueKeys keys(program_, loop_);
    std::map<ValueKey, Operand> kept;
    const auto visit = [&](const auto& apply) {
      for (const InstructionIndex i : body_.instructions()) {
        if (!makes_a_value(body_[i].opcode)) continue;
        for (ShapeNodeIndex node = 0; node < body_[i].shape.node_count(); ++node)
          if (body_[i].shape.at(node).is_array()) apply(Operand{i, node});
      }
    };
    visit([&](Operand value) {
      const auto [found, fresh] = kept.try_emplace(keys[value], value);
      if (!fresh && is_added(found->second) && !is_added(value)) found->second = value;
    });
    visit([&](Operand value) {
      if (is_added(value)) replace(value, kept.at(keys[value]));
    });
  }

  /// One operation of each kind only: where a layer holds several alike, who is who is not known.
  void merge_by_origin() {
    std::vector<std::pair<Operand, Origin>> forward, rematted;
    for (const InstructionIndex i : body_.instructions()) {
      const Operand value{i, 0};
      const auto origin = origin_of(program_, body_, i);
      if (origin && is_added(value) && !origin->rematted) forward.push_back({value, *origin});
      if (origin && !is_added(value) && origin->rematted) rematted.push_back({value, *origin});
    }
    for (const auto& [value, origin] : forward) {
      std::optional<Operand> twin;
      int twins = 0, alike = 0;
      for (const auto& [other, other_origin] : rematted)
        if (is_same_operation(origin, other_origin)) twin = other, ++twins;
      for (const auto& [other, other_origin] : forward)
        alike += other_origin.path == origin.path && other_origin.frame == origin.frame &&
                 other_origin.shape.elements() == origin.shape.elements() &&
                 other_origin.is_product == origin.is_product;
      if (twins == 1 && alike == 1) replace(value, *twin);
    }
  }

  void replace(Operand value, Operand kept) {
    if (value == kept) return;
    ComputationEditor& edited = editor_.edit(id_);
    // Fusions of several results may need the one for the other.
    if (edited.depends_on(kept.instruction.index, value.instruction.index)) std::swap(kept, value);
    const Shape shape = body_.shape_of(value), other = body_.shape_of(kept);
    if (other.space() != shape.space() || other.bytes() != shape.bytes()) return;
    Reference to{kept.instruction.index, kept.node};
    if (!same_shape(other, shape))
      to = add_bitcast(editor_, edited, std::string(body_[value.instruction].name), to, shape);
    edited.redirect({value.instruction.index, value.node}, to);
    changed_ = true;
  }

  const Program& program_;
  const InstructionId loop_;
  const ComputationId id_;
  const Computation& body_;
  const std::function<bool(const Instruction&)>& added_;
  ProgramEditor editor_;
  bool changed_ = false;
};

}  // namespace

Program merge_equal(const Program& program, InstructionId loop,
                    const std::function<bool(const Instruction&)>& added) {
  return Merger(program, loop, added).run();
}

}  // namespace spillway
