#include "model/residuals/crossing_values.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "model/program/host_transfer.h"

namespace spillway {
namespace {

/// What makes two values of different layers the same one: type, size, JAX operation, line.
using Maker = std::tuple<ElementType, std::int64_t, std::string_view, std::string_view>;

bool is_activation(ElementType type) {
  return type != ElementType::kPred && type != ElementType::kOpaque;
}

/// Of each instruction whether it hangs on no more than one parameter: weights, cast or sliced out
/// of a stack of them. What layers hand on hangs on the data too.
std::vector<char> find_weights(const Computation& entry) {
  std::vector<std::optional<InstructionIndex>> hangs_on(entry.size());
  std::vector<char> is_weight(entry.size(), 1);
  for (const InstructionIndex i : entry.instructions()) {
    if (entry[i].opcode == Opcode::kParameter) hangs_on[i.index] = i;
    for (const Operand& operand : entry.operands(i)) {
      const auto& from = hangs_on[operand.instruction.index];
      if (is_weight[operand.instruction.index] == 0 ||
          (from && hangs_on[i.index] && *from != *hangs_on[i.index]))
        is_weight[i.index] = 0;
      if (from) hangs_on[i.index] = from;
    }
  }
  return is_weight;
}

class GroupFinder {
 public:
  GroupFinder(const Program& program, const StepParts& parts)
      : program_(program), entry_(program.entry_computation()), parts_(parts), sets_(program) {}

  std::vector<CrossingGroup> run() {
    collect();
    join_first_inputs();
    const std::size_t layers = common_size();
    if (layers < 2) return {};
    const std::vector<Operand> inputs = find_inputs(layers);
    if (inputs.empty()) return {};
    label_ = forward_layers(program_, parts_, inputs);
    std::vector<CrossingGroup> groups = {{inputs, true}};
    for (const auto& [maker, values] : by_maker_)
      if (values != inputs) split(values, layers, groups);
    // The order of the program is that of most layers: XLA's differs in some.
    std::vector<std::pair<std::size_t, std::size_t>> order;  // rank, and which
    for (std::size_t k = 0; k < groups.size(); ++k)
      order.emplace_back(groups[k].is_layer_input ? 0 : 1 + median_rank(groups[k], groups), k);
    std::ranges::sort(order);
    std::vector<CrossingGroup> sorted;
    for (const auto& [rank, k] : order) sorted.push_back(std::move(groups[k]));
    return sorted;
  }

 private:
  void collect();
  void join_first_inputs();
  std::size_t common_size() const;
  std::vector<Operand> find_inputs(std::size_t layers) const;
  void split(const std::vector<Operand>& values, std::size_t layers,
             std::vector<CrossingGroup>& groups);
  std::vector<std::uint32_t> own_parameters(Operand value);
  static std::size_t median_rank(const CrossingGroup& group,
                                 const std::vector<CrossingGroup>& groups);

  const Program& program_;
  const Computation& entry_;
  const StepParts& parts_;
  ParameterSets sets_;
  std::map<Maker, std::vector<Operand>> by_maker_;
  std::set<Operand> crossing_;
  std::vector<std::optional<std::uint32_t>> label_;
};

void GroupFinder::collect() {
  const std::vector<char> is_weight = find_weights(entry_);
  for (const InstructionIndex i : entry_.instructions()) {
    const Instruction& in = entry_[i];
    if (parts_.part(i) != StepPart::kForward || is_free(in) || parts_.hands_on(i) ||
        is_async_start(in.opcode) || is_weight[i.index] != 0)
      continue;
    for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node) {
      const Shape shape = in.shape.at(node);
      if (!shape.is_array() || !is_activation(shape.type())) continue;
      if (backward_reads(program_, parts_, {i, node}).empty()) continue;
      crossing_.insert({i, node});
      by_maker_[{shape.type(), shape.bytes().value(), metadata_field(entry_, i, "op_name"),
                 metadata_field(entry_, i, "stack_frame_id")}]
          .push_back({i, node});
    }
  }
}

/// The first layer's input is the embedding's output, and alone of its kind; the others are the
/// output of the layer before.
void GroupFinder::join_first_inputs() {
  const auto supported = [this](std::size_t size) {
    return std::ranges::count_if(by_maker_, [size](const auto& group) {
      return group.second.size() % size == 0 && group.second.size() > 1;
    });
  };
  for (auto& [maker, values] : by_maker_) {
    const std::size_t size = values.size();
    if (size < 2 || supported(size) > 1) continue;
    for (auto& [other_maker, other] : by_maker_) {
      const bool alike = std::get<0>(maker) == std::get<0>(other_maker) &&
                         std::get<1>(maker) == std::get<1>(other_maker);
      if (other.size() != 1 || !alike || other.front() > values.front()) continue;
      values.insert(values.begin(), other.front());
      other.clear();
      break;
    }
  }
}

/// How many layers there are: the size that most groups have, the larger of equals.
std::size_t GroupFinder::common_size() const {
  std::map<std::size_t, std::size_t> count;
  for (const auto& [maker, values] : by_maker_)
    if (values.size() > 1) ++count[values.size()];
  std::size_t best = 0, groups = 0;
  for (const auto& [size, number] : count)
    if (number >= groups) best = size, groups = number;
  return best;
}

/// What all others of a layer are made of: the group that begins first.
std::vector<Operand> GroupFinder::find_inputs(std::size_t layers) const {
  const std::vector<Operand>* first = nullptr;
  for (const auto& [maker, values] : by_maker_)
    if (values.size() == layers && (first == nullptr || values.front() < first->front()))
      first = &values;
  return first == nullptr ? std::vector<Operand>() : *first;
}

/// Values made alike, several a layer perhaps: one group each. Those of a layer are told apart by
/// the weights they are made with, whose numbers have the same order in every layer.
void GroupFinder::split(const std::vector<Operand>& values, std::size_t layers,
                        std::vector<CrossingGroup>& groups) {
  if (values.empty() || values.size() % layers != 0) return;
  const std::size_t each = values.size() / layers;
  std::vector<std::vector<Operand>> by_layer(layers);
  for (const Operand& value : values)
    if (const auto layer = label_[value.instruction.index]) by_layer[*layer].push_back(value);
  for (std::vector<Operand>& of_layer : by_layer) {
    if (of_layer.size() != each) return;
    if (each > 1)
      std::ranges::stable_sort(of_layer, {}, [this](Operand v) { return own_parameters(v); });
  }
  for (std::size_t k = 0; k < each; ++k) {
    CrossingGroup group;
    for (const std::vector<Operand>& of_layer : by_layer) group.layers.push_back(of_layer[k]);
    groups.push_back(std::move(group));
  }
}

/// Those that a value is made with since the last value that crosses.
std::vector<std::uint32_t> GroupFinder::own_parameters(Operand value) {
  std::set<std::uint32_t> numbers;
  std::set<InstructionIndex> seen;
  std::vector<Operand> open(entry_.operands(value.instruction).begin(),
                            entry_.operands(value.instruction).end());
  while (!open.empty()) {
    const Operand at = open.back();
    open.pop_back();
    if (!label_[at.instruction.index]) {
      const auto& set = sets_.of(at);
      numbers.insert(set.begin(), set.end());
      continue;
    }
    if (crossing_.contains(at) || !seen.insert(at.instruction).second) continue;
    for (const Operand& operand : entry_.operands(at.instruction)) open.push_back(operand);
  }
  return {numbers.begin(), numbers.end()};
}

std::size_t GroupFinder::median_rank(const CrossingGroup& group,
                                     const std::vector<CrossingGroup>& groups) {
  std::vector<std::size_t> ranks;
  for (std::size_t layer = 0; layer < group.layers.size(); ++layer)
    ranks.push_back(
        static_cast<std::size_t>(std::ranges::count_if(groups, [&](const CrossingGroup& other) {
          return other.layers[layer] < group.layers[layer];
        })));
  std::ranges::sort(ranks);
  return ranks[ranks.size() / 2];
}

}  // namespace

