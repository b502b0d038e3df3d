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
  std::size_t decided = 0;  ///< of the order's handles
  PartialPolicy policy;
};

/// The most promising first; of equals the one that is decided further, then the older one.
struct IsWorse {
  bool operator()(const Node& a, const Node& b) const {
    return std::make_tuple(a.missed, a.step, b.decided, a.number) >
           std::make_tuple(b.missed, b.step, a.decided, b.number);
  }
};

class Search {
 public:
  Search(const Evaluator& evaluator, const PolicyBounds& bounds, std::size_t most, CaseBook& book)
      : evaluator_(evaluator), bounds_(bounds), most_(most), book_(book) {
    const std::vector<Handle>& handles = evaluator.handles();
    for (std::size_t k = 0; k < handles.size(); ++k) {
      choices_.push_back(choices_of(handles[k]));
      if (choices_[k].size() > 1) order_.push_back(k);
    }
    // What holds most memory decides most.
    std::ranges::stable_sort(order_, std::ranges::greater(),
                             [&handles](std::size_t k) { return handles[k].bytes; });
  }

  Result<BranchAndBound> run();

 private:
  void push(PartialPolicy policy, std::size_t decided);
  bool can_be_better(const Node& node) const;
  std::optional<Error> simulate_batch();

  const Evaluator& evaluator_;
  const PolicyBounds& bounds_;
  std::size_t most_;
  CaseBook& book_;
  std::vector<std::vector<Choice>> choices_;
  std::vector<std::size_t> order_;  ///< handles with a choice, in which they are decided
  std::priority_queue<Node, std::vector<Node>, IsWorse> open_;
  std::vector<Node> batch_;
  std::size_t pushed_ = 0;
};

void Search::push(PartialPolicy policy, std::size_t decided) {
  const PolicyBound bound = bounds_.of(policy);
  const Budget& budget = evaluator_.budget();
  const auto over = [](Bytes need, Bytes have) { return std::max(need - have, Bytes(0)); };
  Node node{over(bound.device, budget.pool) + over(bound.host, budget.host), bound.step, ++pushed_,
            decided, std::move(policy)};
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
    for (const std::optional<Choice>& choice : node.policy) policy.push_back(*choice);
  }
  batch_.clear();
  return book_.simulate(std::move(policies));
}

Result<BranchAndBound> Search::run() {
  BranchAndBound result;
  result.policies = 1;
  PartialPolicy start(choices_.size());
  for (std::size_t k = 0; k < choices_.size(); ++k) {
    result.policies *= static_cast<double>(choices_[k].size());
    if (choices_[k].size() == 1) start[k] = choices_[k].front();
  }
  push(std::move(start), 0);
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
    if (node.decided == order_.size()) {
      batch_.push_back(std::move(node));
      continue;
    }
    const std::size_t handle = order_[node.decided];
    for (const Choice choice : choices_[handle]) {
      PartialPolicy policy = node.policy;
      policy[handle] = choice;
      push(std::move(policy), node.decided + 1);
    }
  }
  if (auto wrong = simulate_batch()) return *wrong;
  result.proven = open_.empty() || !can_be_better(open_.top());
  if (!result.proven && open_.top().missed == Bytes(0)) result.left_out_from = open_.top().step;
  return result;
}

}  // namespace

Result<BranchAndBound> branch_and_bound(const Evaluator& evaluator, const PolicyBounds& bounds,
                                        std::size_t most, CaseBook& book) {
  return Search(evaluator, bounds, most, book).run();
}

}  // namespace spillway
