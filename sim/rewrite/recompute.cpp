#include "sim/rewrite/recompute.h"

#include <algorithm>
#include <functional>
#include <set>

#include "model/diagnostics/slice_offsets.h"
#include "model/program/call_graph.h"
#include "model/program/loop_scalar.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/clone_called.h"
#include "sim/rewrite/drop_dead.h"
#include "sim/rewrite/form_fusions.h"
#include "sim/rewrite/fuse_epilogue.h"
#include "sim/rewrite/loop_carry.h"
#include "sim/rewrite/merge_equal.h"
#include "sim/rewrite/place_residuals.h"
#include "sim/rewrite/stack_access.h"

namespace spillway {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

namespace {

/// Element of the carry that an operand of a body is; empty for anything else.
std::optional<std::uint32_t> carried_element(const Computation& body, Operand operand) {
  const Instruction& in = body[operand.instruction];
  if (in.opcode != Opcode::kParameter || operand.node == 0) return std::nullopt;
  return in.shape.path(operand.node)[0];
}

/// Whether a loop hands an element of its carry on as it is.
bool is_invariant(const Computation& body, std::uint32_t element) {
  const Operand next = body.operands(body.root().instruction)[element];
  return body[next.instruction].opcode == Opcode::kParameter &&
         next.node == body[next.instruction].shape.element_node(element);
}

/// Values that XLA has taken out of a loop although the loop would compute them as well from much
/// less: tables of positions, masks.
bool is_expanded(const ComputationEditor& editor, const Node& node) {
  switch (node.instruction.opcode) {
    case Opcode::kConstant:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return true;
    case Opcode::kFusion:
    case Opcode::kBroadcast:
    case Opcode::kIota:
    case Opcode::kBitcast:
    case Opcode::kReshape:
      break;
    default:
      return false;
  }
  if (!node.instruction.shape.is_array()) return false;
  Bytes read;
  for (const Reference& operand : node.operands) read += editor.shape_of(operand).array_bytes();
  return read < node.instruction.shape.bytes() || node.instruction.opcode == Opcode::kBitcast;
}

}  // namespace

namespace {

/// A value of a body that has this key; empty where only a fusion knows it.
std::optional<Operand> find_value(const Computation& body, const ValueKeys& keys, ValueKey key) {
  for (const InstructionIndex i : body.instructions())
    for (ShapeNodeIndex node = 0; node < body[i].shape.node_count(); ++node)
      if (body[i].shape.at(node).is_array() && keys[Operand{i, node}] == key &&
          !is_async_start(body[i].opcode))
        return Operand{i, node};
  return std::nullopt;
}

}  // namespace

bool is_recomputed(const Instruction& instruction) {
  return instruction.name.ends_with(kRecomputedSuffix);
}

/// One pair of loops in which something is recomputed.
class LayerRecomputation {
 public:
  LayerRecomputation(const RecomputeRewrite& rewrite, const RecomputeRewrite::Layers& layers,
                     ProgramEditor& out, const std::set<ResidualId>& recomputed)
      : program_(rewrite.program_),
        memory_(rewrite.memory_),
        residuals_(rewrite.residuals_),
        layers_(layers),
        out_(out),
        recomputed_(recomputed),
        forward_id_(body_of(program_, layers.forward)),
        backward_id_(body_of(program_, layers.backward)),
        forward_(out.edit(forward_id_)),
        backward_(out.edit(backward_id_)),
        caller_(out.edit(layers.forward.computation)),
        carry_(program_, out, layers.backward) {}

  void run() {
    backward_.keep_alive(program_[forward_id_]);
    backward_.keep_alive(program_[layers_.forward.computation]);
    for (const ResidualId id : layers_.residuals)
      if (recomputed_.contains(id)) replace(id);
    for (const auto& [id, slice] : slices_)
      if (residuals_.residuals[id].placement == Placement::kDevice && !recomputed_.contains(id))
        fold_read(out_, backward_id_, slice.handle);
    for (const auto& [around, handle] : clones_around_) fuse_into_users(out_, backward_id_, handle);
    forward_.sort_by_operands();
    backward_.sort_by_operands();
  }

