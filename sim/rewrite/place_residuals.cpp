#include "sim/rewrite/place_residuals.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/program/slice_access.h"
#include "sim/rewrite/editor.h"
#include "sim/rewrite/fusion_parts.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using Node = ComputationEditor::Node;

class PlacementRewrite {
 public:
  PlacementRewrite(const Program& program, const MemoryAssignment& memory,
                   const ResidualTable& residuals)
      : program_(program),
        memory_(memory),
        residuals_(residuals),
        out_(program),
        storage_(std::make_shared<RewriteStorage>()) {}

  Program run(const std::vector<PlacementChange>& changes) {
    for (const PlacementChange& change : changes) {
      const Residual& residual = residuals_.residuals[change.residual];
      if (residual.placement == change.placement || !why_not_movable(program_, residual).empty())
        continue;
      target_[residual.stack] =
          change.placement == Placement::kDevice ? MemorySpace::kDevice : MemorySpace::kPinnedHost;
      moved_.push_back(change);
    }
    move_spaces();
    for (const PlacementChange& change : moved_) {
      const Residual& residual = residuals_.residuals[change.residual];
      move_initial_value(residual, change.placement);
      if (change.placement == Placement::kDevice) continue;
      place_offload(residual);
      place_reloads(residual);
    }
    for (auto& [id, editor] : editors_)
      out_.computations[id] = editor.finish(program_[id].name(), storage_);
    return std::move(out_);
  }

 private:
  ComputationEditor& editor(ComputationId id) {
    const auto found = editors_.find(id);
    return found != editors_.end()
               ? found->second
               : editors_.emplace(id, ComputationEditor(program_[id])).first->second;
  }
  std::string_view text(std::string value) { return storage_->text(std::move(value)); }
  std::optional<MemorySpace> target_of(ValueId value) const {
    const auto found = target_.find(memory_.liveness.buffer_of[value]);
    return found == target_.end() ? std::nullopt : std::optional(found->second);
  }

  void move_spaces();
  void move_fusion_parameters(InstructionId id);
  void move_initial_value(const Residual& residual, Placement placement);
  void place_offload(const Residual& residual);
  void place_reloads(const Residual& residual);
  Handle make_async(ComputationId body, const FusionPart& part, std::vector<Reference> operands,
                    Shape result, const std::string& name);
  Handle split_update(const Residual& residual, ComputationId body, Handle fusion);
  std::uint32_t operand_of_stack(const Residual& residual, ComputationId body, Handle reader);
  void replace_read(const Residual& residual, ComputationId body, Handle reader,
                    std::optional<Reference>& slice);
  void hoist(ComputationEditor& body, Handle start);
  void place_after_operands(ComputationEditor& body, Handle handle);
  ComputationId body_of(InstructionId loop) const {
    return program_[loop.computation].called(loop.instruction)[1];
  }
  ComputationId add_computation(std::shared_ptr<const Computation> computation) {
    return out_.computations.push(std::move(computation));
  }

  const Program& program_;
  const MemoryAssignment& memory_;
  const ResidualTable& residuals_;
  Program out_;
  std::shared_ptr<RewriteStorage> storage_;
  std::map<BufferId, MemorySpace> target_;
  std::vector<PlacementChange> moved_;
  std::map<ComputationId, ComputationEditor> editors_;
};

/// Every shape that shows a moved stack says where it now lies.
void PlacementRewrite::move_spaces() {
  for (const ComputationId id : ids(program_.computations)) {
    if (!memory_.schedule.reaches(id)) continue;
    for (const InstructionIndex i : program_[id].instructions()) {
      const Shape shape = program_[id][i].shape;
      std::map<MemorySpace, std::vector<ShapeNodeIndex>> nodes;
      for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
        if (const auto space = target_of(memory_.values.at({id, i}, node));
            space && shape.at(node).is_array())
          nodes[*space].push_back(node);
      for (const auto& [space, list] : nodes) {
        Node& edited = editor(id)[i.index];
        edited.instruction.shape = with_space(edited.instruction.shape, list, space, *storage_);
      }
      if (program_[id][i].opcode == Opcode::kFusion) move_fusion_parameters({id, i});
    }
  }
}