std::vector<CrossingGroup> find_crossing_groups(const Program& program, const StepParts& parts) {
  return GroupFinder(program, parts).run();
}

std::vector<UnrolledValue::Read> backward_reads(const Program& program, const StepParts& parts,
                                                Operand value) {
  const Computation& entry = program.entry_computation();
  std::vector<UnrolledValue::Read> reads;
  std::vector<Operand> names = {value};
  for (std::size_t k = 0; k < names.size(); ++k) {
    for (const Use& use : entry.uses(names[k].instruction)) {
      if (entry.operands(use.user)[use.operand_number] != names[k]) continue;
      if (const auto next = parts.handed_on(use))
        names.push_back(*next);
      else if (parts.is_checkpointed(use.user))
        reads.push_back({use.user, use.operand_number});
    }
  }
  std::ranges::sort(reads, {}, [](const UnrolledValue::Read& read) {
    return std::pair(read.reader, read.operand);
  });
  return reads;
}

std::vector<std::optional<std::uint32_t>> forward_layers(const Program& program,
                                                         const StepParts& parts,
                                                         const std::vector<Operand>& inputs) {
  const Computation& entry = program.entry_computation();
  std::vector<std::optional<std::uint32_t>> layers(entry.size());
  std::map<InstructionIndex, std::uint32_t> begins;
  for (std::uint32_t layer = 0; layer < inputs.size(); ++layer)
    begins[inputs[layer].instruction] = layer;
  for (const InstructionIndex i : entry.instructions()) {
    if (parts.part(i) != StepPart::kForward) continue;
    for (const Operand& operand : entry.operands(i))
      layers[i.index] = std::max(layers[i.index], layers[operand.instruction.index]);
    if (const auto found = begins.find(i); found != begins.end()) layers[i.index] = found->second;
  }
  return layers;
}

/// Of a combined collective, the operand that a result of its done is made of.
std::optional<Operand> ParameterSets::own_operand(Operand value) const {
  if (entry_[value.instruction].opcode != Opcode::kAsyncDone || value.node == 0)
    return std::nullopt;
  const InstructionIndex start = entry_.operands(value.instruction)[0].instruction;
  const auto operands = entry_.operands(start);
  const Shape result = entry_[value.instruction].shape;
  if (entry_[start].opcode != Opcode::kAsyncStart || result.tuple_size() != operands.size())
    return std::nullopt;
  const Computation& wrapped = program_[entry_.called(start)[0]];
  if (!is_collective(wrapped.root_instruction().opcode)) return std::nullopt;
  return operands[result.path(value.node)[0]];
}

const std::vector<std::uint32_t>& ParameterSets::of(Operand value) {
  const auto found = known_.find(value);
  if (found != known_.end()) return found->second;
  std::set<std::uint32_t> numbers;
  const auto add = [&](Operand operand) {
    const auto& set = of(operand);
    numbers.insert(set.begin(), set.end());
  };
  if (entry_[value.instruction].opcode == Opcode::kParameter)
    numbers.insert(parameter_number(entry_[value.instruction]));
  else if (const auto own = own_operand(value))
    add(*own);
  else
    for (const Operand& operand : entry_.operands(value.instruction)) add(operand);
  return known_[value] = {numbers.begin(), numbers.end()};
}

}  // namespace spillway
