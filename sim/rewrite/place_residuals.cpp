#include "sim/rewrite/place_residuals.h"

#include <algorithm>
#include <map>

#include "model/program/call_graph.h"
#include "sim/rewrite/async_slice.h"
#include "sim/rewrite/plain_copy.h"
#include "sim/rewrite/stack_access.h"
#include "sim/rewrite/stacks.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;

class PlacementRewrite {
 public:
  PlacementRewrite(const Program& program, const Lifetimes& memory, const ResidualTable& residuals)
      : program_(program), memory_(memory), residuals_(residuals), out_(program) {}

  Program run(const std::vector<PlacementChange>& changes) {
    std::vector<PlacementChange> moved;
    for (const PlacementChange& change : changes) {
      const Residual& residual = residuals_.residuals[change.residual];
      const bool known = target_.contains(residual.stack);
      if (known || residual.placement == change.placement ||
          !why_not_movable(program_, memory_, residual).empty())
        continue;
      const Computation& outer = program_[residual.forward_loop.computation];
      target_[residual.stack] = {
          change.placement == Placement::kDevice ? MemorySpace::kDevice : MemorySpace::kPinnedHost,
          {residual.forward_loop.computation,
           outer.operands(residual.forward_loop.instruction)[0].instruction}};
      moved.push_back(change);
    }
    if (!target_.empty())
      move_values(out_, program_, memory_, [this](ValueId value) { return target_of(value); });
    for (const PlacementChange& change : moved) {
      const Residual& residual = residuals_.residuals[change.residual];
      begin_anew(residual);
      if (change.placement == Placement::kDevice)
        fold_reads(residual);
      else
        place_offload(residual);
    }
    // Each reload goes on top of those before it, and they take the link in turn: what is used
    // first comes last here.
    std::ranges::stable_sort(moved, std::ranges::greater(), [this](const PlacementChange& change) {
      return residuals_.residuals[change.residual].first_backward_use;
    });
    for (const PlacementChange& change : moved)
      if (change.placement == Placement::kPinnedHost)
        place_reloads(residuals_.residuals[change.residual]);
    for (const auto& [body, dones] : host_copies_) {
      PlainCopies copies(out_, body);
      for (const Handle done : dones) copies.unfuse(done);
      copies.share_indices();
      fuse_renamings(out_, body);
    }
    return out_.finish();
  }

 private:
  /// Where a value of a moved stack lies; empty for others. What it began with is replaced, and
  /// stays where it is: it may begin another stack as well.
  std::optional<MemorySpace> target_of(ValueId value) const {
    const auto found = target_.find(memory_.liveness.buffer_of[value]);
    if (found == target_.end()) return std::nullopt;
    const auto& [space, tuple] = found->second;
    const InstructionId defined = memory_.values[value].defined_at.instruction;
    const bool is_initial = defined.computation == tuple.computation &&
                            defined.instruction.index < tuple.instruction.index;
    return is_initial ? std::nullopt : std::optional(space);
  }

  void begin_anew(const Residual& residual);
  void place_offload(const Residual& residual);
  void place_reloads(const Residual& residual);
  void fold_reads(const Residual& residual);

  const Program& program_;
  const Lifetimes& memory_;
  const ResidualTable& residuals_;
  ProgramEditor out_;
  struct Target {
    MemorySpace space = MemorySpace::kDevice;
    InstructionId initial;  ///< the tuple that its forward loop begins with
  };
  std::map<BufferId, Target> target_;
  std::map<ComputationId, std::vector<Handle>> host_copies_;  ///< their dones, by body
};

void PlacementRewrite::begin_anew(const Residual& residual) {
  const auto element = initial_element(program_, memory_, residual.forward_loop, residual.stack);
  check(element.has_value(), "a residual is moved whose first value stays where it is");
  replace_initial_value(out_, residual.forward_loop, *element, target_.at(residual.stack).space,
                        residual.id);
}

/// The scalars that an instruction's indices are computed from, in their order.
std::vector<Handle> index_arithmetic(const ComputationEditor& body, Handle start) {
  std::vector<Handle> scalars = {start};
  for (std::size_t k = 0; k < scalars.size(); ++k)
    for (const Reference& operand : body[scalars[k]].operands) {
      const Shape shape = body.shape_of(operand);
      if (shape.is_array() && shape.elements() == 1 &&
          std::ranges::find(scalars, operand.handle) == scalars.end())
        scalars.push_back(operand.handle);
    }
  scalars.erase(scalars.begin());
  std::ranges::sort(scalars, {}, [&body](Handle handle) { return body.place(handle); });
  return scalars;
}