 private:
  void replace(ResidualId id);
  Reference saved_value(ResidualId id);
  Reference slice_of(ResidualId id);
  Reference value_of(Reference forward);
  bool updates_in_place(const Node& node) const;
  Reference part_of(Reference forward);
  Reference carried_value(std::uint32_t element);
  Reference value_around(Reference of_caller);
  Reference layer_counter();
  Reference converted(const Residual& residual, Reference value, Shape shape);
  Reference renamed(Reference value, Shape shape, std::string_view name);
  Handle clone(const ComputationEditor& from, Handle handle, std::vector<Reference> operands);
  Handle clone_whole(const ComputationEditor& from, Handle handle,
                     const std::function<Reference(Reference)>& backward);

  const Program& program_;
  const Lifetimes& memory_;
  const ResidualTable& residuals_;
  const RecomputeRewrite::Layers& layers_;
  ProgramEditor& out_;
  const std::set<ResidualId>& recomputed_;
  const ComputationId forward_id_, backward_id_;
  ComputationEditor &forward_, &backward_, &caller_;
  LoopCarry carry_;
  std::map<Handle, Handle> clones_, clones_around_;
  std::map<std::pair<Handle, ShapeNodeIndex>, Handle> parts_;
  std::map<ResidualId, Reference> slices_;
  std::optional<Reference> counter_;
};

/// Whoever read slices of the stack reads what is computed again.
void LayerRecomputation::replace(ResidualId id) {
  const Residual& residual = residuals_.residuals[id];
  const Reference slice = slice_of(id);
  const Reference value = value_of(saved_value(id));
  backward_.redirect(slice, converted(residual, value, backward_.shape_of(slice)));
}

/// A value in the shape in which the other loop has it. A residual that XLA copies between the
/// loops has its dimensions in another order there, and XLA turns it by a fusion through shared
/// memory.
Reference LayerRecomputation::converted(const Residual& residual, Reference value, Shape shape) {
  if (!residual.copied_between_loops) return renamed(value, shape, residual.id);
  const std::string name = residual.id + ".transposed" + std::string(kRecomputedSuffix);
  ComputationEditor fused;
  fused.keep_alive(program_[backward_id_]);
  const Shape from = backward_.shape_of(value);
  Node turned = make_node("turned", Opcode::kCopy, shape);
  turned.operands = {{fused.add(make_parameter("value", 0, from, *out_.storage())), 0}};
  fused.set_root({fused.add(std::move(turned)), 0});
  Node node = make_node(out_.text(name), Opcode::kFusion, shape);
  node.operands = {value};
  node.called = {out_.add(fused.finish(out_.text("fused." + name), out_.storage()))};
  node.attributes = {{"kind", "kInput"}};
  return {backward_.add(std::move(node)), 0};
}

/// What the forward loop saves, as a value of its body.
Reference LayerRecomputation::saved_value(ResidualId id) {
  const Residual& residual = residuals_.residuals[id];
  if (const auto value = find_value(program_[forward_id_], layers_.keys, layers_.key_of.at(id)))
    return {value->instruction.index, value->node};
  // Only a fusion knows it, which writes it at once.
  const Handle writer = residual.write.instruction.instruction.index;
  const Handle done =
      split_update(out_, forward_id_, writer, residual.write.operand, "save." + residual.id);
  const Handle start = forward_[done].operands[0].handle;
  for (const Reference& operand : forward_[start].operands)
    if (forward_.shape_of(operand).bytes() == residual.bytes_per_layer) return operand;
  check(false, "what a residual saves is not found");
  return {};
}

/// The slice of this layer, fetched by a copy that serves all who read it.
Reference LayerRecomputation::slice_of(ResidualId id) {
  const auto found = slices_.find(id);
  if (found != slices_.end()) return found->second;
  const Residual& residual = residuals_.residuals[id];
  return slices_[id] =
             fetch_slice(program_, memory_, out_, body_of(program_, residual.backward_loop),
                         residual.reads, "reload." + residual.id);
}

Reference LayerRecomputation::renamed(Reference value, Shape shape, std::string_view name) {
  if (backward_.shape_of(value) == shape) return value;
  return add_bitcast(out_, backward_, std::string(name) + std::string(kRecomputedSuffix), value,
                     shape);
}

/// A value of the forward body, in the backward body.
Reference LayerRecomputation::value_of(Reference forward) {
  const Shape shape = forward_.shape_of(forward);
  const Computation& body = program_[forward_id_];
  if (forward.handle < body.size()) {
    const Operand operand{InstructionIndex(forward.handle), forward.node};
    const auto saved = layers_.saved.find(layers_.keys[operand]);
    if (shape.is_array() && saved != layers_.saved.end() && !recomputed_.contains(saved->second))
      return converted(residuals_.residuals[saved->second], slice_of(saved->second), shape);
    if (const auto element = carried_element(body, operand)) return carried_value(*element);
  }
  const auto known = clones_.find(forward.handle);
  if (known != clones_.end()) return {known->second, forward.node};
  if (updates_in_place(forward_[forward.handle])) return part_of(forward);
  const Handle handle = clone_whole(forward_, forward.handle,
                                    [this](Reference operand) { return value_of(operand); });
  clones_[forward.handle] = handle;
  return {handle, forward.node};
}

/// Whether a fusion gives updated stacks beside other values.
bool LayerRecomputation::updates_in_place(const Node& node) const {
  if (node.instruction.opcode != Opcode::kFusion || !node.instruction.shape.is_flat_tuple())
    return false;
  const Computation& fused = *out_.computation(node.called[0]);
  for (std::uint32_t k = 0; k < node.operands.size(); ++k)
    if (find_update(fused, k)) return true;
  return false;
}

/// One result of such a fusion, by itself: the stacks stay in the forward loop.
Reference LayerRecomputation::part_of(Reference forward) {
  const auto known = parts_.find({forward.handle, forward.node});
  if (known != parts_.end()) return {known->second, 0};
  const Node original = forward_[forward.handle];
  const auto fused = out_.computation(original.called[0]);
  const std::uint32_t output = original.instruction.shape.path(forward.node)[0];
  const FusionPart part =
      cut_fusion(*fused, fused->operands(fused->root().instruction)[output], {},
                 std::string(fused->name()) + std::string(kRecomputedSuffix), out_.storage());
  std::vector<Reference> operands;
  for (const std::uint32_t number : part.parameters)
    operands.push_back(value_of(original.operands[number]));
  const Handle handle = clone(forward_, forward.handle, std::move(operands));
  backward_[handle].instruction.shape = part.computation->shape_of(part.computation->root());
  backward_[handle].called = {out_.add(part.computation)};
  parts_[{forward.handle, forward.node}] = handle;
  return {handle, 0};
}

Reference LayerRecomputation::carried_value(std::uint32_t element) {
  const auto counter = find_counter(program_, layers_.forward);
  const Computation& body = program_[forward_id_];
  if (counter && body.root_instruction().shape.element_node(element) == counter->node)
    return layer_counter();
  check(is_invariant(body, element), "what is recomputed hangs on an earlier layer");
  const Handle initial = caller_[layers_.forward.instruction.index].operands[0].handle;
  return value_around(caller_[initial].operands[element]);
}

/// A value from around the loops: carried by the backward loop, or made in its body from less.
Reference LayerRecomputation::value_around(Reference of_caller) {
  if (const auto carried = carry_.find(of_caller)) return *carried;
  const auto known = clones_around_.find(of_caller.handle);
  if (known != clones_around_.end()) return {known->second, of_caller.node};
  if (!is_expanded(caller_, caller_[of_caller.handle])) return carry_.find_or_add(of_caller);
  const Handle handle = clone_whole(caller_, of_caller.handle,
                                    [this](Reference operand) { return value_around(operand); });
  clones_around_[of_caller.handle] = handle;
  return {handle, of_caller.node};
}

/// The counter that the forward loop had for the layer that the backward loop is at.
Reference LayerRecomputation::layer_counter() {
  if (counter_) return *counter_;
  const LoopCounter own = *find_counter(program_, layers_.backward);
  const Reference carried{program_[backward_id_].parameters()[0].index, own.node};
  if (layers_.offset == 0 && layers_.factor == 1) return *(counter_ = carried);
  const Shape scalar = backward_.shape_of(carried);
  ComputationEditor fused;
  fused.keep_alive(program_[backward_id_]);
  const Handle parameter = fused.add(make_parameter("counter", 0, scalar, *out_.storage()));
  Node offset = make_node("offset", Opcode::kConstant, scalar);
  offset.instruction.literal = out_.text(std::to_string(layers_.offset));
  const Handle constant = fused.add(std::move(offset));
  Node layer = make_node("layer", layers_.factor < 0 ? Opcode::kSubtract : Opcode::kAdd, scalar);
  layer.operands = {{constant, 0}, {parameter, 0}};
  fused.set_root({fused.add(std::move(layer)), 0});
  Node node =
      make_node(out_.text("layer" + std::string(kRecomputedSuffix)), Opcode::kFusion, scalar);
  node.operands = {carried};
  node.called = {out_.add(fused.finish(out_.text("fused.layer"), out_.storage()))};
  node.attributes = {{"kind", "kLoop"}};
  return *(counter_ = Reference{backward_.add(std::move(node)), 0});
}

Handle LayerRecomputation::clone(const ComputationEditor& from, Handle handle,
                                 std::vector<Reference> operands) {
  Node node =
      clone_node(program_, out_, from[handle],
                 std::string(from[handle].instruction.name) + std::string(kRecomputedSuffix));
  node.operands = std::move(operands);
  return backward_.add(std::move(node));
}

/// The same with all of its operands, each as `backward` gives it.
Handle LayerRecomputation::clone_whole(const ComputationEditor& from, Handle handle,
                                       const std::function<Reference(Reference)>& backward) {
  std::vector<Reference> operands;
  for (std::size_t k = 0; k < from[handle].operands.size(); ++k)
    operands.push_back(backward(from[handle].operands[k]));
  return clone(from, handle, std::move(operands));
}

RecomputeRewrite::RecomputeRewrite(const Program& program, const Lifetimes& memory,
                                   const ResidualTable& residuals)
    : program_(program), memory_(memory), residuals_(residuals) {
  why_not_.resize(residuals.residuals.size());
  find_layers();
}

void RecomputeRewrite::find_layers() {
  std::map<std::pair<InstructionId, InstructionId>, std::vector<ResidualId>> pairs;
  for (const ResidualId id : ids(residuals_.residuals)) {
    const Residual& residual = residuals_.residuals[id];
    std::string& why = why_not_[id];
    why = why_not_separable(program_, memory_, residual);
    if (why.empty() && (!LoopCarry::is_flat(program_, residual.forward_loop) ||
                        !LoopCarry::is_flat(program_, residual.backward_loop)))
      why = "its loops carry more than arrays";
    if (why.empty()) pairs[{residual.forward_loop, residual.backward_loop}].push_back(id);
  }
  for (auto& [loops, list] : pairs) {
    Layers layers{loops.first, loops.second, ValueKeys(program_, loops.first), list};
    const Residual& one = residuals_.residuals[list.front()];
    const auto writes = find_layer_walk(program_, memory_.schedule, one.write);
    const auto reads = find_layer_walk(program_, memory_.schedule, one.reads.front());
    const auto forward = find_counter(program_, loops.first);
    const auto backward = find_counter(program_, loops.second);
    const bool walks = writes && reads && forward && backward && writes->step * writes->step == 1 &&
                       reads->step * reads->step == 1 && backward->step * backward->step == 1;
    if (walks) {
      // Layer c + d t of iteration t; the forward loop was there in iteration (layer - a) / b.
      const std::int64_t a = writes->first, b = writes->step, c = reads->first, d = reads->step;
      layers.factor = forward->step * b * d * backward->step;
      layers.offset = forward->init + forward->step * b * (c - a) - layers.factor * backward->init;
    }
    const ComputationId body = body_of(program_, loops.first);
    for (const ResidualId id : list) {
      const StackAccess& write = residuals_.residuals[id].write;
      const auto key = layers.keys.update_key(write.instruction, write.operand);
      const bool is_inside = write.instruction.computation != body;
      if (!key || (is_inside && !find_value(program_[body], layers.keys, *key)))
        why_not_[id] = "what it saves is computed inside an asynchronous copy";
      if (!key) continue;
      layers.key_of[id] = *key;
      layers.saved.try_emplace(*key, id);
    }
    for (const ResidualId id : list)
      if (why_not_[id].empty())
        why_not_[id] =
            walks ? find_reason(layers, id) : "which layer its loops are at is not known";
    layers_.push_back(std::move(layers));
  }
}

/// Why not, if everything that can be is recomputed: the closure then reaches furthest.
std::string RecomputeRewrite::find_reason(const Layers& layers, ResidualId id) const {
  const Residual& residual = residuals_.residuals[id];
  if (residual.is_layer_input)
    return "it is the layer's input, which recomputation starts from and jax.checkpoint always "
           "saves";
  const ComputationId body_id = body_of(program_, layers.forward);
  const Computation& body = program_[body_id];
  const auto counter = find_counter(program_, layers.forward);
  std::set<InstructionIndex> seen;
  std::vector<Operand> open;
  const InstructionId writer = residual.write.instruction;
  InstructionIndex start = writer.instruction;
  if (writer.computation != body_id)
    start = memory_.schedule.caller[writer.computation]->instruction;
  const auto operands = body.operands(start);
  for (std::uint32_t k = 0; k < operands.size(); ++k)
    if (body.shape_of(operands[k]).bytes() != residual.total_bytes) open.push_back(operands[k]);
  while (!open.empty()) {
    const Operand at = open.back();
    open.pop_back();
    if (body.shape_of(at).is_array()) {
      const auto saved = layers.saved.find(layers.keys[at]);
      if (saved != layers.saved.end() && residuals_.residuals[saved->second].is_layer_input)
        continue;
    }
    if (const auto element = carried_element(body, at)) {
      const bool counts =
          counter && body[at.instruction].shape.element_node(*element) == counter->node;
      if (!counts && !is_invariant(body, *element))
        return "it hangs on something that its loop changes from layer to layer, and that is not "
               "saved";
      continue;
    }
    if (!seen.insert(at.instruction).second) continue;
    for (const Operand& operand : body.operands(at.instruction)) open.push_back(operand);
  }
  return "";
}

namespace {

/// The loops of these names, wherever their instructions stand by now.
std::vector<InstructionId> touched_loops(const Program& program,
                                         const std::set<std::string_view>& names) {
  std::vector<InstructionId> loops;
  for (const ComputationId id : ids(program.computations))
    for (const InstructionIndex i : program[id].instructions())
      if (program[id][i].opcode == Opcode::kWhile && names.contains(program[id][i].name))
        loops.push_back({id, i});
  return loops;
}

}  // namespace

Program RecomputeRewrite::run(const std::vector<ResidualId>& wanted) const {
  std::set<ResidualId> recomputed;
  for (const ResidualId id : wanted)
    if (why_not_[id].empty()) recomputed.insert(id);
  if (recomputed.empty()) return program_;
  ProgramEditor out(program_);
  std::vector<InstructionId> touched;
  std::set<std::string_view> names;
  for (const Layers& layers : layers_) {
    const auto is_wanted = [&](ResidualId id) { return recomputed.contains(id); };
    if (std::ranges::none_of(layers.residuals, is_wanted)) continue;
    LayerRecomputation(*this, layers, out, recomputed).run();
    touched.push_back(layers.backward);
    for (const InstructionId loop : {layers.forward, layers.backward})
      names.insert(program_[loop].name);
  }
  Program result = out.finish();
  for (const InstructionId loop : touched) result = merge_equal(result, loop, is_recomputed);
  result = drop_dead(result);
  for (const InstructionId loop : touched_loops(result, names))
    result = form_fusions(fuse_epilogues(result, loop), loop);
  ProgramEditor renamings(result);
  for (const InstructionId loop : touched_loops(result, names))
    fuse_renamings(renamings, body_of(result, loop));
  return renamings.finish();
}

}  // namespace spillway
