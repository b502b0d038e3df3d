#include "sim/rewrite/form_fusions.h"

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

/// The instructions that a value within a fusion is computed from, itself included.
std::vector<bool> computed_from(const Computation& fused, Operand value) {
  std::vector<bool> needed(fused.size(), false);
  needed[value.instruction.index] = true;
  for (std::size_t k = fused.size(); k-- > 0;)
    if (needed[k])
      for (const Operand& operand : fused.operands(InstructionIndex(k)))
        needed[operand.instruction.index] = true;
  return needed;
}

void become_loop(Node& node) {
  std::erase_if(node.attributes, [](const Attribute& attribute) {
    return attribute.name == "kind" || attribute.name == "backend_config";
  });
  node.attributes.push_back({"kind", "kLoop"});
}

class FusionFormer {
 public:
  FusionFormer(const Program& program, InstructionId loop)
      : program_(program),
        loop_(loop),
        id_(body_of(program, loop)),
        body_(program[id_]),
        out_(program) {}

  Program split_siblings() {
    for (const InstructionIndex i : body_.instructions())
      if (has_attribute(body_, i, "kind", "kLoop") || has_attribute(body_, i, "kind", "kInput"))
        split(i);
    return finish();
  }

  Program absorb_slices() {
    for (const InstructionIndex i : body_.instructions())
      if (const auto sources = sliced_from(i); !sources.empty()) absorb(i, sources);
    return finish();
  }

  Program share_sums() {
    for (const InstructionIndex i : body_.instructions())
      if (is_triton_fusion(body_, i) && !is_triton_product(program_, body_, i) &&
          body_[i].shape.is_array())
        share(i);
    return finish();
  }

 private:
  Program finish() {
    if (changed_) {
      out_.edit(id_).erase_all_unread();
      out_.edit(id_).sort_by_operands();
    }
    return out_.finish();
  }

  std::vector<std::uint32_t> group(InstructionIndex fusion) const;
  bool joins(InstructionIndex fusion, std::uint32_t parameter) const;
  void split(InstructionIndex fusion);
  void share(InstructionIndex norm);
  std::vector<Operand> sliced_from(InstructionIndex slice) const;
  void absorb(InstructionIndex slice, const std::vector<Operand>& sources);
  bool sums_only(InstructionIndex fusion, Operand output,
                 const std::vector<Operand>& sources) const;
  void sum_and_slice(InstructionIndex fusion, std::uint32_t output, InstructionIndex inner_slice,
                     InstructionIndex slice);
  bool is_independent(InstructionIndex fusion, std::uint32_t output, InstructionIndex other);
  Reference take_out(InstructionIndex fusion, std::uint32_t output);
  std::optional<Reference> known_sum(InstructionIndex norm, InstructionIndex reduce);
  Reference add_part(const Node& like, const FusionPart& part, const std::string& name,
                     const std::vector<Reference>& handed_in);

  const Program& program_;
  const InstructionId loop_;
  const ComputationId id_;
  const Computation& body_;
  ProgramEditor out_;
  std::optional<ValueKeys> keys_;  ///< only where they are needed
  bool changed_ = false;
};

/// Whether XLA would fuse two readers of what a parameter of a fusion stands for.
bool FusionFormer::joins(InstructionIndex fusion, std::uint32_t parameter) const {
  const Operand operand = behind_renamings(body_, body_.operands(fusion)[parameter]);
  return body_.shape_of(operand).elements() != 1 &&
         !is_triton_product(program_, body_, operand.instruction);
}

/// For each result of a fusion the first one that it is fused with.
std::vector<std::uint32_t> FusionFormer::group(InstructionIndex fusion) const {
  const Computation& fused = program_[body_.called(fusion)[0]];
  const auto outputs = fused.operands(fused.root().instruction);
  std::vector<std::vector<bool>> from;
  for (const Operand& output : outputs) from.push_back(computed_from(fused, output));
  std::vector<std::uint32_t> groups;
  for (std::uint32_t k = 0; k < outputs.size(); ++k) {
    groups.push_back(k);
    for (std::uint32_t other = 0; other < k; ++other) {
      bool together =
          from[k][outputs[other].instruction.index] || from[other][outputs[k].instruction.index];
      for (std::uint32_t p = 0; p < fused.parameters().size() && !together; ++p) {
        const std::size_t at = fused.parameters()[p].index;
        together = from[k][at] && from[other][at] && joins(fusion, p);
      }
      if (!together) continue;
      const std::uint32_t old = groups[k], kept = groups[other];
      for (std::uint32_t& one : groups)
        if (one == old || one == kept) one = std::min(old, kept);
    }
  }
  return groups;
}