void PlacementRewrite::move_fusion_parameters(InstructionId id) {
  const Computation& computation = program_[id.computation];
  const auto operands = computation.operands(id.instruction);
  for (const MemorySpace space : {MemorySpace::kDevice, MemorySpace::kPinnedHost}) {
    std::vector<std::uint32_t> parameters;
    for (std::uint32_t k = 0; k < operands.size(); ++k)
      if (target_of(memory_.values.at(id.computation, operands[k])) == space)
        parameters.push_back(k);
    if (parameters.empty()) continue;
    Node& node = editor(id.computation)[id.instruction.index];
    node.called[0] =
        add_computation(move_parameters(out_[node.called[0]], parameters, space, storage_));
  }
}

/// A stack in HBM starts as zeros that a kernel writes; one in host memory is only allocated.
void PlacementRewrite::move_initial_value(const Residual& residual, Placement placement) {
  const ComputationId outer = residual.forward_loop.computation;
  for (const ValueId value : memory_.liveness.buffers[residual.stack].values) {
    const Position& at = memory_.values[value].defined_at;
    if (memory_.values[value].is_phi || at.instruction.computation != outer || at.node != 0)
      continue;
    const Instruction& in = program_[at.instruction];
    const bool starts = in.opcode == Opcode::kFusion || in.opcode == Opcode::kBroadcast ||
                        in.opcode == Opcode::kCopy || in.opcode == Opcode::kCustomCall;
    if (!starts || memory_.schedule.position[outer][at.instruction.instruction.index] >
                       memory_.schedule.position[outer][residual.forward_loop.instruction.index])
      continue;
    Node& node = editor(outer)[at.instruction.instruction.index];
    node.called.clear();
    node.attributes.clear();
    node.operands.clear();
    if (placement == Placement::kPinnedHost) {
      node.instruction.opcode = Opcode::kCustomCall;
      node.attributes.push_back({"custom_call_target", "\"AllocateBuffer\""});
    } else {
      // A broadcast of a zero: one pass over the stack.
      node.instruction.opcode = Opcode::kIota;
      node.attributes.push_back({"iota_dimension", "0"});
    }
    node.instruction.opcode_text = opcode_name(node.instruction.opcode);
    return;
  }
}

void PlacementRewrite::place_after_operands(ComputationEditor& body, Handle handle) {
  std::optional<Handle> last;
  for (const Reference& operand : body[handle].operands)
    if (!last || body.place(operand.handle) > body.place(*last)) last = operand.handle;
  if (last) body.move_after(handle, *last);
}

/// Puts a start, and the index arithmetic it needs, at the top of the body.
void PlacementRewrite::hoist(ComputationEditor& body, Handle start) {
  std::vector<Handle> chain = {start};
  for (std::size_t k = 0; k < chain.size(); ++k)
    for (const Reference& operand : body[chain[k]].operands) {
      const Instruction& in = body[operand.handle].instruction;
      const bool scalar = in.shape.is_array() && in.shape.elements() == 1;
      const bool movable =
          scalar && in.opcode != Opcode::kParameter && in.opcode != Opcode::kConstant;
      if (movable && std::ranges::find(chain, operand.handle) == chain.end())
        chain.push_back(operand.handle);
    }
  for (const Handle handle : chain)
    body.move_to_top(handle);  // the start first, so that it ends up last
  place_after_operands(body, start);
}

