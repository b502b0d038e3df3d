#include "sim/rewrite/pipeline_host_copies.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

using Handle = ComputationEditor::Handle;
using Reference = ComputationEditor::Reference;
using References = std::map<Handle, Reference>;  ///< what stands for an instruction elsewhere

/// A copy of a slice between a stack that the loop carries and device memory.
struct SliceCopy {
  Handle start = 0, done = 0;
  std::uint32_t stack = 0;  ///< the carry's element
  TransferDirection direction = TransferDirection::kDeviceToHost;
};

bool has_flat_carry(const Computation& body) {
  return body.parameters().size() == 1 && body.root().node == 0 &&
         body.root_instruction().opcode == Opcode::kTuple &&
         body.root_instruction().shape.is_flat_tuple();
}

/// The carry's element that an operand is; elements of a flat tuple are nodes 1, 2, ….
std::optional<std::uint32_t> carried_element(const Computation& body, Operand operand) {
  if (operand.instruction != body.parameters()[0] || operand.node == 0) return std::nullopt;
  return operand.node - 1;
}

class LoopPipeliner {
 public:
  LoopPipeliner(const Program& program, ProgramEditor& editor, InstructionId loop)
      : program_(program),
        editor_(editor),
        loop_(loop),
        body_id_(body_of(program, loop)),
        body_(program[body_id_]),
        entry_(editor.edit(loop.computation)),
        storage_(*editor.storage()) {}

  void run() {
    const auto trips = known_trip_count(program_[loop_.computation], loop_.instruction);
    if (!trips || *trips < 2 || !has_flat_carry(body_) || runs_loops()) return;
    if (entry_[before_loop()].instruction.opcode != Opcode::kTuple) return;
    find_copies();
    if (offloads_.empty() == reloads_.empty()) return;  // XLA's loops have one kind or the other
    counts_ = body_.root_instruction().shape.tuple_size();
    set_trip_count(*trips - 1);
    if (offloads_.empty())
      pipeline_reloads();
    else
      pipeline_offloads();
  }

 private:
  Handle loop_handle() const { return loop_.instruction.index; }
  Handle before_loop() const { return entry_[loop_handle()].operands[0].handle; }
  Handle parameter() const { return body_.parameters()[0].index; }
  Handle root() const { return body_.root().instruction.index; }
  Reference carried(std::uint32_t element) const { return {parameter(), element + 1}; }
  Reference after_loop(std::uint32_t element) const { return {loop_handle(), element + 1}; }

  bool runs_loops() const {
    for (const InstructionIndex i : body_.instructions())
      if (is_control_flow(body_[i].opcode)) return true;
    return false;
  }

  void find_copies() {
    for (const InstructionIndex i : body_.instructions()) {
      if (body_[i].opcode != Opcode::kAsyncStart) continue;
      const auto transfer = host_transfer(program_, {body_id_, i});
      const auto done = find_only_done(i);
      if (!transfer || !done) continue;
      const auto stack = carried_element(body_, body_.operands(i)[0]);
      if (!stack) continue;
      const Operand returned = body_.operands(body_.root().instruction)[*stack];
      const bool is_offload = transfer->direction == TransferDirection::kDeviceToHost;
      const bool stays = is_offload ? returned.instruction == *done && body_.uses(*done).size() == 1
                                    : carried_element(body_, returned) == stack;
      if (!stays || (!is_offload && !index_of(i))) continue;
      (is_offload ? offloads_ : reloads_)
          .push_back({i.index, done->index, *stack, transfer->direction});
    }
  }

  std::optional<InstructionIndex> find_only_done(InstructionIndex start) const {
    const auto uses = body_.uses(start);
    if (uses.size() != 1 || !is_async_done(body_[uses[0].user].opcode)) return std::nullopt;
    return uses[0].user;
  }