/// Takes a fusion of several results apart.
void FusionFormer::split(InstructionIndex fusion) {
  if (body_[fusion].opcode != Opcode::kFusion || !body_[fusion].shape.is_flat_tuple()) return;
  const auto operands = body_.operands(fusion);
  const auto is_product = [&](const Operand& operand) {
    return is_triton_product(program_, body_, behind_renamings(body_, operand).instruction);
  };
  if (std::ranges::none_of(operands, is_product)) return;
  const auto shared = program_.computations[body_.called(fusion)[0]];
  const Computation& fused = *shared;
  if (fused[fused.root().instruction].opcode != Opcode::kTuple) return;
  const std::vector<std::uint32_t> groups = group(fusion);
  if (std::ranges::all_of(groups, [](std::uint32_t first) { return first == 0; })) return;
  ComputationEditor& body = out_.edit(id_);
  if (body.is_read({fusion.index, 0})) return;
  const auto outputs = fused.operands(fused.root().instruction);
  const Shape shape = body_[fusion].shape;
  const Node like = body[fusion.index];
  for (std::uint32_t first = 0; first < groups.size(); ++first) {
    if (groups[first] != first) continue;
    std::vector<std::uint32_t> members;
    for (std::uint32_t k = first; k < groups.size(); ++k)
      if (groups[k] == first) members.push_back(k);
    const std::string name = std::string(body_[fusion].name) + ".part" + std::to_string(first);
    ComputationEditor inner(fused);
    if (members.size() == 1) {
      inner.set_root({outputs[first].instruction.index, outputs[first].node});
    } else {
      Node& tuple = inner[fused.root().instruction.index];
      std::vector<Shape> shapes;
      tuple.operands.clear();
      for (const std::uint32_t k : members) {
        tuple.operands.push_back({outputs[k].instruction.index, outputs[k].node});
        shapes.push_back(fused.shape_of(outputs[k]));
      }
      tuple.instruction.shape = make_tuple_shape(shapes, *out_.storage());
    }
    const auto rest = inner.finish(out_.text("fused." + name), out_.storage());
    const FusionPart part = cut_fusion(*rest, rest->root(), {}, "fused." + name, out_.storage());
    const Reference made = add_part(like, part, name, {});
    for (std::uint32_t n = 0; n < members.size(); ++n) {
      const Shape now = body[made.handle].instruction.shape;
      body.redirect({fusion.index, shape.element_node(members[n])},
                    {made.handle, now.is_tuple() ? now.element_node(n) : 0});
    }
  }
  body.erase(fusion.index);
}

/// A part of a fusion as an instruction, behind all others.
Reference FusionFormer::add_part(const Node& like, const FusionPart& part, const std::string& name,
                                 const std::vector<Reference>& handed_in) {
  Node node = like;
  node.instruction.name = out_.text(name);
  node.instruction.shape = part.computation->shape_of(part.computation->root());
  node.operands.clear();
  for (const std::uint32_t number : part.parameters) node.operands.push_back(like.operands[number]);
  node.operands.insert(node.operands.end(), handed_in.begin(), handed_in.end());
  node.called = {out_.add(part.computation)};
  changed_ = true;
  return {out_.edit(id_).add(std::move(node)), 0};
}

/// Whether a result of a fusion needs nothing that hangs on an instruction.
bool FusionFormer::is_independent(InstructionIndex fusion, std::uint32_t output,
                                  InstructionIndex other) {
  const Computation& fused = program_[body_.called(fusion)[0]];
  const std::vector<bool> from =
      computed_from(fused, fused.operands(fused.root().instruction)[output]);
  for (std::uint32_t p = 0; p < fused.parameters().size(); ++p) {
    const Handle operand = body_.operands(fusion)[p].instruction.index;
    if (from[fused.parameters()[p].index] &&
        (operand == other.index || out_.edit(id_).depends_on(operand, other.index)))
      return false;
  }
  return true;
}

