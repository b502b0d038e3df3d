#include "model/memory/values.h"

#include <algorithm>

#include "model/program/call_graph.h"

namespace spillway {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

/// What stands at one position before values are known.
struct Source {
  enum Kind : std::uint8_t { kDefines, kForwards, kPhi } kind = kDefines;
  std::uint32_t target = kNone;  ///< kForwards: the position; kPhi: index into the phis
};

/// A value that a loop or a conditional may make: one of several that reach the same place.
struct Phi {
  std::uint32_t position = 0;
  std::vector<std::uint32_t> inputs;   ///< positions
  std::vector<std::uint32_t> reached;  ///< indices of definitions or phis, resolved from `inputs`
  std::uint32_t same_as = kNone;       ///< the one definition or phi it turns out to be
};

}  // namespace

class ValueTableBuilder {
 public:
  ValueTableBuilder(const Program& program, const FlatSchedule& flat)
      : program_(program), flat_(flat) {}

  ValueTable build() {
    lay_out();
    for (const ComputationId id : order_) {
      computation_ = &program_[id];
      id_ = id;
      for (const InstructionIndex i : computation_->instructions()) describe(i);
    }
    number_definitions();
    simplify_phis();
    number_phis();
    fill();
    return std::move(table_);
  }

 private:
  void lay_out();
  void describe(InstructionIndex i);
  void describe_async_start(InstructionIndex i);
  void describe_done(InstructionIndex i, ShapeNodeIndex from);
  void describe_while(InstructionIndex i);
  void describe_parameter(InstructionIndex i);
  void number_definitions();
  void simplify_phis();
  bool collapse(std::uint32_t phi);
  bool collapse_closure(std::uint32_t phi);
  void number_phis();
  void fill();

  std::uint32_t position(ComputationId id, InstructionIndex i, ShapeNodeIndex node) const {
    return table_.base_[id][i.index] + node;
  }
  std::uint32_t position(ComputationId id, Operand operand) const {
    return position(id, operand.instruction, operand.node);
  }
  std::uint32_t here(InstructionIndex i, ShapeNodeIndex node) const {
    return position(id_, i, node);
  }
  Shape shape(InstructionIndex i) const { return (*computation_)[i].shape; }

  void forward(std::uint32_t from, std::uint32_t to) { sources_[from] = {Source::kForwards, to}; }
  /// Lets `count` nodes from `from` on stand for those from `to` on.
  void forward_all(std::uint32_t from, std::uint32_t to, std::uint32_t count) {
    for (std::uint32_t k = 0; k < count; ++k) forward(from + k, to + k);
  }
  /// As forward_all, but tuples define their own pointer table.
  void forward_arrays(InstructionIndex i, ShapeNodeIndex node, std::uint32_t to) {
    const Shape part = shape(i).at(node);
    for (ShapeNodeIndex k = 0; k < part.node_count(); ++k)
      if (!part.at(k).is_tuple()) forward(here(i, node + k), to + k);
  }
  void make_phi(std::uint32_t at, std::vector<std::uint32_t> inputs) {
    sources_[at] = {Source::kPhi, static_cast<std::uint32_t>(phis_.size())};
    phis_.push_back({at, std::move(inputs), {}, kNone});
  }

  /// A definition or phi, as one number: definitions by position, phis behind all positions.
  std::uint32_t resolve(std::uint32_t at);
  bool is_phi(std::uint32_t origin) const { return origin >= sources_.size(); }
  std::uint32_t phi_origin(std::uint32_t phi) const {
    return static_cast<std::uint32_t>(sources_.size()) + phi;
  }
  /// Follows phis that turned out to be something else.
  std::uint32_t settle(std::uint32_t origin) const {
    while (is_phi(origin) && phis_[origin - sources_.size()].same_as != kNone)
      origin = phis_[origin - sources_.size()].same_as;
    return origin;
  }

  const Program& program_;
  const FlatSchedule& flat_;
  ValueTable table_;
  std::vector<ComputationId> order_;
  std::vector<Source> sources_;
  std::vector<Position> place_;  ///< of each position
  std::vector<Phi> phis_;
  std::vector<ValueId> value_of_origin_;  ///< by origin
  const Computation* computation_ = nullptr;
  ComputationId id_;
};

void ValueTableBuilder::lay_out() {
  // XLA numbers loop conditions first, then what async starts wrap, then the rest callees first.
  const auto rank = [this](ComputationId id) {
    if (id == program_.entry) return 3;
    const InstructionId caller = *flat_.caller[id];
    const Instruction& in = program_[caller];
    if (in.opcode == Opcode::kWhile &&
        program_[caller.computation].called(caller.instruction)[0] == id)
      return 0;
    return in.opcode == Opcode::kAsyncStart &&
                   program_[id].root_instruction().opcode != Opcode::kFusion
               ? 1
               : 2;
  };
  for (const ComputationId id : ids(program_.computations))
    if (flat_.reaches(id)) order_.push_back(id);
  std::ranges::stable_sort(order_, {}, rank);

  table_.base_.resize(program_.computations.size());
  std::uint32_t next = 0;
  for (const ComputationId id : order_) {
    const Computation& computation = program_[id];
    auto& base = table_.base_[id];
    base.reserve(computation.size());
    for (const InstructionIndex i : computation.instructions()) {
      base.push_back(next);
      const std::uint32_t nodes = computation[i].shape.node_count();
      for (ShapeNodeIndex node = 0; node < nodes; ++node) place_.push_back({{id, i}, node});
      next += nodes;
    }
  }
  sources_.resize(next);
}

