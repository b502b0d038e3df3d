#include "model/cost/cost_table.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "model/cost/collective.h"
#include "model/cost/roofline.h"

namespace spillway {
namespace {

/// Whether both are the very same characters, not only equal ones.
bool is_same_text(std::string_view a, std::string_view b) {
  return a.data() == b.data() && a.size() == b.size();
}

/// Whether two instructions do the same, as far as their own computations tell: the same opcode and
/// texts, operands and results of the same shapes, and the same operand wherever one comes twice.
bool is_same_instruction(const Computation& a, InstructionIndex i, const Computation& b,
                         InstructionIndex k) {
  const Instruction& left = a[i];
  const Instruction& right = b[k];
  if (left.opcode != right.opcode || !(left.shape == right.shape)) return false;
  if (!std::ranges::equal(a.called(i), b.called(k))) return false;
  const auto same_attribute = [](const Attribute& x, const Attribute& y) {
    return is_same_text(x.value, y.value);
  };
  if (!std::ranges::equal(a.attributes(i), b.attributes(k), same_attribute)) return false;
  const auto ours = a.operands(i);
  const auto theirs = b.operands(k);
  if (ours.size() != theirs.size()) return false;
  for (std::size_t o = 0; o < ours.size(); ++o) {
    if (!(a.shape_of(ours[o]) == b.shape_of(theirs[o]))) return false;
    const auto first = std::ranges::find(ours, ours[o]) - ours.begin();
    if (first != std::ranges::find(theirs, theirs[o]) - theirs.begin()) return false;
  }
  return true;
}

/// Instructions of a computation by name.
class NameIndex {
 public:
  explicit NameIndex(const Computation* computation) {
    if (computation == nullptr) return;
    index_.reserve(computation->size());
    for (const InstructionIndex i : computation->instructions())
      index_.emplace((*computation)[i].name.data(), i);
  }
  std::optional<InstructionIndex> find(std::string_view name) const {
    const auto found = index_.find(name.data());
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<const char*, InstructionIndex> index_;
};

}  // namespace

class CostTableBuilder {
 public:
  CostTableBuilder(const Program& program, const HardwareProfile& profile, const Topology& topology,
                   const CostTable* base)
      : program_(program), profile_(profile), topology_(topology), base_(base) {}

  CostTable build() const {
    CostTable table;
    table.computations_ = program_.computations;
    table.by_computation_.resize(program_.computations.size());
    for (const auto& [id, runs] : executed_computations(program_)) {
      const bool reused = is_unchanged(id) && base_->contains(id) &&
                          std::ranges::all_of(base_->at(id).called, [this](ComputationId called) {
                            return is_unchanged(called);
                          });
      table.by_computation_[id] = reused ? base_->by_computation_[id] : compute(id);
    }
    return table;
  }

 private:
  /// Whether the base had the same computation at this place.
  bool is_unchanged(ComputationId id) const {
    return base_ != nullptr && base_->computations_.contains(id) &&
           base_->computations_[id] == program_.computations[id];
  }

  /// What the base knows of a computation that may have been rewritten since.
  struct Former {
    const Computation* computation = nullptr;
    const ComputationCosts* costs = nullptr;
  };
  Former former(ComputationId id) const {
    const bool known =
        base_ != nullptr && base_->by_computation_.contains(id) && base_->contains(id);
    return known ? Former{base_->computations_[id].get(), &base_->at(id)} : Former{};
  }

  /// The instruction of the former computation that does the same as `i`, and calls the same.
  std::optional<InstructionIndex> find_same(const Computation& computation, InstructionIndex i,
                                            std::span<const ComputationId> called,
                                            const Former& old, const NameIndex& by_name) const {
    if (is_free(computation[i])) return std::nullopt;  // sooner done than compared
    const auto same = by_name.find(computation[i].name);
    if (!same || !is_same_instruction(computation, i, *old.computation, *same)) return std::nullopt;
    const bool calls_same =
        std::ranges::all_of(called, [this](ComputationId id) { return is_unchanged(id); });
    return calls_same ? same : std::nullopt;
  }

  std::shared_ptr<const ComputationCosts> compute(ComputationId id) const {
    auto result = std::make_shared<ComputationCosts>();
    const Computation& computation = program_[id];
    const Former old = former(id);
    const NameIndex by_name(old.computation);
    result->works.reserve(computation.size());
    result->costs.reserve(computation.size());
    for (const InstructionIndex i : computation.instructions()) {
      const std::size_t before = result->called.size();
      if (!is_control_flow(computation[i].opcode)) add_called(computation.called(i), *result);
      const auto called = std::span<const ComputationId>(result->called).subspan(before);
      const auto same = find_same(computation, i, called, old, by_name);
      result->works.push_back(same ? old.costs->works[same->index] : work_of(program_, {id, i}));
      const Work& work = result->works.back();
      result->costs.push_back(same ? old.costs->costs[same->index] : cost_of({id, i}, work));
      if (computation[i].opcode != Opcode::kAsyncStart) result->ops += work.ops;
    }
    return result;
  }

  Cost cost_of(InstructionId id, const Work& work) const {
    if (work.kernel != KernelClass::kCollective) return roofline(work, profile_);
    const auto collective = find_collective(program_, id, topology_);
    check(collective.has_value(), "an instruction of the class collective holds no collective");
    return collective_cost(*collective, profile_);
  }

  void add_called(std::span<const ComputationId> called, ComputationCosts& out) const {
    for (const ComputationId callee : called) {
      out.called.push_back(callee);
      add_called(program_[callee].parts().called, out);
    }
  }

  const Program& program_;
  const HardwareProfile& profile_;
  const Topology& topology_;
  const CostTable* base_;
};

void CostTable::replace_costs(ComputationId id, std::vector<Cost> costs) {
  check(costs.size() == at(id).costs.size(), "a computation got costs for other instructions");
  auto changed = std::make_shared<ComputationCosts>(at(id));
  changed->costs = std::move(costs);
  by_computation_[id] = std::move(changed);
}

CostTable costs(const Program& program, const HardwareProfile& profile, const Topology& topology) {
  return CostTableBuilder(program, profile, topology, nullptr).build();
}

CostTable costs(const Program& program, const HardwareProfile& profile, const Topology& topology,
                const CostTable& base) {
  return CostTableBuilder(program, profile, topology, &base).build();
}

ProgramFlops count_flops(const Program& program, const CostTable& table) {
  IdVector<ComputationId, OpCount> ops(program.computations.size());
  for (const ComputationId id : ids(program.computations)) ops[id] = table.ops(id);
  return sum_flops(program, ops);
}

}  // namespace spillway
