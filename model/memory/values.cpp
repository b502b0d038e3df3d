#include "model/memory/values.h"

#include <algorithm>
#include <map>

#include "model/memory/phi_graph.h"
#include "model/program/call_graph.h"

namespace spillway {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

/// What stands at one position before values are known.
struct Source {
  enum Kind : std::uint8_t { kDefines, kForwards, kPhi } kind = kDefines;
  std::uint32_t target = kNone;  ///< kForwards: the position; kPhi: number of the phi
};

}  // namespace

class ValueTableBuilder {
 public:
  ValueTableBuilder(const Program& program, const FlatSchedule& flat)
      : program_(program), flat_(flat) {}

  ValueTable build() {
    order_computations();
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
  void order_computations();
  void lay_out();
  void describe(InstructionIndex i);
  void describe_tuple(InstructionIndex i);
  void describe_async_start(InstructionIndex i);
  void describe_done(InstructionIndex i, ShapeNodeIndex from);
  void describe_while(InstructionIndex i);
  void describe_parameter(InstructionIndex i);
  void number_definitions();
  void simplify_phis();
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
  Operand operand(InstructionIndex i, std::uint32_t number) const {
    const auto operands = computation_->operands(i);
    check(number < operands.size(), "an instruction that hands something on has no operand");
    return operands[number];
  }
  ComputationId callee(InstructionIndex i, std::uint32_t number) const {
    const auto called = computation_->called(i);
    check(number < called.size(), "an instruction that runs a computation names none");
    return called[number];
  }

  void forward(std::uint32_t from, std::uint32_t to) { sources_[from] = {Source::kForwards, to}; }
  /// Lets `count` nodes from `from` on stand for those from `to` on.
  void forward_all(std::uint32_t from, std::uint32_t to, std::uint32_t count) {
    check(to + count <= sources_.size(), "an instruction hands on more than its operand has");
    for (std::uint32_t k = 0; k < count; ++k) forward(from + k, to + k);
  }
  /// As forward_all, but tuples define their own pointer table.
  void forward_arrays(InstructionIndex i, ShapeNodeIndex node, std::uint32_t to) {
    const Shape part = shape(i).at(node);
    check(to + part.node_count() <= sources_.size(), "an async pair has more than its operands");
    for (ShapeNodeIndex k = 0; k < part.node_count(); ++k)
      if (!part.at(k).is_tuple()) forward(here(i, node + k), to + k);
  }
  void make_phi(std::uint32_t at, std::vector<std::uint32_t> inputs) {
    sources_[at] = {Source::kPhi, static_cast<std::uint32_t>(phis_.size())};
    phis_.push_back({at, std::move(inputs)});
  }

  /// The definition (by its position) or the phi that a position shows.
  PhiGraph::Origin resolve(std::uint32_t at);

  const Program& program_;
  const FlatSchedule& flat_;
  ValueTable table_;
  std::vector<ComputationId> order_;
  std::vector<Source> sources_;
  std::vector<Position> place_;  ///< of each position
  struct Phi {
    std::uint32_t position = 0;
    std::vector<std::uint32_t> inputs;  ///< positions
  };
  std::vector<Phi> phis_;
  PhiGraph graph_;
  std::vector<ValueId> value_of_definition_;  ///< by position
  std::vector<ValueId> value_of_phi_;
  const Computation* computation_ = nullptr;
  ComputationId id_;
};

/// The order in which XLA numbers computations, as far as text tells it: loop conditions, then what
/// async starts wrap, then the rest, callees first.
void ValueTableBuilder::order_computations() {
  const auto rank = [this](ComputationId id) {
    if (id == program_.entry) return 3;
    const InstructionId caller = *flat_.caller[id];
    const bool is_condition = program_[caller].opcode == Opcode::kWhile &&
                              program_[caller.computation].called(caller.instruction)[0] == id;
    if (is_condition) return 0;
    const bool wraps_alone = program_[caller].opcode == Opcode::kAsyncStart &&
                             program_[id].root_instruction().opcode != Opcode::kFusion;
    return wraps_alone ? 1 : 2;
  };
  for (const ComputationId id : ids(program_.computations))
    if (flat_.reaches(id)) order_.push_back(id);
  std::ranges::stable_sort(order_, {}, rank);
  // Wrapped fusions that start in one computation come in the order in which they start.
  std::map<ComputationId, std::vector<std::size_t>> wrapped_in;
  for (std::size_t k = 0; k < order_.size(); ++k)
    if (const auto caller = flat_.caller[order_[k]];
        rank(order_[k]) == 2 && program_[*caller].opcode == Opcode::kAsyncStart)
      wrapped_in[caller->computation].push_back(k);
  for (const auto& [id, places] : wrapped_in) {
    std::vector<ComputationId> wrapped;
    for (const std::size_t k : places) wrapped.push_back(order_[k]);
    std::ranges::sort(wrapped, {}, [this](ComputationId w) { return flat_.span[w].start; });
    for (std::size_t k = 0; k < places.size(); ++k) order_[places[k]] = wrapped[k];
  }
}

void ValueTableBuilder::lay_out() {
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
  const std::uint32_t nodes = in.shape.node_count();
  switch (in.opcode) {
    case Opcode::kBitcast:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
    case Opcode::kOptimizationBarrier:
    case Opcode::kAllReduceDone:
      return forward_all(here(i, 0), position(id_, operand(i, 0)), nodes);
    case Opcode::kCopy:
      if (nodes > 1) forward_all(here(i, 1), position(id_, operand(i, 0)) + 1, nodes - 1);
      return;
    case Opcode::kTuple:
      return describe_tuple(i);
    case Opcode::kCopyStart:
      return forward(here(i, in.shape.element_node(1)), position(id_, operand(i, 0)));
    case Opcode::kSend:
      return forward_all(here(i, in.shape.element_node(0)), position(id_, operand(i, 0)),
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
      return forward_arrays(i, in.shape.element_node(0), position(id_, operand(i, 0)) + 1);
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kReduceScatterDone:
    case Opcode::kAllToAllDone:
    case Opcode::kAsyncDone:
      return describe_done(i, computation_->shape_of(operand(i, 0)).element_node(1));
    case Opcode::kCall:
      return forward_all(here(i, 0), position(callee(i, 0), program_[callee(i, 0)].root()), nodes);
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

void ValueTableBuilder::describe_tuple(InstructionIndex i) {
  ShapeNodeIndex node = 1;
  for (const Operand& element : computation_->operands(i)) {
    const std::uint32_t nodes = computation_->shape_of(element).node_count();
    check(node + nodes <= shape(i).node_count(), "a tuple holds more than its shape says");
    forward_all(here(i, node), position(id_, element), nodes);
    node += nodes;
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
    const std::uint32_t from = position(id_, operand(i, 0));
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
  const ComputationId wrapped = callee(i, 0);
  forward_arrays(i, result, position(wrapped, program_[wrapped].root()));
}

void ValueTableBuilder::describe_done(InstructionIndex i, ShapeNodeIndex from) {
  forward_arrays(i, 0, position(id_, operand(i, 0)) + from);
}

/// At each element of a loop's state meet what it starts with and what an iteration hands on.
void ValueTableBuilder::describe_while(InstructionIndex i) {
  const ComputationId condition = callee(i, 0);
  const ComputationId body = callee(i, 1);
  const std::uint32_t init = position(id_, operand(i, 0));
  const std::uint32_t next = position(body, program_[body].root());
  const std::uint32_t nodes = (*computation_)[i].shape.node_count();
  for (const ComputationId id : {condition, body}) {
    check(program_[id].parameters().size() == 1, "a loop's computations take one parameter");
    const InstructionIndex parameter = program_[id].parameters()[0];
    for (ShapeNodeIndex node = 0; node < nodes; ++node)
      make_phi(position(id, parameter, node), {init + node, next + node});
  }
  for (ShapeNodeIndex node = 0; node < nodes; ++node)
    make_phi(here(i, node), {next + node, init + node});
}

void ValueTableBuilder::describe_parameter(InstructionIndex i) {
  if (id_ == program_.entry) return;
  const InstructionId caller = *flat_.caller[id_];
  const Computation& outer = program_[caller.computation];
  const Opcode opcode = outer[caller.instruction].opcode;
  if (opcode == Opcode::kWhile) return;  // describe_while did it, or will
  std::size_t number = parameter_number((*computation_)[i]);
  if (opcode == Opcode::kConditional) {  // operand 0 chooses; each branch takes one of the others
    const auto branches = outer.called(caller.instruction);
    number = 1 + static_cast<std::size_t>(std::ranges::find(branches, id_) - branches.begin());
  }
  const auto operands = outer.operands(caller.instruction);
  if (number >= operands.size()) return;
  forward_all(here(i, 0), position(caller.computation, operands[number]), shape(i).node_count());
}

PhiGraph::Origin ValueTableBuilder::resolve(std::uint32_t at) {
  std::uint32_t end = at;
  while (sources_[end].kind == Source::kForwards) end = sources_[end].target;
  // Later look-ups of the same chain take one step.
  for (std::uint32_t step = at; sources_[step].kind == Source::kForwards && step != end;) {
    const std::uint32_t next = sources_[step].target;
    sources_[step].target = end;
    step = next;
  }
  const Source& source = sources_[end];
  return source.kind == Source::kPhi ? PhiGraph::Origin{true, source.target}
                                     : PhiGraph::Origin{false, end};
}

void ValueTableBuilder::number_definitions() {
  value_of_definition_.assign(sources_.size(), ValueId(kNone));
  for (const ComputationId id : order_) {
    for (const InstructionIndex i : instruction_post_order(program_[id])) {
      const Shape whole = program_[id][i].shape;
      for (ShapeNodeIndex node = 0; node < whole.node_count(); ++node) {
        const std::uint32_t at = position(id, i, node);
        if (sources_[at].kind != Source::kDefines) continue;
        value_of_definition_[at] = table_.values_.push({{{id, i}, node}, false, whole.at(node)});
      }
    }
  }
}

void ValueTableBuilder::simplify_phis() {
  for (const Phi& phi : phis_) {
    std::vector<PhiGraph::Origin> inputs;
    for (const std::uint32_t input : phi.inputs) inputs.push_back(resolve(input));
    graph_.add(std::move(inputs));
  }
  graph_.simplify();
}

void ValueTableBuilder::number_phis() {
  value_of_phi_.assign(phis_.size(), ValueId(kNone));
  for (std::uint32_t phi = 0; phi < phis_.size(); ++phi) {
    const PhiGraph::Origin self{true, phi};
    if (graph_.settle(self) != self) continue;
    const Position at = place_[phis_[phi].position];
    const Shape whole = program_[at.instruction].shape;
    value_of_phi_[phi] = table_.values_.push({at, true, whole.at(at.node)});
  }
}

void ValueTableBuilder::fill() {
  table_.value_at_.resize(sources_.size());
  for (std::uint32_t at = 0; at < sources_.size(); ++at) {
    const PhiGraph::Origin origin = graph_.settle(resolve(at));
    table_.value_at_[at] =
        origin.is_phi ? value_of_phi_[origin.index] : value_of_definition_[origin.index];
  }
}

ValueTable make_values(const Program& program, const FlatSchedule& schedule) {
  return ValueTableBuilder(program, schedule).build();
}

}  // namespace spillway