void ValueTableBuilder::describe(InstructionIndex i) {
  const Instruction& in = (*computation_)[i];
  const auto operands = computation_->operands(i);
  const std::uint32_t nodes = in.shape.node_count();
  switch (in.opcode) {
    case Opcode::kBitcast:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
    case Opcode::kOptimizationBarrier:
    case Opcode::kAllReduceDone:
      return forward_all(here(i, 0), position(id_, operands[0]), nodes);
    case Opcode::kCopy:
      if (nodes > 1) forward_all(here(i, 1), position(id_, operands[0]) + 1, nodes - 1);
      return;
    case Opcode::kTuple:
      for (std::uint32_t k = 0; k < operands.size(); ++k)
        forward_all(here(i, in.shape.element_node(k)), position(id_, operands[k]),
                    in.shape.element(k).node_count());
      return;
    case Opcode::kCopyStart:
      return forward(here(i, in.shape.element_node(1)), position(id_, operands[0]));
    case Opcode::kSend:
      return forward_all(here(i, in.shape.element_node(0)), position(id_, operands[0]),
                         in.shape.element(0).node_count());
    case Opcode::kAllGatherStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kReduceScatterStart:
    case Opcode::kAllToAllStart:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
      return describe_async_start(i);
    case Opcode::kCopyDone:
      return describe_done(i, 1);
    case Opcode::kRecvDone:
      return forward_arrays(i, in.shape.element_node(0), position(id_, operands[0]) + 1);
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kReduceScatterDone:
    case Opcode::kAllToAllDone:
    case Opcode::kAsyncDone:
      return describe_done(i, computation_->shape_of(operands[0]).element_node(1));
    case Opcode::kCall:
      return forward_all(
          here(i, 0),
          position(computation_->called(i)[0], program_[computation_->called(i)[0]].root()), nodes);
    case Opcode::kWhile:
      return describe_while(i);
    case Opcode::kConditional:
      for (ShapeNodeIndex node = 0; node < nodes; ++node) {
        std::vector<std::uint32_t> inputs;
        for (const ComputationId branch : computation_->called(i))
          inputs.push_back(position(branch, program_[branch].root()) + node);
        make_phi(here(i, node), std::move(inputs));
      }
      return;
    case Opcode::kParameter:
      return describe_parameter(i);
    default:
      return;  // defines everything
  }
}

/// ((operands…), result, contexts…): operands pass through, the result is what the wrapped
/// computation makes, tuples and contexts are new.
void ValueTableBuilder::describe_async_start(InstructionIndex i) {
  const Instruction& in = (*computation_)[i];
  const auto operands = computation_->operands(i);
  if (in.shape.tuple_size() < 2) return;
  const ShapeNodeIndex inputs = in.shape.element_node(0);
  const ShapeNodeIndex result = in.shape.element_node(1);
  if (in.opcode == Opcode::kAsyncUpdate) {
    const std::uint32_t from = position(id_, operands[0]);
    forward_arrays(i, inputs, from + inputs);
    return forward_arrays(i, result, from + result);
  }
  const Shape input_shape = in.shape.element(0);
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    if (input_shape.is_tuple() && k >= input_shape.tuple_size()) break;
    const ShapeNodeIndex node =
        input_shape.is_tuple() ? inputs + input_shape.element_node(k) : inputs;
    forward_arrays(i, node, position(id_, operands[k]));
  }
  if (in.opcode != Opcode::kAsyncStart) return;  // the older forms define their result themselves
  const ComputationId wrapped = computation_->called(i)[0];
  forward_arrays(i, result, position(wrapped, program_[wrapped].root()));
}

void ValueTableBuilder::describe_done(InstructionIndex i, ShapeNodeIndex from) {
  forward_arrays(i, 0, position(id_, computation_->operands(i)[0]) + from);
}

/// At each element of a loop's state meet what it starts with and what an iteration hands on.
void ValueTableBuilder::describe_while(InstructionIndex i) {
  const ComputationId condition = computation_->called(i)[0];
  const ComputationId body = computation_->called(i)[1];
  const std::uint32_t init = position(id_, computation_->operands(i)[0]);
  const std::uint32_t next = position(body, program_[body].root());
  const std::uint32_t nodes = (*computation_)[i].shape.node_count();
  for (const ComputationId callee : {condition, body}) {
    const InstructionIndex parameter = program_[callee].parameters()[0];
    for (ShapeNodeIndex node = 0; node < nodes; ++node)
      make_phi(position(callee, parameter, node), {init + node, next + node});
  }
  for (ShapeNodeIndex node = 0; node < nodes; ++node)
    make_phi(here(i, node), {next + node, init + node});
}

