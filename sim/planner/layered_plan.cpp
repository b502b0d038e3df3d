#include "sim/planner/layered_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "model/base/parallel.h"

namespace spillway {
namespace {

/// So many handles at most are split, one after another.
constexpr std::size_t kMostMoves = 3;

using Layers = std::vector<std::uint32_t>;

/// What all layers of a handle would gain if they had room.
struct Move {
  std::size_t handle = 0;
  Choice choice = Choice::kKeep;
  Seconds gain;
};

/// Layers of one handle that have another choice than in the plan.
class SplitBook {
 public:
  SplitBook(const Evaluator& evaluator, const Policy& plan, const Move& move,
            const ScheduleSettings& order, std::size_t threads,
            const std::function<void()>& simulated)
      : evaluator_(evaluator),
        plan_(plan),
        move_(move),
        order_(order),
        threads_(threads),
        simulated_(simulated) {}

  /// None of `sets` is empty or has all layers.
  std::optional<Error> simulate(std::vector<Layers> sets) {
    std::erase_if(sets, [this](const Layers& layers) { return cases_.contains(layers); });
    std::ranges::sort(sets);
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    std::vector<std::optional<Result<PolicyCase>>> results(sets.size());
    for_each_piece(sets.size(), threads_, [&](std::size_t k) {
      const std::vector<Handle> handles = split(sets[k]);
      results[k] = evaluator_.evaluate_split(handles, policy(), order_);
      if (simulated_) simulated_();
    });
    for (std::size_t k = 0; k < sets.size(); ++k) {
      if (!results[k]->ok()) return results[k]->error();
      cases_.emplace(sets[k], *std::move(*results[k]));
    }
    return std::nullopt;
  }

  const PolicyCase& at(const Layers& layers) const { return cases_.at(layers); }
  std::size_t size() const { return cases_.size(); }
  const std::map<Layers, PolicyCase>& cases() const { return cases_; }

  std::vector<Handle> split(const Layers& layers) const {
    std::vector<Handle> handles = evaluator_.handles();
    split_layers(handles, evaluator_.unrolled(), {handles[move_.handle].name, layers});
    return handles;
  }

 private:
  /// The part with the other choice stands behind the rest of its handle.
  Policy policy() const {
    Policy policy = plan_;
    policy.insert(policy.begin() + static_cast<std::ptrdiff_t>(move_.handle) + 1, move_.choice);
    return policy;
  }