/// An async pair around a fusion of `part`. Returns the done; the start is what the done reads.
Handle PlacementRewrite::make_async(ComputationId body_id, const FusionPart& part,
                                    std::vector<Reference> operands, Shape result,
                                    const std::string& name) {
  ComputationEditor& body = editor(body_id);
  const ComputationId fused = add_computation(part.computation);
  ComputationEditor wrapper;
  Node fusion;
  std::vector<Shape> operand_shapes;
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    Node parameter;
    parameter.instruction.name = text("param_" + std::to_string(k));
    parameter.instruction.opcode = Opcode::kParameter;
    parameter.instruction.opcode_text = opcode_name(Opcode::kParameter);
    parameter.instruction.shape = body.shape_of(operands[k]);
    parameter.instruction.literal = text(std::to_string(k));
    operand_shapes.push_back(parameter.instruction.shape);
    fusion.operands.push_back({wrapper.add(std::move(parameter)), 0});
  }
  fusion.instruction.name = text("wrapped." + name);
  fusion.instruction.opcode = Opcode::kFusion;
  fusion.instruction.opcode_text = opcode_name(Opcode::kFusion);
  fusion.instruction.shape = result;
  fusion.called = {fused};
  fusion.attributes = {{"kind", "kLoop"}};
  wrapper.set_root({wrapper.add(std::move(fusion)), 0});
  const ComputationId wrapped =
      add_computation(wrapper.finish(text("async_computation." + name), storage_));

  Node start;
  start.instruction.name = text(name + "-start");
  start.instruction.opcode = Opcode::kAsyncStart;
  start.instruction.opcode_text = opcode_name(Opcode::kAsyncStart);
  start.instruction.shape = make_tuple_shape(
      {make_tuple_shape(operand_shapes, *storage_), result, make_context_shape(*storage_)},
      *storage_);
  start.operands = std::move(operands);
  start.called = {wrapped};
  const Handle start_handle = body.add(std::move(start));
  Node done;
  done.instruction.name = text(name + "-done");
  done.instruction.opcode = Opcode::kAsyncDone;
  done.instruction.opcode_text = opcode_name(Opcode::kAsyncDone);
  done.instruction.shape = result;
  done.operands = {{start_handle, 0}};
  return body.add(std::move(done));
}

void PlacementRewrite::place_offload(const Residual& residual) {
  const ComputationId body_id = body_of(residual.forward_loop);
  ComputationEditor& body = editor(body_id);
  Handle done = 0;
  if (residual.write.computation != body_id) {
    const InstructionId start = *memory_.schedule.caller[residual.write.computation];
    done = find_done(program_[body_id], start.instruction)->index;
  } else {
    done = split_update(residual, body_id, residual.write.instruction.index);
  }
  place_after_operands(body, body[done].operands[0].handle);
  body.move_before(done, body.root().handle);
}

