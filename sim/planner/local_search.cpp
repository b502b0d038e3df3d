#include "sim/planner/local_search.h"

#include <algorithm>

namespace spillway {
namespace {

/// Policies far from the best that are followed down. Every other one is any at all, the others
/// have so many of the best one's handles moved.
constexpr std::size_t kShakes = 256;
constexpr std::size_t kShakenHandles = 3;

}  // namespace

LocalSearch::LocalSearch(const Evaluator& evaluator, std::size_t most, CaseBook& book)
    : handles_(evaluator.handles()), most_(most), book_(book) {
  for (const Handle& handle : handles_) choices_.push_back(choices_of(handle));
}

std::vector<Policy> LocalSearch::one_moved(const Policy& policy) const {
  std::vector<Policy> found;
  for (std::size_t k = 0; k < handles_.size(); ++k)
    for (const Choice choice : choices_[k])
      if (choice != policy[k]) found.push_back(with_choice(policy, k, choice));
  return found;
}

/// Two handles at once, in every way; only those that exchange what becomes of them where these are
/// too many.
std::vector<Policy> LocalSearch::two_moved(const Policy& policy) const {
  std::vector<Policy> all, exchanged;
  for (std::size_t a = 0; a < handles_.size(); ++a)
    for (std::size_t b = a + 1; b < handles_.size(); ++b)
      for (const Choice of_a : choices_[a])
        for (const Choice of_b : choices_[b]) {
          if (of_a == policy[a] || of_b == policy[b]) continue;
          all.push_back(with_choice(with_choice(policy, a, of_a), b, of_b));
          if (of_a == policy[b] && of_b == policy[a]) exchanged.push_back(all.back());
        }
  return all.size() <= most_ ? all : exchanged;
}

std::optional<Error> LocalSearch::improve() { return follow_down(book_.best().policy); }

std::optional<Error> LocalSearch::improve_widely() {
  const std::size_t until = book_.size() + most_;
  for (std::size_t k = 0; k < kShakes && book_.size() < until; ++k)
    if (auto wrong =
            follow_down(shaken(book_.best().policy, k % 2 == 0 ? handles_.size() : kShakenHandles)))
      return wrong;
  while (true) {
    if (auto wrong = improve()) return wrong;
    const Policy at = book_.best().policy;
    if (auto wrong = book_.simulate(two_moved(at))) return wrong;
    if (book_.best().policy == at) return std::nullopt;
  }
}

std::optional<Error> LocalSearch::follow_down(Policy at) {
  if (auto wrong = book_.simulate({at})) return wrong;
  while (true) {
    const std::vector<Policy> near = one_moved(at);
    if (auto wrong = book_.simulate(near)) return wrong;
    const Policy* best = &at;
    for (const Policy& policy : near)
      if (is_allowed(handles_, policy) && is_better(book_.at(policy), book_.at(*best)))
        best = &policy;
    if (best == &at) return std::nullopt;
    at = *best;
  }
}

Policy LocalSearch::shaken(Policy policy, std::size_t handles) {
  const bool all = handles >= handles_.size();
  for (std::size_t moved = 0; moved < std::min(handles, handles_.size()); ++moved) {
    const std::size_t k = all ? moved : random(handles_.size());
    policy[k] = choices_[k][random(choices_[k].size())];
  }
  return policy;
}

/// A linear congruential generator, the same on every machine.
std::size_t LocalSearch::random(std::size_t below) {
  random_ = random_ * 1664525 + 1013904223;
  return (random_ >> 16) % below;
}

}  // namespace spillway
