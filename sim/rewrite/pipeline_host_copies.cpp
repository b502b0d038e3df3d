#include "sim/rewrite/pipeline_host_copies.h"

#include <algorithm>

#include "model/memory/flat_schedule.h"
#include "model/program/host_transfer.h"
#include "sim/rewrite/loop_peeler.h"

namespace spillway {
namespace {

using Handle = LoopPeeler::Handle;
using Reference = LoopPeeler::Reference;
using References = LoopPeeler::References;
using Elements = LoopPeeler::Elements;

/// A copy of a slice between device memory and a stack that the loop carries.
struct SliceCopy {
  InstructionIndex start, done;
  std::uint32_t stack = 0;  ///< the carry's element
  /// Of a reload, what chooses the slice: the instructions between the counter and the start.
  std::vector<InstructionIndex> index{};
};

struct SliceCopies {
  std::vector<SliceCopy> offloads, reloads;
};

std::optional<std::uint32_t> carried_element(const Computation& body, Operand operand) {
  if (operand.instruction != body.parameters()[0] || operand.node == 0) return std::nullopt;
  return operand.node - 1;  // elements of a flat tuple are nodes 1, 2, …
}

/// What a start reads beside the stack, back to the carry, in the order of the text. Empty where
/// more than scalars are among it.
std::optional<std::vector<InstructionIndex>> index_of(const Computation& body,
                                                      InstructionIndex start) {
  std::set<InstructionIndex> found;
  std::vector<InstructionIndex> stack;
  for (const Operand& operand : body.operands(start).subspan(1))
    stack.push_back(operand.instruction);
  while (!stack.empty()) {
    const InstructionIndex i = stack.back();
    stack.pop_back();
    if (body[i].opcode == Opcode::kParameter || !found.insert(i).second) continue;
    if (!body[i].shape.is_array() || body[i].shape.elements() != 1) return std::nullopt;
    for (const Operand& operand : body.operands(i)) stack.push_back(operand.instruction);
  }
  return std::vector<InstructionIndex>(found.begin(), found.end());
}

SliceCopies find_slice_copies(const Program& program, ComputationId id) {
  const Computation& body = program[id];
  SliceCopies found;
  for (const InstructionIndex i : body.instructions()) {
    if (body[i].opcode != Opcode::kAsyncStart) continue;
    const auto transfer = host_transfer(program, {id, i});
    const auto done = find_done(body, i);
    const auto stack = carried_element(body, body.operands(i)[0]);
    if (!transfer || !done || !stack || body.uses(i).size() != 1) continue;
    const Operand returned = body.operands(body.root().instruction)[*stack];
    if (transfer->direction == TransferDirection::kDeviceToHost) {
      if (returned.instruction == *done && body.uses(*done).size() == 1)
        found.offloads.push_back({i, *done, *stack});
    } else if (auto index = index_of(body, i); index && carried_element(body, returned) == stack) {
      found.reloads.push_back({i, *done, *stack, std::move(*index)});
    }
  }
  return found;
}

std::set<Handle> handles_of(const std::vector<SliceCopy>& copies) {
  std::set<Handle> handles;
  for (const SliceCopy& copy : copies) handles.insert({copy.start.index, copy.done.index});
  return handles;
}

/// Start and done of a copy in front of `before` in the loop's caller.
Handle add_pair(LoopPeeler& loop, const SliceCopy& copy, Handle before,
                const std::function<Reference(Operand)>& find) {
  ComputationEditor& caller = loop.caller();
  ComputationEditor::Node start = loop.clone(copy.start);
  for (const Operand& operand : loop.body().operands(copy.start))
    start.operands.push_back(find(operand));
  const Handle started = caller.add(std::move(start));
  caller.move_before(started, before);
  ComputationEditor::Node done = loop.clone(copy.done);
  done.operands = {{started, 0}};
  const Handle ended = caller.add(std::move(done));
  caller.move_before(ended, before);
  return ended;
}

/// Moves the offloads of a loop to the next iteration.
class OffloadPipeliner {
 public:
  OffloadPipeliner(LoopPeeler& loop, const std::vector<SliceCopy>& offloads)
      : loop_(loop), offloads_(offloads) {}

  void run() {
    change_body();
    peel_first();
    loop_.widen(extras_);
    add_last();
  }

 private:
  static Reference reference_to(Operand operand) {
    return {operand.instruction.index, operand.node};
  }
  static Operand operand_of(Reference reference) {
    return {InstructionIndex(reference.handle), reference.node};
  }

  /// Whether a value of the body is an element of the carry, under another shape or not.
  bool is_carried(Reference value) const {
    return behind_renamings(loop_.body(), operand_of(value)).instruction ==
           loop_.body().parameters()[0];
  }

  /// The instructions between an element of the carry and what shows it under another shape.
  std::vector<Handle> renamings_of(Reference value) const {
    std::vector<Handle> found;
    for (Handle at = value.handle; is_carried(value) && at != loop_.parameter();
         at = loop_.body().operands(InstructionIndex(at))[0].instruction.index)
      found.push_back(at);
    std::ranges::reverse(found);
    return found;
  }

