#include "sim/planner/branch_and_bound.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace spillway {
namespace {

/// So many policies are simulated before the best of them is looked at: enough for all threads, and
/// the same however many there are.
constexpr std::size_t kBatch = 16;

struct Node {
  Bytes missed;  ///< at least
  Seconds step;  ///< at least
  std::size_t number = 0;
  std::size_t decided = 0;  ///< of the questions
  OpenPolicy policy;
};

/// The most promising first; of equals the one that is decided further, then the older one.
struct IsWorse {
  bool operator()(const Node& a, const Node& b) const {
    return std::make_tuple(a.missed, a.step, b.decided, a.number) >
           std::make_tuple(b.missed, b.step, a.decided, b.number);
  }
};

/// Whether a handle becomes one choice, or one of the others.
struct Question {
  std::size_t handle = 0;
  Choice choice = Choice::kKeep;
};

class Search {
 public:
  Search(const Evaluator& evaluator, PolicyBounds& bounds, std::size_t most, CaseBook& book)
      : evaluator_(evaluator), bounds_(bounds), most_(most), book_(book) {
    const std::vector<Handle>& handles = evaluator.handles();
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < handles.size(); ++k) {
      start_.emplace_back(choices_of(handles[k]));
      order.push_back(k);
    }
    // What holds most memory decides most. State goes first and then what is recomputed, since the
    // bounds make most of that.
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&handles](std::size_t k) { return handles[k].bytes; });
    for (const bool state : {true, false})
      for (const std::size_t k : order)
        if (handles[k].state.has_value() == state && !start_[k].is_decided())
          questions_.push_back({k, state ? Choice::kOffload : Choice::kRecompute});
    for (const std::size_t k : order)
      if (is_name(handles[k]) && start_[k].has(Choice::kKeep) && start_[k].has(Choice::kOffload))
        questions_.push_back({k, Choice::kOffload});
  }

  Result<BranchAndBound> run();

 private:
  void push(OpenPolicy policy, std::size_t decided);
  bool can_be_better(const Node& node) const;
  std::optional<Error> simulate_batch();

  const Evaluator& evaluator_;
  PolicyBounds& bounds_;
  std::size_t most_;
  CaseBook& book_;
  OpenPolicy start_;
  std::vector<Question> questions_;  ///< in this order
  std::priority_queue<Node, std::vector<Node>, IsWorse> open_;
  std::vector<Node> batch_;
  std::size_t pushed_ = 0;
};

void Search::push(OpenPolicy policy, std::size_t decided) {
  const PolicyBound bound = bounds_.of(policy);
  const Budget& budget = evaluator_.budget();
  const auto over = [](Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); };
  // What has to be on one of both sides misses at least what both do not have room for.
  const Bytes each = over(bound.device, budget.room()) + over(bound.host, budget.host_room());
  const Bytes both =
      over(bound.device + bound.host + bound.either, budget.room() + budget.host_room());
  Node node{std::max(each, both), bound.step, ++pushed_, decided, std::move(policy)};
  if (can_be_better(node)) open_.push(std::move(node));
}

/// Equals can: less memory is better, too.
bool Search::can_be_better(const Node& node) const {
  const PolicyCase& best = book_.best();
  return std::make_tuple(node.missed, node.step) <= std::make_tuple(missed(best), best.step);
}

std::optional<Error> Search::simulate_batch() {
  std::vector<Policy> policies;
  for (const Node& node : batch_) {
    Policy& policy = policies.emplace_back();
    for (const OpenChoices& open : node.policy)
      for (const Choice choice : {Choice::kKeep, Choice::kOffload, Choice::kRecompute})
        if (open.is_only(choice)) policy.push_back(choice);
  }
  batch_.clear();
  return book_.simulate(std::move(policies));
}

Result<BranchAndBound> Search::run() {
  BranchAndBound result;
  result.policies = count_policies(evaluator_.handles());
  push(start_, 0);
  const std::size_t before = book_.size();
  while (true) {
    const bool is_done = open_.empty() || !can_be_better(open_.top());
    if (batch_.size() == kBatch || (is_done && !batch_.empty())) {
      if (auto wrong = simulate_batch()) return *wrong;
      continue;
    }
    if (is_done || book_.size() - before + batch_.size() >= most_) break;
    Node node = open_.top();
    open_.pop();
    if (node.decided == questions_.size()) {
      batch_.push_back(std::move(node));
      continue;
    }
    const auto& [handle, choice] = questions_[node.decided];
    OpenPolicy with = node.policy, without = node.policy;
    without[handle] = node.policy[handle].without(choice);
    if (node.policy[handle].has(choice) && !node.policy[handle].is_only(choice)) {
      with[handle] = OpenChoices({choice});
      push(std::move(with), node.decided + 1);
      push(std::move(without), node.decided + 1);
    } else {
      push(std::move(with), node.decided + 1);  // decided already
    }
  }
  if (auto wrong = simulate_batch()) return *wrong;
  result.proven = open_.empty() || !can_be_better(open_.top());
  if (!result.proven && open_.top().missed == Bytes(0)) result.left_out_from = open_.top().step;
  return result;
}

}  // namespace

Result<BranchAndBound> branch_and_bound(const Evaluator& evaluator, PolicyBounds& bounds,
                                        std::size_t most, CaseBook& book) {
  return Search(evaluator, bounds, most, book).run();
}

}  // namespace spillway