/// Takes the update of the stack out of the instruction that also computes it, and makes it a copy.
Handle PlacementRewrite::split_update(const Residual& residual, ComputationId body_id,
                                      Handle writer) {
  ComputationEditor& body = editor(body_id);
  const InstructionIndex i(writer);
  const std::string name = "offload." + residual.id;
  const auto of_stack = [&](ValueId value) {
    return memory_.liveness.buffer_of[value] == residual.stack;
  };
  if (body[writer].instruction.opcode == Opcode::kDynamicUpdateSlice) {
    ComputationEditor wrapper;  // the update alone, as a fusion of one
    Node update = body[writer];
    for (std::uint32_t k = 0; k < update.operands.size(); ++k) {
      Node parameter;
      parameter.instruction.name = text("param_" + std::to_string(k));
      parameter.instruction.opcode = Opcode::kParameter;
      parameter.instruction.opcode_text = opcode_name(Opcode::kParameter);
      parameter.instruction.shape = body.shape_of(update.operands[k]);
      parameter.instruction.literal = text(std::to_string(k));
      update.operands[k] = {wrapper.add(std::move(parameter)), 0};
    }
    const Shape stack = update.instruction.shape;
    wrapper.set_root({wrapper.add(std::move(update)), 0});
    const FusionPart part{wrapper.finish(text("fused." + name), storage_), {}};
    const Handle done = make_async(body_id, part, body[writer].operands, stack, name);
    body.redirect({writer, 0}, {done, 0});
    body.erase(writer);
    return done;
  }
  const ComputationId fused_id = body[writer].called[0];
  const std::shared_ptr<const Computation> fused = out_.computations[fused_id];
  // The output that is the stack, and the update that makes it.
  const Shape result = body[writer].instruction.shape;
  const Operand root = fused->root();
  std::uint32_t output = 0;
  InstructionIndex update = root.instruction;
  if (result.is_tuple()) {
    while (!of_stack(memory_.values.at({body_id, i}, result.element_node(output)))) ++output;
    update = fused->operands(root.instruction)[output].instruction;
  }
  while ((*fused)[update].opcode != Opcode::kDynamicUpdateSlice)
    update = fused->operands(update)[0].instruction;
  const Operand slice = fused->operands(update)[1];
  const Shape slice_shape = fused->shape_of(slice);
  const ShapeNodeIndex stack_node = result.is_tuple() ? result.element_node(output) : 0;
  const Shape stack_shape = result.at(stack_node);

  // What the fusion still computes: the slice in place of the stack.
  ComputationEditor rest(*fused);
  if (result.is_tuple())
    rest[root.instruction.index].operands[output] = {slice.instruction.index, slice.node};
  else
    rest.set_root({slice.instruction.index, slice.node});
  std::vector<Shape> outputs;
  for (std::uint32_t k = 0; result.is_tuple() && k < result.tuple_size(); ++k)
    outputs.push_back(k == output ? slice_shape : result.element(k));
  const Shape rest_shape = result.is_tuple() ? make_tuple_shape(outputs, *storage_) : slice_shape;
  if (result.is_tuple()) rest[root.instruction.index].instruction.shape = rest_shape;
  const auto rest_computation = rest.finish(text("rest." + name), storage_);
  const FusionPart rest_part =
      cut_fusion(*rest_computation, rest_computation->root(), {}, "rest." + name, storage_);

  const FusionPart copy =
      cut_fusion(*fused, Operand{update, 0}, {Cut{{slice.instruction}, slice_shape}},
                 "fused." + name, storage_);
  const std::vector<Reference> all = body[writer].operands;
  std::vector<Reference> copy_operands;
  for (const std::uint32_t k : copy.parameters) copy_operands.push_back(all[k]);
  body[writer].called[0] = add_computation(rest_part.computation);
  body[writer].operands.clear();
  for (const std::uint32_t k : rest_part.parameters) body[writer].operands.push_back(all[k]);
  const ShapeNodeIndex slice_node = rest_shape.is_tuple() ? rest_shape.element_node(output) : 0;
  body[writer].instruction.shape = rest_shape;
  copy_operands.push_back({writer, slice_node});
  const Handle done = make_async(body_id, copy, copy_operands, stack_shape, name);
  const Handle start = body[done].operands[0].handle;
  body.redirect({writer, stack_node}, {done, 0}, start);
  return done;
}

/// One copy brings the slice to HBM; whoever read the stack reads that.
void PlacementRewrite::place_reloads(const Residual& residual) {
  const ComputationId body_id = body_of(residual.backward_loop);
  ComputationEditor& body = editor(body_id);
  std::optional<Reference> slice;
  // A read that already is a copy of its own serves the others.
  for (const InstructionId read : residual.reads) {
    if (read.computation == body_id) continue;
    const InstructionId start = *memory_.schedule.caller[read.computation];
    if (const auto done = find_done(program_[body_id], start.instruction))
      slice = Reference{done->index, 0};
  }
  for (const InstructionId read : residual.reads)
    if (read.computation == body_id) replace_read(residual, body_id, read.instruction.index, slice);
  if (!slice) return;
  const Handle done = slice->handle;
  hoist(body, body[done].operands[0].handle);
  // Right before the first that computes with it; renamings in between come along.
  std::optional<Handle> first;
  std::vector<Handle> renamed = {done};
  for (std::size_t k = 0; k < renamed.size(); ++k)
    for (const Handle user : body.users(renamed[k])) {
      if (body[user].instruction.opcode == Opcode::kBitcast) {
        renamed.push_back(user);
      } else if (!first || body.place(user) < body.place(*first)) {
        first = user;
      }
    }
  if (!first) return;
  for (const Handle handle : renamed) body.move_before(handle, *first);
}