  ComputationEditor::Node copy_of(Reference value, Shape shape) {
    ComputationEditor::Node copy =
        make_node(loop_.new_name("pipelined"), Opcode::kCopy, loop_.copy_shape(shape));
    copy.operands = {value};
    return copy;
  }

  void change_body() {
    ComputationEditor& body = loop_.edit_body();
    std::vector<Handle> top;
    const auto add_copy = [&](Reference value, Shape shape) {
      top.push_back(body.add(copy_of(value, shape)));
      return Reference{top.back(), 0};
    };
    std::vector<Reference> arrived;  // what an earlier iteration carried, for each of values_
    const auto carry = [&](Reference value) {
      const auto known = std::ranges::find(values_, value);
      if (known != values_.end()) return arrived[static_cast<std::size_t>(known - values_.begin())];
      const auto element = loop_.elements() + static_cast<std::uint32_t>(values_.size());
      values_.push_back(value);
      // The old value is read until its copy is done, the new one is made before: two buffers.
      arrived.push_back(add_copy(loop_.carried(element), body.shape_of(value)));
      return arrived.back();
    };
    for (const SliceCopy& offload : offloads_) {
      auto& operands = body[offload.start.index].operands;
      for (std::size_t k = 1; k < operands.size(); ++k) {
        if (body[operands[k].handle].instruction.opcode == Opcode::kConstant)
          top.push_back(operands[k].handle);
        else
          body[offload.start.index].operands[k] = carry(operands[k]);
      }
    }
    for (const Reference& value : values_) {
      // What the carry holds already has a place of its own there, which is written over.
      const std::vector<Handle> renamings = renamings_of(value);
      top.insert(top.end(), renamings.begin(), renamings.end());
      extras_.push_back(is_carried(value) ? add_copy(value, body.shape_of(value)) : value);
    }
    for (const SliceCopy& offload : offloads_) top.push_back(offload.start.index);
    std::ranges::reverse(top);
    for (const Handle handle : top) body.move_after(handle, loop_.parameter());
    for (const SliceCopy& offload : offloads_) body.move_before(offload.done.index, loop_.root());
  }

  /// The first iteration in front of the loop, without the copies.
  void peel_first() {
    ComputationEditor& caller = loop_.caller();
    const Handle tuple = loop_.initial();
    const std::vector<Reference> begun = caller[tuple].operands;
    const Elements element_of = [&](std::uint32_t element) { return begun[element]; };
    const References first = loop_.inline_body(tuple, handles_of(offloads_), element_of, {});
    const auto returned = loop_.body().operands(loop_.body().root().instruction);
    for (std::uint32_t element = 0; element < loop_.elements(); ++element)
      if (std::ranges::find(offloads_, element, &SliceCopy::stack) == offloads_.end())
        caller[tuple].operands[element] = loop_.translate(first, element_of, returned[element]);
    for (const Reference& value : values_) {
      Reference made = loop_.translate(first, element_of, operand_of(value));
      if (is_carried(value)) {
        const Handle copy = caller.add(copy_of(made, caller.shape_of(made)));
        caller.move_before(copy, tuple);
        made = {copy, 0};
      }
      caller[tuple].operands.push_back(made);
    }
  }

  /// The last copies, behind the loop.
  void add_last() {
    ComputationEditor& caller = loop_.caller();
    References constants;
    // Behind the loop is in front of what follows it: a place that moves along with what is added.
    const Handle mark = caller.add(copy_of(loop_.returned(0), caller.shape_of(loop_.returned(0))));
    caller.move_after(mark, loop_.loop());
    for (const SliceCopy& offload : offloads_) {
      const Handle done = add_pair(loop_, offload, mark, [&](Operand operand) {
        if (const auto stack = carried_element(loop_.body(), operand); stack == offload.stack)
          return loop_.returned(offload.stack);
        const auto known = std::ranges::find(values_, reference_to(operand));
        if (known != values_.end())
          return loop_.returned(loop_.elements() +
                                static_cast<std::uint32_t>(known - values_.begin()));
        loop_.clone_before({operand.instruction}, caller, mark, {}, constants);
        return constants.at(operand.instruction.index);
      });
      const Handle start = caller[done].operands[0].handle;
      caller.redirect(loop_.returned(offload.stack), {done, 0}, start);
    }
    caller.erase(mark);
  }

  LoopPeeler& loop_;
  const std::vector<SliceCopy>& offloads_;
  std::vector<Reference> values_;  ///< of the body: what is copied one iteration later
  std::vector<Reference> extras_;  ///< what carries them
};

/// Moves the reloads of a loop to the iteration before.
class ReloadPipeliner {
 public:
  ReloadPipeliner(LoopPeeler& loop, const std::vector<SliceCopy>& reloads)
      : loop_(loop), reloads_(reloads) {}

  void run() {
    fetch_first();
    change_body();
    std::vector<Reference> extras;
    for (const SliceCopy& reload : reloads_) extras.push_back({reload.done.index, 0});
    loop_.widen(extras);
    peel_last();
  }