void ValueTableBuilder::describe_parameter(InstructionIndex i) {
  if (id_ == program_.entry) return;
  const InstructionId caller = *flat_.caller[id_];
  const Computation& outer = program_[caller.computation];
  const std::uint32_t number = parameter_number((*computation_)[i]);
  const auto operands = outer.operands(caller.instruction);
  std::uint32_t operand = number;
  switch (outer[caller.instruction].opcode) {
    case Opcode::kWhile:
      return;  // describe_while did it, or will
    case Opcode::kConditional: {
      const auto branches = outer.called(caller.instruction);
      operand = 1 + static_cast<std::uint32_t>(std::ranges::find(branches, id_) - branches.begin());
      break;
    }
    default:
      break;
  }
  if (operand >= operands.size()) return;
  forward_all(here(i, 0), position(caller.computation, operands[operand]), shape(i).node_count());
}

std::uint32_t ValueTableBuilder::resolve(std::uint32_t at) {
  std::uint32_t origin = at;
  while (sources_[origin].kind == Source::kForwards) origin = sources_[origin].target;
  // Later look-ups of the same chain take one step.
  for (std::uint32_t step = at; sources_[step].kind == Source::kForwards && step != origin;) {
    const std::uint32_t next = sources_[step].target;
    sources_[step].target = origin;
    step = next;
  }
  if (sources_[origin].kind == Source::kPhi) return phi_origin(sources_[origin].target);
  return origin;
}

void ValueTableBuilder::number_definitions() {
  value_of_origin_.assign(sources_.size() + phis_.size(), ValueId(kNone));
  for (const ComputationId id : order_) {
    for (const InstructionIndex i : instruction_post_order(program_[id])) {
      const Shape whole = program_[id][i].shape;
      for (ShapeNodeIndex node = 0; node < whole.node_count(); ++node) {
        const std::uint32_t at = position(id, i, node);
        if (sources_[at].kind != Source::kDefines) continue;
        value_of_origin_[at] = table_.values_.push({{{id, i}, node}, false, whole.at(node)});
      }
    }
  }
}

void ValueTableBuilder::simplify_phis() {
  for (Phi& phi : phis_)
    for (const std::uint32_t input : phi.inputs) phi.reached.push_back(resolve(input));
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
      if (phis_[phi].same_as == kNone) changed |= collapse(phi);
    if (changed) continue;
    for (std::uint32_t phi = 0; phi < phis_.size(); ++phi)
      if (phis_[phi].same_as == kNone) changed |= collapse_closure(phi);
  }
}

/// A phi that only ever meets one other value, or itself, is that value.
bool ValueTableBuilder::collapse(std::uint32_t phi) {
  std::uint32_t only = kNone;
  for (std::uint32_t& origin : phis_[phi].reached) {
    origin = settle(origin);
    if (origin == phi_origin(phi) || origin == only) continue;
    if (only != kNone) return false;
    only = origin;
  }
  if (only == kNone) return false;
  phis_[phi].same_as = only;
  return true;
}

/// A group of phis that feed each other and otherwise meet a single value are all that value: the
/// carries that nested loops hand through.
bool ValueTableBuilder::collapse_closure(std::uint32_t phi) {
  std::vector<std::uint32_t> group = {phi};
  std::uint32_t only = kNone;
  for (std::size_t k = 0; k < group.size(); ++k) {
    for (const std::uint32_t reached : phis_[group[k]].reached) {
      const std::uint32_t origin = settle(reached);
      if (!is_phi(origin)) {
        if (only != kNone && only != origin) return false;
        only = origin;
        continue;
      }
      const auto other = static_cast<std::uint32_t>(origin - sources_.size());
      if (std::ranges::find(group, other) == group.end()) group.push_back(other);
    }
  }
  if (only == kNone) return false;
  for (const std::uint32_t member : group) phis_[member].same_as = only;
  return true;
}

void ValueTableBuilder::number_phis() {
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi) {
    if (phis_[phi].same_as != kNone) continue;
    const Position at = place_[phis_[phi].position];
    const Shape whole = program_[at.instruction].shape;
    value_of_origin_[phi_origin(phi)] = table_.values_.push({at, true, whole.at(at.node)});
  }
}

void ValueTableBuilder::fill() {
  table_.value_at_.resize(sources_.size());
  for (std::uint32_t at = 0; at < sources_.size(); ++at)
    table_.value_at_[at] = value_of_origin_[settle(resolve(at))];
}

ValueTable make_values(const Program& program, const FlatSchedule& schedule) {
  return ValueTableBuilder(program, schedule).build();
}

}  // namespace spillway