  /// What chooses the slice of a reload: the instructions between the counter and the start. Empty
  /// where something else is among them.
  std::optional<std::vector<InstructionIndex>> index_of(InstructionIndex start) const {
    std::set<InstructionIndex> chain;
    std::vector<InstructionIndex> stack;
    const auto operands = body_.operands(start);
    for (std::size_t k = 1; k < operands.size(); ++k) stack.push_back(operands[k].instruction);
    while (!stack.empty()) {
      const InstructionIndex i = stack.back();
      stack.pop_back();
      if (body_[i].opcode == Opcode::kParameter || !chain.insert(i).second) continue;
      if (!body_[i].shape.is_array() || body_[i].shape.elements() != 1) return std::nullopt;
      for (const Operand& operand : body_.operands(i)) stack.push_back(operand.instruction);
    }
    return std::vector<InstructionIndex>(chain.begin(), chain.end());
  }

  void pipeline_offloads() {
    std::vector<Reference> extras;
    ComputationEditor& body = editor_.edit(body_id_);
    // One carried index for all copies that go to the same place.
    std::map<Reference, Handle, ReferenceOrder> copies;  // in the body, of what is carried
    std::vector<Handle> top;
    const auto carry = [&](Reference value) {
      const auto known = copies.find(value);
      if (known != copies.end()) return Reference{known->second, 0};
      const Shape shape = body.shape_of(value);
      const auto element = counts_ + static_cast<std::uint32_t>(extras.size());
      extras.push_back(value);
      // The old value is read until the copy is done, the new one is made before: two buffers.
      ComputationEditor::Node copy =
          make_node(new_name("pipelined"), Opcode::kCopy, copy_shape(shape));
      copy.operands = {carried(element)};
      const Handle handle = body.add(std::move(copy));
      copies[value] = handle;
      top.push_back(handle);
      return Reference{handle, 0};
    };
    for (const SliceCopy& offload : offloads_)
      for (std::size_t k = 1; k < body[offload.start].operands.size(); ++k) {
        const Reference value = body[offload.start].operands[k];
        if (body[value.handle].instruction.opcode == Opcode::kConstant)
          top.push_back(value.handle);
        else
          body[offload.start].operands[k] = carry(value);
      }
    for (const SliceCopy& offload : offloads_) top.push_back(offload.start);
    std::ranges::reverse(top);
    for (const Handle handle : top) body.move_after(handle, parameter());
    for (const SliceCopy& offload : offloads_) body.move_before(offload.done, root());
    // The first iteration, in front of the loop, without the copies.
    const References first = inline_body(before_loop(), [&](std::uint32_t element) {
      return entry_[before_loop()].operands[element];
    });
    const Handle tuple = before_loop();
    const std::vector<Reference> initial = entry_[tuple].operands;
    for (std::uint32_t element = 0; element < counts_; ++element) {
      const Operand returned = body_.operands(body_.root().instruction)[element];
      if (!is_offloaded(element))
        entry_[tuple].operands[element] = translate(first, initial, returned);
    }
    for (const Reference& value : extras)
      entry_[tuple].operands.push_back(
          translate(first, initial, {InstructionIndex(value.handle), value.node}));
    widen(extras);
    // The last copies, behind it.
    Handle at = loop_handle();
    for (const SliceCopy& offload : offloads_) {
      const auto pair = add_pair(offload, at, [&](std::size_t, Reference value) {
        const auto carried_as = std::ranges::find(extras, value);
        if (carried_as == extras.end()) return clone_constant(value, loop_handle());
        return after_loop(counts_ + static_cast<std::uint32_t>(carried_as - extras.begin()));
      });
      entry_.redirect(after_loop(offload.stack), {pair.second, 0}, pair.first);
      at = pair.second;
    }
  }