 private:
  std::uint32_t element_of(std::size_t reload) const {
    return loop_.elements() + static_cast<std::uint32_t>(reload);
  }

  /// What the first iteration needs, in front of the loop.
  void fetch_first() {
    ComputationEditor& caller = loop_.caller();
    const Handle tuple = loop_.initial();
    const std::vector<Reference> begun = caller[tuple].operands;
    const Elements begins = [&](std::uint32_t element) { return begun[element]; };
    References known;
    for (const SliceCopy& reload : reloads_) {
      loop_.clone_before(reload.index, caller, tuple, begins, known);
      const Handle done = add_pair(loop_, reload, tuple, [&](Operand operand) {
        return loop_.translate(known, begins, operand);
      });
      caller[tuple].operands.push_back({done, 0});
    }
  }

  void change_body() {
    ComputationEditor& body = loop_.edit_body();
    const auto returned = loop_.body().operands(loop_.body().root().instruction);
    const Elements next = [&](std::uint32_t element) {
      return Reference{returned[element].instruction.index, returned[element].node};
    };
    References known;
    for (std::size_t k = 0; k < reloads_.size(); ++k) {
      const SliceCopy& reload = reloads_[k];
      body.redirect({reload.done.index, 0}, loop_.carried(element_of(k)));
      loop_.clone_before(reload.index, body, loop_.root(), next, known);
      auto& operands = body[reload.start.index].operands;
      for (std::size_t n = 1; n < operands.size(); ++n)
        operands[n] = loop_.translate(known, next, loop_.body().operands(reload.start)[n]);
    }
    place(body, known);
  }

  /// Starts behind the last instruction that reads what they replace, and behind their index; dones
  /// at the end.
  void place(ComputationEditor& body, const References& index) {
    Handle last = loop_.parameter();
    const auto not_before = [&](Handle handle) {
      if (handle != loop_.root() && body.place(handle) > body.place(last)) last = handle;
    };
    for (const Handle user : body.users(loop_.parameter()))
      for (const Reference& operand : body[user].operands) {
        if (operand.handle != loop_.parameter() || operand.node <= loop_.elements()) continue;
        not_before(user);
        if (is_renaming(body[user].instruction.opcode))
          for (const Handle reader : body.users(user)) not_before(reader);
      }
    std::vector<Handle> moved;
    for (const auto& [from, to] : index) {
      moved.push_back(to.handle);
      for (const Reference& operand : body[to.handle].operands)
        if (std::ranges::find(moved, operand.handle) == moved.end()) not_before(operand.handle);
    }
    for (const SliceCopy& reload : reloads_) {
      moved.push_back(reload.start.index);
      for (const Reference& operand : body[reload.start.index].operands)
        if (std::ranges::find(moved, operand.handle) == moved.end()) not_before(operand.handle);
    }
    for (const Handle handle : moved) {
      body.move_after(handle, last);
      last = handle;
    }
    for (const SliceCopy& reload : reloads_) body.move_before(reload.done.index, loop_.root());
  }

  /// The last iteration behind the loop, with what was fetched for it.
  void peel_last() {
    ComputationEditor& caller = loop_.caller();
    References fetched;
    for (std::size_t k = 0; k < reloads_.size(); ++k)
      fetched[reloads_[k].done.index] = loop_.returned(element_of(k));
    const std::vector<Handle> readers = caller.users(loop_.loop());
    const Elements carried = [&](std::uint32_t element) { return loop_.returned(element); };
    const References last =
        loop_.inline_body(std::nullopt, handles_of(reloads_), carried, std::move(fetched));
    const auto returned = loop_.body().operands(loop_.body().root().instruction);
    for (const Handle reader : readers)
      for (Reference& operand : caller[reader].operands)
        if (operand.handle == loop_.loop() && operand.node > 0)
          operand = loop_.translate(last, carried, returned[operand.node - 1]);
  }

  LoopPeeler& loop_;
  const std::vector<SliceCopy>& reloads_;
};

}  // namespace

Result<Program> pipeline_host_copies(const Program& program) {
  ProgramEditor editor(program);
  const Computation& entry = program.entry_computation();
  for (const InstructionIndex i : entry.instructions()) {
    if (entry[i].opcode != Opcode::kWhile) continue;
    const InstructionId id{program.entry, i};
    const auto trips = known_trip_count(entry, i);
    if (!trips || *trips < 2 || !LoopPeeler::can_peel(program, id)) continue;
    LoopPeeler loop(program, editor, id);
    const SliceCopies copies = find_slice_copies(program, loop.body_id());
    if (copies.offloads.empty() == copies.reloads.empty()) continue;  // XLA's loops have one kind
    loop.set_trip_count(*trips - 1);
    if (copies.offloads.empty())
      ReloadPipeliner(loop, copies.reloads).run();
    else
      OffloadPipeliner(loop, copies.offloads).run();
  }
  if (const std::string wrong = editor.find_misorder(); !wrong.empty())
    return error_in_file(program.path, "its host copies cannot be pipelined: then " + wrong, "");
  return editor.finish();
}

}  // namespace spillway