/// One result of a fusion of several as a fusion of its own, which the others do without.
Reference FusionFormer::take_out(InstructionIndex fusion, std::uint32_t output) {
  ComputationEditor& body = out_.edit(id_);
  const Computation& fused = program_[body_.called(fusion)[0]];
  const Node like = body[fusion.index];
  const std::string name = std::string(like.instruction.name) + ".part" + std::to_string(output);
  const FusionPart part = cut_fusion(fused, fused.operands(fused.root().instruction)[output], {},
                                     "fused." + name, out_.storage());
  const Reference made = add_part(like, part, name, {});
  body.redirect({fusion.index, like.instruction.shape.element_node(output)}, made);
  drop_fusion_output(out_, id_, fusion.index, output);
  return made;
}

/// What the body computes as a value of its own that the norm sums by itself. XLA does not fuse
/// the sum with what hangs on the norm.
std::optional<Reference> FusionFormer::known_sum(InstructionIndex norm, InstructionIndex reduce) {
  if (!keys_) keys_.emplace(program_, loop_);
  const ValueKey key = keys_->within(norm, {reduce, 0});
  const Shape sum = program_[body_.called(norm)[0]][reduce].shape;
  for (const InstructionIndex i : body_.instructions())
    for (ShapeNodeIndex node = 0; node < body_[i].shape.node_count(); ++node) {
      const Shape shape = body_[i].shape.at(node);
      if (!shape.is_array() || shape.bytes() != sum.bytes() || (*keys_)[Operand{i, node}] != key)
        continue;
      const ComputationEditor& body = out_.edit(id_);  // most often nothing has the key
      if (body[i.index].erased || body[i.index].instruction.shape != body_[i].shape) continue;
      if (!body.depends_on(i.index, norm.index)) return Reference{i.index, node};
      if (!has_attribute(body_, i, "kind", "kInput") || !body_[i].shape.is_flat_tuple() ||
          body.is_read({i.index, 0}))
        continue;
      const std::uint32_t output = body_[i].shape.path(node)[0];
      if (is_independent(i, output, norm)) return take_out(i, output);
    }
  return std::nullopt;
}

/// Makes a norm by Triton a loop that reads its sum, where the body has that anyway.
void FusionFormer::share(InstructionIndex norm) {
  const Computation& fused = program_[body_.called(norm)[0]];
  std::vector<InstructionIndex> sums;
  for (const InstructionIndex i : fused.instructions())
    if (fused[i].opcode == Opcode::kReduce) sums.push_back(i);
  if (sums.size() != 1) return;
  const auto sum = known_sum(norm, sums[0]);
  if (!sum) return;
  // What is made of the sum before it is spread over the rows again.
  InstructionIndex statistic = sums[0];
  while (fused.uses(statistic).size() == 1) {
    const InstructionIndex user = fused.uses(statistic)[0].user;
    if (fused[user].shape.elements() != fused[statistic].shape.elements()) break;
    statistic = user;
  }
  if (fused.root().instruction == statistic) return;
  ComputationEditor& body = out_.edit(id_);
  const std::string name(body_[norm].name);
  Node like = body[norm.index];
  become_loop(like);
  Reference known = *sum;
  if (statistic != sums[0]) {
    const FusionPart part = cut_fusion(fused, {statistic, 0}, {{{sums[0]}, body.shape_of(*sum)}},
                                       "statistic." + name, out_.storage());
    known = add_part(like, part, name + ".statistic", {known});
  }
  const FusionPart part = cut_fusion(fused, fused.root(), {{{statistic}, body.shape_of(known)}},
                                     "scaled." + name, out_.storage());
  const Reference made = add_part(like, part, name + ".scaled", {known});
  body.redirect({norm.index, 0}, made);
  body.erase(norm.index);
}

/// What a slice within HBM is taken from: the stack, and what says where; empty for anything else.
std::vector<Operand> FusionFormer::sliced_from(InstructionIndex i) const {
  if (!body_[i].shape.is_array()) return {};
  InstructionIndex reader = i;
  const Computation* wrapped = nullptr;
  if (body_[i].opcode == Opcode::kAsyncDone) {
    reader = body_.operands(i)[0].instruction;
    if (body_[reader].opcode != Opcode::kAsyncStart) return {};
    wrapped = &program_[body_.called(reader)[0]];
    const InstructionIndex root = wrapped->root().instruction;
    if ((*wrapped)[root].opcode == Opcode::kFusion) wrapped = &program_[wrapped->called(root)[0]];
  } else if (has_attribute(body_, i, "kind", "kLoop")) {
    wrapped = &program_[body_.called(i)[0]];
  }
  if (wrapped == nullptr) return {};
  const InstructionIndex root = behind_renamings(*wrapped, wrapped->root()).instruction;
  const auto operands = body_.operands(reader);
  if ((*wrapped)[root].opcode != Opcode::kDynamicSlice || operands.empty() ||
      body_.shape_of(operands[0]).space() != body_[i].shape.space())
    return {};
  return {operands.begin(), operands.end()};
}

