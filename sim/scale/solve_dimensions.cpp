#include "sim/scale/solve_dimensions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace spillway {
namespace {

/// Products of what is known of a side, before and now; what is not known is counted.
struct Side {
  double before = 1, now = 1;
  std::size_t unknown = 0;
  DimensionId last_unknown;
};

/// Operations that find_dimension_rules says little or nothing about. NVIDIA's matrix products are
/// not among them, other calls of libraries are.
bool has_no_rules(const Computation& computation, InstructionIndex i) {
  switch (computation[i].opcode) {
    case Opcode::kCustomCall:
      return !computation.attribute(i, "custom_call_target").value_or("").starts_with("\"__cublas");
    case Opcode::kConvolution:
    case Opcode::kRaggedDot:
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kTopK:
    case Opcode::kUnknown:
      return true;
    default:
      return false;
  }
}

double growth(double before, std::int64_t now) { return static_cast<double>(now) / before; }

class Solver {
 public:
  Solver(const Program& program, const DimensionRules& rules)
      : program_(program),
        rules_(rules),
        sizes_(rules.dimensions.size()),
        uses_(rules.dimensions.size()) {
    for (std::size_t k = 0; k < rules.products.size(); ++k) {
      for (const DimensionId d : rules.products[k].left) note_use(d, {Kind::kProduct, k});
      for (const DimensionId d : rules.products[k].right) note_use(d, {Kind::kProduct, k});
    }
    for (std::size_t k = 0; k < rules.sums.size(); ++k) {
      note_use(rules.sums[k].whole, {Kind::kSum, k});
      for (const DimensionId d : rules.sums[k].parts) note_use(d, {Kind::kSum, k});
    }
    for (std::size_t k = 0; k < rules.parts.size(); ++k)
      note_use(rules.parts[k].whole, {Kind::kPart, k});
  }

  SolvedDimensions run(const std::vector<WantedSize>& wanted,
                       const std::vector<WantedSize>& evidence) {
    for (const WantedSize& w : wanted) {
      set(w.dimension, w.size, SizeOrigin::kImplied);
      if (w.size != before(w.dimension)) growing_.insert(before(w.dimension));
    }
    settle_ones(wanted);
    propagate();
    take_evidence(wanted, evidence);
    scale_parts();
    propagate();
    take_likeness();
    propagate();
    split_products();
    return finish();
  }

 private:
  enum class Kind : std::uint8_t { kProduct, kSum, kPart };
  struct RuleRef {
    Kind kind = Kind::kProduct;
    std::size_t index = 0;
  };

  DimensionId of(DimensionId d) const { return rules_.dimensions.representative(d); }
  std::int64_t before(DimensionId d) const { return rules_.dimensions.size_of(d); }
  const std::optional<Size>& now(DimensionId d) const { return sizes_[of(d)]; }
  bool known(DimensionId d) const { return now(d).has_value(); }
  void note_use(DimensionId d, RuleRef rule) { uses_[of(d)].push_back(rule); }

  void set(DimensionId d, std::int64_t size, SizeOrigin origin);
  void settle_ones(const std::vector<WantedSize>& wanted);
  void propagate();
  void apply(const ProductRule& rule);
  void keep_factors(const ProductRule& rule, const Side& left, const Side& right);
  void apply(const SumRule& rule);
  void apply(const PartRule& rule);
  void take_evidence(const std::vector<WantedSize>& wanted,
                     const std::vector<WantedSize>& evidence);
  void scale_parts();
  void take_likeness();
  void take_likeness(InstructionId id);
  void split_products();
  void split(const ProductRule& rule);
  bool grows_in_arguments(DimensionId d) const { return growing_.contains(before(d)); }
  bool is_kept(const ProductRule& rule) const;
  SolvedDimensions finish();