  const Evaluator& evaluator_;
  const Policy& plan_;
  const Move& move_;
  const ScheduleSettings& order_;
  std::size_t threads_;
  const std::function<void()>& simulated_;
  std::map<Layers, PolicyCase> cases_;
};

/// All layers, in an order of which the first n are taken.
std::vector<Layers> orders_to_try(std::uint32_t count) {
  Layers first(count);
  std::iota(first.begin(), first.end(), 0);
  const Layers last(first.rbegin(), first.rend());
  // 0, 1/2, 1/4, 3/4, 1/8, …: any n of them are spread.
  Layers spread;
  for (std::uint32_t step = std::bit_ceil(count); step > 0; step /= 2)
    for (std::uint32_t layer = 0; layer < count; layer += step)
      if (std::ranges::find(spread, layer) == spread.end()) spread.push_back(layer);
  return {first, last, spread};
}

Layers first_of(const Layers& order, std::size_t count) {
  Layers layers(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  std::ranges::sort(layers);
  return layers;
}

/// The most layers of each order that fit, all orders at once: each round asks one count of each.
std::optional<Error> find_counts(SplitBook& book, const std::vector<Layers>& orders) {
  struct Range {
    std::size_t fits = 0, fails;
  };
  std::vector<Range> ranges(orders.size(), {0, orders.front().size()});
  while (true) {
    std::vector<Layers> asked;
    for (std::size_t k = 0; k < orders.size(); ++k)
      if (ranges[k].fails - ranges[k].fits > 1)
        asked.push_back(first_of(orders[k], std::midpoint(ranges[k].fits, ranges[k].fails)));
    if (asked.empty()) return std::nullopt;
    if (auto wrong = book.simulate(asked)) return wrong;
    for (std::size_t k = 0; k < orders.size(); ++k) {
      Range& range = ranges[k];
      if (range.fails - range.fits <= 1) continue;
      const std::size_t middle = std::midpoint(range.fits, range.fails);
      (book.at(first_of(orders[k], middle)).fit.fits ? range.fits : range.fails) = middle;
    }
  }
}

/// Layers by what each gains alone, most first: those whose copies hide worst where it is kept
/// instead, best where it is offloaded.
Result<Layers> by_gain(SplitBook& book, std::uint32_t count) {
  std::vector<Layers> alone;
  for (std::uint32_t layer = 0; layer < count; ++layer) alone.push_back({layer});
  if (auto wrong = book.simulate(alone)) return *wrong;
  Layers order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t layer) { return book.at({layer}).step; });
  return order;
}

std::vector<Layers> all_subsets(std::uint32_t count) {
  std::vector<Layers> subsets;
  for (std::uint32_t bits = 1; bits + 1 < (1U << count); ++bits) {
    Layers& layers = subsets.emplace_back();
    for (std::uint32_t layer = 0; layer < count; ++layer)
      if (bits >> layer & 1U) layers.push_back(layer);
  }
  return subsets;
}

std::optional<Error> search(SplitBook& book, std::uint32_t count) {
  if (count < 32 && std::size_t{1} << count <= kAllSubsets)
    return book.simulate(all_subsets(count));
  if (auto wrong = find_counts(book, orders_to_try(count))) return wrong;
  const Result<Layers> order = by_gain(book, count);
  if (!order.ok()) return order.error();
  return find_counts(book, {*order});
}

/// What would be faster if all layers had room.
std::vector<Move> promising_moves(const Evaluator& evaluator, const CaseBook& book) {
  const PolicyCase& plan = book.best();
  std::vector<Move> moves;
  for (std::size_t k = 0; k < plan.policy.size(); ++k) {
    const Handle& handle = evaluator.handles()[k];
    if (handle.unrolled.empty() || !handle.layers.empty()) continue;
    for (const Choice choice : choices_of(handle)) {
      Policy policy = plan.policy;
      policy[k] = choice;
      const PolicyCase& other = book.at(policy);
      if (!other.fit.fits && other.step < plan.step)
        moves.push_back({k, choice, plan.step - other.step});
    }
  }
  std::ranges::stable_sort(moves, std::ranges::greater(), &Move::gain);
  if (moves.size() > kMostMoves) moves.resize(kMostMoves);
  return moves;
}

}  // namespace

Result<std::optional<LayeredPlan>> find_layered_plan(const Evaluator& evaluator,
                                                     const CaseBook& book,
                                                     const ScheduleSettings& order,
                                                     std::size_t threads,
                                                     const std::function<void()>& on_case) {
  std::optional<LayeredPlan> best;
  std::size_t simulated = 0;
  const auto count = static_cast<std::uint32_t>(evaluator.unrolled().layers.size());
  for (const Move& move : promising_moves(evaluator, book)) {
    SplitBook split(evaluator, book.best().policy, move, order, threads, on_case);
    if (auto wrong = search(split, count)) return *wrong;
    simulated += split.size();
    for (const auto& [layers, outcome] : split.cases()) {
      const PolicyCase& known = best ? best->outcome : book.best();
      if (!outcome.fit.fits || outcome.step >= known.step) continue;
      best = LayeredPlan{evaluator.handles()[move.handle].name,
                         move.choice,
                         layers,
                         count,
                         split.split(layers),
                         outcome};
    }
  }
  if (best) best->simulated = simulated;
  return best;
}

}  // namespace spillway
