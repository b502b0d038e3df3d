#include "model/cost/fusion_demand.h"

#include <algorithm>

#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 1.0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::optional<Update> update_of(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  const bool scatters = in.opcode == Opcode::kScatter && in.operand_count == 3;
  if (in.opcode != Opcode::kDynamicUpdateSlice && !scatters) return std::nullopt;
  const Shape update = operand_shape(computation, i, scatters ? 2 : 1);
  return Update{computation.operands(i)[0], update.elements(), update.bytes()};
}

double share_read(const Computation& computation, InstructionIndex i, std::size_t k,
                  bool in_place) {
  const Instruction& in = computation[i];
  const Shape operand = operand_shape(computation, i, k);
  if (k > 0) return 1.0;
  switch (in.opcode) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
      return share(in.shape.elements(), operand.elements());
    case Opcode::kDynamicUpdateSlice: {
      const double updated = share(update_of(computation, i)->elements, operand.elements());
      return in_place ? 0.0 : 1.0 - updated;
    }
    case Opcode::kScatter:
      if (!in_place) return 1.0;
      return share(update_of(computation, i)->elements, operand.elements());
    default:
      return 1.0;
  }
}

FusionDemand::FusionDemand(const Program& program, ComputationId fused)
    : program_(program), computation_(program[fused]), needs_(computation_.size()) {
  need_results();
  for (std::size_t k = computation_.size(); k-- > 0;) propagate(InstructionIndex(k));
}

double FusionDemand::share_of(InstructionIndex i) const {
  const Need& need = needs_[i.index];
  double sum = need.whole ? 1.0 : 0.0;
  for (const InstructionIndex sliced : need.as_in) sum += needs_[sliced.index].sliced;
  return std::min(sum, 1.0);
}

void FusionDemand::need_results() {
  const InstructionIndex root = computation_.root().instruction;
  needs_[root.index].whole = true;
  if (computation_[root].opcode == Opcode::kTuple) {
    for (const Operand& result : computation_.operands(root)) find_in_place(result);
  } else {
    find_in_place({root, 0});
  }
}

void FusionDemand::find_in_place(Operand result) {
  const InstructionIndex source = behind_renamings(computation_, result).instruction;
  const auto update = update_of(computation_, source);
  if (!update) return;
  const InstructionIndex array = behind_renamings(computation_, update->array).instruction;
  if (computation_[array].opcode == Opcode::kParameter) in_place_.push_back(source);
}

bool FusionDemand::is_in_place(InstructionIndex i) const {
  return std::ranges::find(in_place_, i) != in_place_.end();
}

void FusionDemand::propagate(InstructionIndex i) {
  const double needed = share_of(i);
  if (needed == 0) return;
  const bool keeps_elements = reads_element_by_element(i);
  const auto operands = computation_.operands(i);
  const std::vector<double> nested = nested_shares(i);
  check(nested.empty() || nested.size() == operands.size(), "a fusion passes on other operands");
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (keeps_elements) {
      inherit(operands[k].instruction, i);
    } else {
      const double used =
          nested.empty() ? share_read(computation_, i, k, is_in_place(i)) : nested[k];
      add(operands[k].instruction, needed * used);
    }
  }
}

bool FusionDemand::reads_element_by_element(InstructionIndex i) const {
  const Instruction& in = computation_[i];
  if (in.opcode == Opcode::kTuple || is_elementwise(in.opcode)) return true;
  if (in.opcode != Opcode::kBitcast) return false;
  const Shape from = operand_shape(computation_, i, 0);
  return from.is_array() && std::ranges::equal(from.dims(), in.shape.dims());
}

/// Inside a nested fusion, which share of each operand is read.
std::vector<double> FusionDemand::nested_shares(InstructionIndex i) const {
  std::vector<double> shares;
  if (computation_[i].opcode != Opcode::kFusion) return shares;
  const ComputationId nested = called_by(computation_, i);
  const FusionDemand demand(program_, nested);
  for (const InstructionIndex parameter : program_[nested].parameters())
    shares.push_back(demand.share_of(parameter));
  return shares;
}

void FusionDemand::inherit(InstructionIndex operand, InstructionIndex reader) {
  Need& need = needs_[operand.index];
  const Need& from = needs_[reader.index];
  need.whole |= from.whole;
  if (need.whole) return;
  for (const InstructionIndex sliced : from.as_in)
    if (std::ranges::find(need.as_in, sliced) == need.as_in.end()) need.as_in.push_back(sliced);
}

void FusionDemand::add(InstructionIndex operand, double amount) {
  Need& need = needs_[operand.index];
  if (amount >= 1.0) need.whole = true;
  if (need.whole || amount <= 0.0) return;
  need.sliced += amount;
  if (std::ranges::find(need.as_in, operand) == need.as_in.end()) need.as_in.push_back(operand);
}

}  // namespace spillway