  void pipeline_reloads() {
    ComputationEditor& body = editor_.edit(body_id_);
    const std::vector<Reference> initial = entry_[before_loop()].operands;
    std::vector<Reference> extras;
    References chain_before, chain_next;
    const auto body_operands = body_.operands(body_.root().instruction);
    // What is fetched for the first iteration, in front of the loop.
    for (const SliceCopy& reload : reloads_) {
      const auto index = *index_of(InstructionIndex(reload.start));
      clone_chain(index, entry_, chain_before, before_loop(),
                  [&](Operand operand) { return initial[operand.node - 1]; });
      const auto pair = add_pair_before(reload, before_loop(), chain_before, initial);
      entry_[before_loop()].operands.push_back({pair.second, 0});
    }
    // In the loop: for the next one, as soon as this one's has been read.
    for (std::size_t k = 0; k < reloads_.size(); ++k) {
      const SliceCopy& reload = reloads_[k];
      const Reference now = carried(counts_ + static_cast<std::uint32_t>(k));
      body.redirect({reload.done, 0}, now);
      const auto index = *index_of(InstructionIndex(reload.start));
      clone_chain(index, body, chain_next, root(), [&](Operand operand) {
        const Operand next = body_operands[operand.node - 1];
        return Reference{next.instruction.index, next.node};
      });
      for (std::size_t n = 1; n < body[reload.start].operands.size(); ++n) {
        Reference& value = body[reload.start].operands[n];
        if (const auto found = chain_next.find(value.handle); found != chain_next.end())
          value = {found->second.handle, value.node};
      }
      extras.push_back({reload.done, 0});
    }
    place_reloads(body, chain_next);
    widen(extras);
    // The last iteration, behind the loop, with what was fetched for it.
    const References last =
        inline_body(std::nullopt, [&](std::uint32_t element) { return after_loop(element); });
    std::vector<Reference> results(counts_);
    std::vector<Reference> loop_results(counts_);
    for (std::uint32_t element = 0; element < counts_; ++element)
      loop_results[element] = after_loop(element);
    for (std::uint32_t element = 0; element < counts_; ++element)
      results[element] = translate(last, loop_results, body_operands[element]);
    redirect_readers(last, results);
  }

  struct ReferenceOrder {
    bool operator()(const Reference& a, const Reference& b) const {
      return std::pair(a.handle, a.node) < std::pair(b.handle, b.node);
    }
  };

  bool is_offloaded(std::uint32_t element) const {
    return std::ranges::any_of(offloads_,
                               [&](const SliceCopy& copy) { return copy.stack == element; });
  }

  /// Starts behind the last instruction that reads what the carry held, dones at the end.
  void place_reloads(ComputationEditor& body, const References& chain) {
    Handle last = parameter();
    for (std::size_t k = 0; k < reloads_.size(); ++k)
      for (const Handle user : body.users(parameter()))
        for (const Reference& operand : body[user].operands)
          if (operand == carried(counts_ + static_cast<std::uint32_t>(k)) && user != root() &&
              body.place(user) > body.place(last))
            last = readers_of_renaming(body, user);
    for (const auto& [from, to] : chain)
      for (const Reference& operand : body[to.handle].operands)
        if (body.place(operand.handle) > body.place(last)) last = operand.handle;
    std::vector<Handle> moved;
    for (const auto& [from, to] : chain) moved.push_back(to.handle);
    std::ranges::sort(moved);
    for (const SliceCopy& reload : reloads_) moved.push_back(reload.start);
    for (const Handle handle : moved) {
      body.move_after(handle, last);
      last = handle;
    }
    for (const SliceCopy& reload : reloads_) body.move_before(reload.done, root());
  }

  /// Of an instruction that only renames what it reads, the last of those that read it.
  Handle readers_of_renaming(ComputationEditor& body, Handle handle) const {
    Handle last = handle;
    if (!is_renaming(body[handle].instruction.opcode)) return last;
    for (const Handle user : body.users(handle))
      if (user != root() && body.place(user) > body.place(last)) last = user;
    return last;
  }

  std::string_view new_name(const std::string& base) {
    return editor_.text(base + "." + std::string(body_.name()) + "." + std::to_string(names_++));
  }

  Shape copy_shape(Shape shape) { return with_space(shape, {}, MemorySpace::kDevice, storage_); }