/// Which operand of a reader is the stack, as the reader now stands.
std::uint32_t PlacementRewrite::operand_of_stack(const Residual& residual, ComputationId body_id,
                                                 Handle reader) {
  const auto operands = program_[body_id].operands(InstructionIndex(reader));
  const auto original = std::ranges::find_if(operands, [&](const Operand& operand) {
    return memory_.liveness.buffer_of[memory_.values.at(body_id, operand)] == residual.stack;
  });
  const auto& now = editor(body_id)[reader].operands;
  const auto found = std::ranges::find(now, Reference{original->instruction.index, original->node});
  check(found != now.end(), "a reader of a residual no longer reads it");
  return static_cast<std::uint32_t>(found - now.begin());
}

/// Makes one reader take the slice instead of the stack; makes the copy when there is none yet.
void PlacementRewrite::replace_read(const Residual& residual, ComputationId body_id, Handle reader,
                                    std::optional<Reference>& slice) {
  ComputationEditor& body = editor(body_id);
  const std::uint32_t k = operand_of_stack(residual, body_id, reader);
  const std::string name = "reload." + residual.id;
  if (body[reader].instruction.opcode != Opcode::kFusion)
    return;  // why_not_movable keeps others out
  const std::shared_ptr<const Computation> fused = out_.computations[body[reader].called[0]];
  std::vector<InstructionIndex> slices;
  std::vector<InstructionIndex> renamed = {fused->parameters()[k]};
  for (std::size_t n = 0; n < renamed.size(); ++n)
    for (const Use& use : fused->uses(renamed[n]))
      ((*fused)[use.user].opcode == Opcode::kBitcast ? renamed : slices).push_back(use.user);
  const Shape slice_shape = (*fused)[slices.front()].shape;
  const std::vector<Reference> all = body[reader].operands;
  if (!slice) {
    const FusionPart copy =
        cut_fusion(*fused, Operand{slices.front(), 0}, {}, "fused." + name, storage_);
    std::vector<Reference> copy_operands;
    for (const std::uint32_t p : copy.parameters) copy_operands.push_back(all[p]);
    const Shape result = with_space(slice_shape, {0}, MemorySpace::kDevice, *storage_);
    slice = Reference{make_async(body_id, copy, copy_operands, result, name), 0};
  }
  const FusionPart rest = cut_fusion(*fused, fused->root(), {Cut{slices, body.shape_of(*slice)}},
                                     "rest." + name, storage_);
  body[reader].called[0] = add_computation(rest.computation);
  body[reader].operands.clear();
  for (const std::uint32_t p : rest.parameters) body[reader].operands.push_back(all[p]);
  body[reader].operands.push_back(*slice);
}

}  // namespace

std::string why_not_movable(const Program& program, const Residual& residual) {
  if (residual.copied_between_loops) return "XLA copies the whole stack between the loops";
  if (residual.peeled) return "its copies are pipelined across iterations";
  const ComputationId backward =
      program[residual.backward_loop.computation].called(residual.backward_loop.instruction)[1];
  for (const InstructionId read : residual.reads) {
    if (read.computation != backward) continue;
    if (program[read].opcode != Opcode::kFusion)
      return "it is read by a slice outside any fusion or copy";
  }
  return "";
}

Program place_residuals(const Program& program, const MemoryAssignment& memory,
                        const ResidualTable& residuals,
                        const std::vector<PlacementChange>& changes) {
  return PlacementRewrite(program, memory, residuals).run(changes);
}

}  // namespace spillway