  const Program& program_;
  const DimensionRules& rules_;
  IdVector<DimensionId, std::optional<Size>> sizes_;  ///< of representatives
  IdVector<DimensionId, std::vector<RuleRef>> uses_;
  std::vector<DimensionId> fresh_;  ///< whose size has just become known
  std::vector<DimensionId> broken_;
  std::set<std::int64_t> growing_;  ///< sizes before, of what is wanted to grow
};

void Solver::set(DimensionId d, std::int64_t size, SizeOrigin origin) {
  std::optional<Size>& slot = sizes_[of(d)];
  if (slot) {
    if (slot->size != size) broken_.push_back(d);
    return;
  }
  slot = Size{size, origin};
  fresh_.push_back(of(d));
}

/// Unless one of them is wanted larger, a dimension of 1 is there for form's sake.
void Solver::settle_ones(const std::vector<WantedSize>& wanted) {
  if (std::ranges::any_of(
          wanted, [this](const WantedSize& w) { return before(w.dimension) == 1 && w.size != 1; }))
    return;
  for (const DimensionId d : ids(sizes_))
    if (before(d) == 1 && !known(d)) set(d, 1, SizeOrigin::kImplied);
}

void Solver::propagate() {
  while (!fresh_.empty()) {
    const DimensionId d = fresh_.back();
    fresh_.pop_back();
    for (const RuleRef rule : uses_[d]) {
      if (rule.kind == Kind::kProduct) apply(rules_.products[rule.index]);
      if (rule.kind == Kind::kSum) apply(rules_.sums[rule.index]);
      if (rule.kind == Kind::kPart) apply(rules_.parts[rule.index]);
    }
  }
}

/// What one that does not grow is made up of does not grow.
void Solver::keep_factors(const ProductRule& rule, const Side& left, const Side& right) {
  const auto stays = [this](const std::vector<DimensionId>& dims) {
    return std::ranges::all_of(
        dims, [this](DimensionId d) { return known(d) && now(d)->size == before(d); });
  };
  if (left.unknown == 0 && right.now == right.before && stays(rule.left))
    for (const DimensionId d : rule.right)
      if (!known(d)) set(d, before(d), SizeOrigin::kImplied);
  if (right.unknown == 0 && left.now == left.before && stays(rule.right))
    for (const DimensionId d : rule.left)
      if (!known(d)) set(d, before(d), SizeOrigin::kImplied);
}

/// The one that is not known follows from the others.
void Solver::apply(const ProductRule& rule) {
  const auto add_up = [this](const std::vector<DimensionId>& dims) {
    Side side;
    for (const DimensionId d : dims) {
      if (known(d)) {
        side.before *= static_cast<double>(before(d));
        side.now *= static_cast<double>(now(d)->size);
      } else {
        ++side.unknown;
        side.last_unknown = d;
      }
    }
    return side;
  };
  const Side left = add_up(rule.left), right = add_up(rule.right);
  if (left.unknown + right.unknown > 1) return keep_factors(rule, left, right);
  // Sizes are far below 2^53 and so are the products of those of one array, bar exotic ones.
  const double grown = left.now * right.before, was = left.before * right.now;
  if (left.unknown + right.unknown == 0) {
    if (grown != was) broken_.push_back(rule.left[0]);
    return;
  }
  const DimensionId d = left.unknown > 0 ? left.last_unknown : right.last_unknown;
  const double factor = left.unknown > 0 ? was / grown : grown / was;
  const double size = static_cast<double>(before(d)) * factor;
  const auto whole = static_cast<std::int64_t>(size + 0.5);
  if (whole < 1 || std::abs(size - static_cast<double>(whole)) > 1e-6) return;
  set(d, whole, SizeOrigin::kImplied);
}

void Solver::apply(const SumRule& rule) {
  // What is not known, and how much the known ones say it grows by.
  std::optional<DimensionId> unknown;
  std::int64_t growth = 0;
  const auto count = [&](DimensionId d, std::int64_t sign) {
    if (known(d))
      growth += sign * (now(d)->size - before(d));
    else if (unknown)
      return false;
    else
      unknown = d;
    return true;
  };
  if (!count(rule.whole, 1)) return;
  for (const DimensionId part : rule.parts)
    if (!count(part, -1)) return;
  if (!unknown) {
    if (growth != 0) broken_.push_back(rule.whole);
    return;
  }
  const std::int64_t size = before(*unknown) + (*unknown == rule.whole ? -growth : growth);
  if (size >= 1) set(*unknown, size, SizeOrigin::kImplied);
}

void Solver::apply(const PartRule& rule) {
  if (known(rule.whole) && now(rule.whole)->size == before(rule.whole) && !known(rule.part))
    set(rule.part, before(rule.part), SizeOrigin::kImplied);
}

/// Where the rules leave a size open, what most instructions that both programs have say. Sizes
/// that grow as the arguments do come first, then those with the most votes, and each may decide
/// others: instructions of one kind are matched by guess, and pairs that do not belong together
/// show sizes that grow in no sensible way.
void Solver::take_evidence(const std::vector<WantedSize>& wanted,
                           const std::vector<WantedSize>& evidence) {
  std::map<DimensionId, std::map<std::int64_t, std::size_t>> votes;
  for (const WantedSize& e : evidence)
    if (!known(e.dimension)) ++votes[of(e.dimension)][e.size];
  std::set<double> growths = {1};
  for (const WantedSize& w : wanted)
    growths.insert(growth(static_cast<double>(before(w.dimension)), w.size));
  struct Candidate {
    bool plausible = false;
    std::size_t votes = 0;
    DimensionId dimension;
    std::int64_t size = 0;
  };
  std::vector<Candidate> candidates;
  for (const auto& [d, sizes] : votes)
    for (const auto& [size, count] : sizes) {
      const double grown = growth(static_cast<double>(before(d)), size);
      const bool plausible = std::ranges::any_of(growths, [grown](double g) {
        return std::abs(grown / g - 1) < 1e-3 || std::abs(grown / (g * g) - 1) < 1e-3;
      });
      candidates.push_back({plausible, count, d, size});
    }
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.plausible, a.votes) > std::pair(b.plausible, b.votes);
  });
  for (const Candidate& candidate : candidates) {
    if (known(candidate.dimension)) continue;
    set(candidate.dimension, candidate.size, SizeOrigin::kEvidence);
    propagate();
  }
}