/// Puts a start at the top of the body, with as much of its index arithmetic as depends on nothing
/// but what is there already.
void hoist(ComputationEditor& body, Handle start) {
  std::vector<Handle> hoisted;
  const auto is_at_top = [&](const Reference& operand) {
    const Opcode opcode = body[operand.handle].instruction.opcode;
    return opcode == Opcode::kParameter || opcode == Opcode::kConstant ||
           std::ranges::find(hoisted, operand.handle) != hoisted.end();
  };
  for (const Handle scalar : index_arithmetic(body, start))
    if (!is_at_top({scalar, 0}) && std::ranges::all_of(body[scalar].operands, is_at_top))
      hoisted.push_back(scalar);
  body.move_to_top(start);
  for (auto handle = hoisted.rbegin(); handle != hoisted.rend(); ++handle)
    body.move_to_top(*handle);
  // Parameters may stand further down.
  for (const Handle handle : hoisted) place_after_operands(body, handle);
  place_after_operands(body, start);
}

void PlacementRewrite::place_offload(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.forward_loop);
  ComputationEditor& body = out_.edit(body_id);
  const auto wrapped = done_of_wrapper(program_, memory_, body_id, residual.write.instruction);
  const Handle done =
      wrapped ? wrapped->index
              : split_update(out_, body_id, residual.write.instruction.instruction.index,
                             operand_now(program_, out_, residual.write), "offload." + residual.id);
  if (!wrapped && !body[residual.write.instruction.instruction.index].erased)
    place_after_operands(body, residual.write.instruction.instruction.index);
  place_after_operands(body, body[done].operands[0].handle);
  place_before_users(body, done);
  host_copies_[body_id].push_back(done);
}

/// One copy brings the slice to HBM; whoever read the stack reads that.
void PlacementRewrite::place_reloads(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.backward_loop);
  ComputationEditor& body = out_.edit(body_id);
  const Reference slice =
      fetch_slice(program_, memory_, out_, body_id, residual.reads, "reload." + residual.id);
  hoist(body, body[slice.handle].operands[0].handle);
  place_before_users(body, slice.handle);
  host_copies_[body_id].push_back(slice.handle);
}

/// Whoever can slices the stack by itself; for the others the slice is made right before its use.
void PlacementRewrite::fold_reads(const Residual& residual) {
  const ComputationId body_id = body_of(program_, residual.backward_loop);
  ComputationEditor& body = out_.edit(body_id);
  for (const StackAccess& read : residual.reads)
    if (const auto wrapped = done_of_wrapper(program_, memory_, body_id, read.instruction)) {
      const auto done = fold_read(out_, body_id, wrapped->index);
      if (!done) continue;
      place_before_users(body, *done);
      body.move_before(body[*done].operands[0].handle, *done);
    }
}

}  // namespace

std::string why_not_movable(const Program& program, const Lifetimes& memory,
                            const Residual& residual) {
  if (residual.copied_between_loops) return "XLA copies the whole stack between the loops";
  if (!initial_element(program, memory, residual.forward_loop, residual.stack))
    return "what its loop begins with is not put together right in front of it";
  return why_not_separable(program, memory, residual);
}

std::string why_not_separable(const Program& program, const Lifetimes& memory,
                              const Residual& residual) {
  if (residual.peeled) return "its copies are pipelined across iterations";
  if (!can_take_update(program, memory, body_of(program, residual.forward_loop), residual.write))
    return "it is saved by something other than a slice update";
  const ComputationId backward = body_of(program, residual.backward_loop);
  for (const StackAccess& read : residual.reads) {
    if (read.loop != residual.backward_loop) return "several loops read it";
    if (!can_take_slice(program, memory, backward, read))
      return "it is read by something other than slices of it";
  }
  return "";
}

Program place_residuals(const Program& program, const Lifetimes& memory,
                        const ResidualTable& residuals,
                        const std::vector<PlacementChange>& changes) {
  return PlacementRewrite(program, memory, residuals).run(changes);
}

}  // namespace spillway