  /// A copy of an instruction of the body, for another place; operands are still the body's.
  ComputationEditor::Node clone(InstructionIndex i) {
    ComputationEditor::Node node;
    node.instruction = body_[i];
    node.instruction.name = new_name(std::string(body_[i].name));
    node.instruction.shape = copy_shape(body_[i].shape);
    node.instruction.literal = editor_.text(std::string(body_[i].literal));
    for (const Attribute& attribute : body_.attributes(i))
      if (attribute.name != "control-predecessors")
        node.attributes.push_back({editor_.text(std::string(attribute.name)),
                                   editor_.text(std::string(attribute.value))});
    for (const ComputationId called : body_.called(i))
      node.called.push_back(runs_what_it_calls(body_[i].opcode)
                                ? editor_.add(program_.computations[called])
                                : called);
    return node;
  }

  static Reference translate(const References& known, const std::vector<Reference>& elements,
                             Operand operand, bool is_parameter) {
    if (is_parameter) return elements[operand.node - 1];
    const Reference& base = known.at(operand.instruction.index);
    return {base.handle, base.node + operand.node};
  }
  Reference translate(const References& known, const std::vector<Reference>& elements,
                      Operand operand) const {
    return translate(known, elements, operand, operand.instruction.index == parameter());
  }

  /// Clones instructions of the index's chain in front of `before`; `element_of` says what stands
  /// for an element of the carry.
  template <typename ElementOf>
  void clone_chain(const std::vector<InstructionIndex>& chain, ComputationEditor& target,
                   References& known, Handle before, ElementOf element_of) {
    for (const InstructionIndex i : chain) {
      if (known.contains(i.index)) continue;
      ComputationEditor::Node node = clone(i);
      for (const Operand& operand : body_.operands(i))
        node.operands.push_back(
            operand.instruction.index == parameter()
                ? element_of(operand)
                : Reference{known.at(operand.instruction.index).handle, operand.node});
      const Handle handle = target.add(std::move(node));
      target.move_before(handle, before);
      known[i.index] = {handle, 0};
    }
  }

  Reference clone_constant(Reference value, Handle before) {
    ComputationEditor::Node node = clone(InstructionIndex(value.handle));
    const Handle handle = entry_.add(std::move(node));
    entry_.move_before(handle, before);
    return {handle, value.node};
  }

  /// Start and done of a copy, behind `at` in the entry; the stack is what the loop returns.
  template <typename ValueOf>
  std::pair<Handle, Handle> add_pair(const SliceCopy& copy, Handle at, ValueOf value_of) {
    ComputationEditor::Node start = clone(InstructionIndex(copy.start));
    start.operands = {after_loop(copy.stack)};
    const auto operands = body_.operands(InstructionIndex(copy.start));
    for (std::size_t k = 1; k < operands.size(); ++k)
      start.operands.push_back(
          value_of(k, Reference{operands[k].instruction.index, operands[k].node}));
    const Handle started = entry_.add(std::move(start));
    entry_.move_after(started, at);
    ComputationEditor::Node done = clone(InstructionIndex(copy.done));
    done.operands = {{started, 0}};
    const Handle ended = entry_.add(std::move(done));
    entry_.move_after(ended, started);
    return {started, ended};
  }

  std::pair<Handle, Handle> add_pair_before(const SliceCopy& copy, Handle before,
                                            const References& index,
                                            const std::vector<Reference>& initial) {
    ComputationEditor::Node start = clone(InstructionIndex(copy.start));
    start.operands = {initial[copy.stack]};
    const auto operands = body_.operands(InstructionIndex(copy.start));
    for (std::size_t k = 1; k < operands.size(); ++k)
      start.operands.push_back(translate(index, initial, operands[k]));
    const Handle started = entry_.add(std::move(start));
    entry_.move_before(started, before);
    ComputationEditor::Node done = clone(InstructionIndex(copy.done));
    done.operands = {{started, 0}};
    const Handle ended = entry_.add(std::move(done));
    entry_.move_before(ended, before);
    return {started, ended};
  }