/// Of a dimension that grows, halves and chunks grow with it; of what is nearly all of it, what is
/// cut off stays.
void Solver::scale_parts() {
  for (const PartRule& rule : rules_.parts) {
    if (known(rule.part) || !known(rule.whole)) continue;
    const std::int64_t whole = before(rule.whole), part = before(rule.part);
    const std::int64_t grown = now(rule.whole)->size;
    const bool in_proportion = 2 * part <= whole && part * grown % whole == 0;
    const std::int64_t size = in_proportion ? part * grown / whole : part + grown - whole;
    set(rule.part, std::max<std::int64_t>(size, 1), SizeOrigin::kPart);
    propagate();
  }
}

void Solver::take_likeness() {
  for (const ComputationId id : ids(program_.computations))
    for (const InstructionIndex i : program_[id].instructions())
      if (has_no_rules(program_[id], i)) take_likeness({id, i});
}

/// Of an operation without rules, as a call of a library: what is as large as an operand's
/// dimension grows with it, when all operands agree.
void Solver::take_likeness(InstructionId id) {
  const Computation& computation = program_[id.computation];
  std::map<std::int64_t, std::int64_t> grown;  // size before → now; 0: they do not agree
  bool asked = false;
  const Shape shape = computation[id.instruction].shape;
  const auto visit = [](Shape whole, const auto& add) {
    for (ShapeNodeIndex node = 0; node < whole.node_count(); ++node)
      for (std::size_t k = 0; k < whole.at(node).dims().size(); ++k) add(node, k);
  };
  visit(shape, [&](ShapeNodeIndex node, std::size_t k) {
    asked |= !known(rules_.dimensions.at(id, node, k));
  });
  if (!asked) return;
  for (const Operand& operand : computation.operands(id.instruction))
    visit(computation.shape_of(operand), [&](ShapeNodeIndex node, std::size_t k) {
      const DimensionId d =
          rules_.dimensions.at({id.computation, operand.instruction}, operand.node + node, k);
      if (!known(d)) return;
      const auto [entry, added] = grown.emplace(before(d), now(d)->size);
      if (!added && entry->second != now(d)->size) entry->second = 0;
    });
  visit(shape, [&](ShapeNodeIndex node, std::size_t k) {
    const DimensionId d = rules_.dimensions.at(id, node, k);
    const auto entry = grown.find(before(d));
    if (!known(d) && entry != grown.end() && entry->second > 0)
      set(d, entry->second, SizeOrigin::kLikeness);
  });
}