/// Whether a result of a fusion is a sum over what is sliced from these alone.
bool FusionFormer::sums_only(InstructionIndex fusion, Operand output,
                             const std::vector<Operand>& sources) const {
  const Computation& fused = program_[body_.called(fusion)[0]];
  if (fused[output.instruction].opcode != Opcode::kReduce) return false;
  const std::vector<bool> from = computed_from(fused, output);
  for (std::uint32_t p = 0; p < fused.parameters().size(); ++p)
    if (from[fused.parameters()[p].index] &&
        std::ranges::find(sources, body_.operands(fusion)[p]) == sources.end())
      return false;
  return true;
}

/// A reduction that reads the slice anyway hands it out as well.
void FusionFormer::absorb(InstructionIndex slice, const std::vector<Operand>& sources) {
  if (!keys_) keys_.emplace(program_, loop_);
  for (const InstructionIndex i : body_.instructions()) {
    if (body_[i].opcode != Opcode::kFusion || !has_attribute(body_, i, "kind", "kInput")) continue;
    const Computation& fused = program_[body_.called(i)[0]];
    std::vector<Operand> outputs = {fused.root()};
    if (fused[fused.root().instruction].opcode == Opcode::kTuple)
      outputs.assign(fused.operands(fused.root().instruction).begin(),
                     fused.operands(fused.root().instruction).end());
    for (std::uint32_t k = 0; k < outputs.size(); ++k) {
      if (!sums_only(i, outputs[k], sources)) continue;
      for (const InstructionIndex inner : fused.instructions())
        if (fused[inner].opcode == Opcode::kDynamicSlice &&
            computed_from(fused, outputs[k])[inner.index] &&
            keys_->within(i, {inner, 0}) == (*keys_)[Operand{slice, 0}] &&
            !out_.edit(id_).depends_on(i.index, slice.index))
          return sum_and_slice(i, k, inner, slice);
    }
  }
}

void FusionFormer::sum_and_slice(InstructionIndex fusion, std::uint32_t output,
                                 InstructionIndex inner_slice, InstructionIndex slice) {
  ComputationEditor& body = out_.edit(id_);
  const Node like = body[fusion.index];
  const bool several = like.instruction.shape.is_tuple();
  const Computation& fused = program_[body_.called(fusion)[0]];
  const Operand sum = several ? fused.operands(fused.root().instruction)[output] : fused.root();
  const std::string name = std::string(like.instruction.name) + ".sliced";
  ComputationEditor inner(fused);
  Node tuple =
      make_node("slice_and_sum", Opcode::kTuple,
                make_tuple_shape({fused[inner_slice].shape, fused.shape_of(sum)}, *out_.storage()));
  tuple.operands = {{inner_slice.index, 0}, {sum.instruction.index, sum.node}};
  inner.set_root({inner.add(std::move(tuple)), 0});
  const auto both = inner.finish(out_.text("fused." + name), out_.storage());
  const FusionPart part = cut_fusion(*both, both->root(), {}, "fused." + name, out_.storage());
  const Handle made = add_part(like, part, name, {}).handle;
  const Shape shape = body[made].instruction.shape;
  Reference sliced{made, shape.element_node(0)};
  const Shape wanted = body[slice.index].instruction.shape;
  if (!std::ranges::equal(body.shape_of(sliced).dims(), wanted.dims()))
    sliced = add_bitcast(out_, body, name, sliced, wanted);
  const ShapeNodeIndex old = several ? like.instruction.shape.element_node(output) : 0;
  body.redirect({fusion.index, old}, {made, shape.element_node(1)});
  if (several)
    drop_fusion_output(out_, id_, fusion.index, output);
  else
    body.erase(fusion.index);
  body.redirect({slice.index, 0}, sliced);
  body.erase(slice.index);
  if (body_[slice].opcode == Opcode::kAsyncDone)
    body.erase(body_.operands(slice)[0].instruction.index);
}

}  // namespace

Program form_fusions(const Program& program, InstructionId loop) {
  const Program split = FusionFormer(program, loop).split_siblings();
  const Program shared = FusionFormer(split, loop).share_sums();
  return FusionFormer(shared, loop).absorb_slices();
}

}  // namespace spillway