  /// The body once in the entry, in front of `before` or else behind the loop, without the copies
  /// and without its root. What a reload fetches is what the loop carries.
  template <typename ElementOf>
  References inline_body(std::optional<Handle> before, ElementOf element_of) {
    References known;
    std::set<Handle> left_out{parameter(), root()};
    for (const auto& copies : {offloads_, reloads_})
      for (const SliceCopy& copy : copies) {
        left_out.insert(copy.start);
        left_out.insert(copy.done);
      }
    for (std::size_t k = 0; k < reloads_.size(); ++k)
      known[reloads_[k].done] = after_loop(counts_ + static_cast<std::uint32_t>(k));
    Handle at = loop_handle();
    for (const InstructionIndex i : body_.instructions()) {
      if (left_out.contains(i.index)) continue;
      ComputationEditor::Node node = clone(i);
      for (const Operand& operand : body_.operands(i)) {
        if (operand.instruction.index == parameter()) {
          node.operands.push_back(element_of(operand.node - 1));
        } else {
          const Reference& base = known.at(operand.instruction.index);
          node.operands.push_back({base.handle, base.node + operand.node});
        }
      }
      const Handle handle = entry_.add(std::move(node));
      if (before) {
        entry_.move_before(handle, *before);
      } else {
        entry_.move_after(handle, at);
        at = handle;
      }
      known[i.index] = {handle, 0};
    }
    return known;
  }

  /// Whoever read what the loop returned reads what the last iteration made of it.
  void redirect_readers(const References& last, const std::vector<Reference>& results) {
    std::set<Handle> own;
    for (const auto& [from, to] : last) own.insert(to.handle);
    for (const Handle user : entry_.users(loop_handle())) {
      if (own.contains(user)) continue;
      for (Reference& operand : entry_[user].operands)
        if (operand.handle == loop_handle() && operand.node > 0 && operand.node <= counts_)
          operand = results[operand.node - 1];
    }
  }

  /// The carry with `extras` behind its elements: in body, condition, loop and what it begins with.
  void widen(const std::vector<Reference>& extras) {
    ComputationEditor& body = editor_.edit(body_id_);
    std::vector<Shape> elements;
    const Shape carry = body_.root_instruction().shape;
    for (std::uint32_t k = 0; k < counts_; ++k) elements.push_back(carry.element(k));
    for (const Reference& value : extras) {
      elements.push_back(body.shape_of(value));
      body[root()].operands.push_back(value);
    }
    const Shape wide = make_tuple_shape(elements, storage_);
    body[parameter()].instruction.shape = wide;
    body[root()].instruction.shape = wide;
    entry_[loop_handle()].instruction.shape = wide;
    entry_[before_loop()].instruction.shape = wide;
    const ComputationId condition = program_[loop_.computation].called(loop_.instruction)[0];
    editor_.edit(condition)[program_[condition].parameters()[0].index].instruction.shape = wide;
  }

  void set_trip_count(std::int64_t trips) {
    for (Attribute& attribute : entry_[loop_handle()].attributes) {
      if (attribute.name != "backend_config") continue;
      std::string config(attribute.value);
      const std::size_t key = config.find("known_trip_count");
      const std::size_t begin = config.find_first_of("0123456789", key);
      if (key == std::string::npos || begin == std::string::npos) continue;
      const std::size_t end = config.find_first_not_of("0123456789", begin);
      config.replace(begin, end - begin, std::to_string(trips));
      attribute.value = editor_.text(std::move(config));
    }
  }

  const Program& program_;
  ProgramEditor& editor_;
  const InstructionId loop_;
  const ComputationId body_id_;
  const Computation& body_;
  ComputationEditor& entry_;
  RewriteStorage& storage_;
  std::vector<SliceCopy> offloads_, reloads_;
  std::uint32_t counts_ = 0;  ///< elements of the carry, before
  int names_ = 0;
};

}  // namespace

Program pipeline_host_copies(const Program& program) {
  ProgramEditor editor(program);
  const Computation& entry = program.entry_computation();
  for (const InstructionIndex i : entry.instructions())
    if (entry[i].opcode == Opcode::kWhile) LoopPipeliner(program, editor, {program.entry, i}).run();
  return editor.finish();
}

}  // namespace spillway