/// Whether what is known on either side has not grown.
bool Solver::is_kept(const ProductRule& rule) const {
  double left = 1, right = 1;
  for (const DimensionId d : rule.left)
    if (known(d)) left *= static_cast<double>(now(d)->size) / static_cast<double>(before(d));
  for (const DimensionId d : rule.right)
    if (known(d)) right *= static_cast<double>(now(d)->size) / static_cast<double>(before(d));
  return left == right;
}

void Solver::split_products() {
  for (const ProductRule& rule : rules_.products)
    if (!is_kept(rule)) {
      split(rule);
      propagate();
    }
}

/// One side has grown, and the other has several that could: one as large as a dimension of an
/// argument that grows, else the slowest in memory. The others stay, as far as what is left is a
/// whole number.
void Solver::split(const ProductRule& rule) {
  const auto all_known = [this](const std::vector<DimensionId>& dims) {
    return std::ranges::all_of(dims, [this](DimensionId d) { return known(d); });
  };
  if (all_known(rule.left) == all_known(rule.right)) return;
  const auto& given = all_known(rule.left) ? rule.left : rule.right;
  const auto& open = all_known(rule.left) ? rule.right : rule.left;
  double rest = 1, was = 1;
  for (const DimensionId d : given) {
    rest *= static_cast<double>(now(d)->size);
    was *= static_cast<double>(before(d));
  }
  for (const DimensionId d : open) was /= static_cast<double>(before(d));
  rest /= was;  // what the product of the open side must come to
  for (const DimensionId d : open)
    if (known(d)) rest /= static_cast<double>(now(d)->size);
  auto left = static_cast<std::int64_t>(rest + 0.5);
  std::optional<DimensionId> slowest;
  for (const DimensionId d : open)
    if (!known(d) && (!slowest || (grows_in_arguments(d) && !grows_in_arguments(*slowest))))
      slowest = d;
  for (auto d = open.rbegin(); d != open.rend(); ++d) {
    if (known(*d) || of(*d) == of(*slowest)) continue;
    const std::int64_t size = std::gcd(left, before(*d));
    left /= size;
    set(*d, size, size == before(*d) ? SizeOrigin::kUnchanged : SizeOrigin::kSplit);
  }
  if (!known(*slowest)) set(*slowest, left, SizeOrigin::kSplit);
}

SolvedDimensions Solver::finish() {
  SolvedDimensions solved{IdVector<DimensionId, Size>(sizes_.size()), std::move(broken_)};
  for (const DimensionId d : ids(sizes_))
    solved.sizes[d] = known(d) ? *now(d) : Size{before(d), SizeOrigin::kUnchanged};
  return solved;
}

}  // namespace

SolvedDimensions solve_dimensions(const Program& program, const DimensionRules& rules,
                                  const std::vector<WantedSize>& wanted,
                                  const std::vector<WantedSize>& evidence) {
  return Solver(program, rules).run(wanted, evidence);
}

}  // namespace spillway
