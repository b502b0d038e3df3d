#include "sim/schedule/latency_hiding/ready_order.h"

#include <algorithm>
#include <cmath>

namespace spillway {
namespace {

/// Empty when a rule finds no difference.
using Verdict = std::optional<bool>;

/// Whether a is better because it has more of something.
template <typename T>
Verdict more(T a, T b) {
  if (a == b) return std::nullopt;
  return b < a;
}

template <typename T>
Verdict less(T a, T b) {
  return more(b, a);
}

class Comparison {
 public:
  Comparison(const ListState& state, Candidate& a, Candidate& b)
      : state_(state), a_(a), b_(b), an_(state.graph[a.node]), bn_(state.graph[b.node]) {}

  bool run() {
    if (const Verdict verdict = by_hints()) return *verdict;
    if (const Verdict verdict = by_memory()) return *verdict;
    if (const Verdict verdict = by_kind()) return *verdict;
    if (const Verdict verdict = by_time()) return *verdict;
    if (const Verdict verdict = by_graph()) return *verdict;
    return a_.node > b_.node;  // the later one in the order that was given
  }

 private:
  Verdict by_hints() const {
    if (const Verdict late = more(an_.runs_late, bn_.runs_late)) return late;
    if (const Verdict early = less(an_.runs_early, bn_.runs_early)) return early;
    return less(an_.early_priority, bn_.early_priority);
  }

  const MemoryPressure::Change& change_of(Candidate& candidate) const;
  Verdict by_memory();
  Verdict by_kind() const;
  Verdict by_early_start() const;
  Verdict by_time() const;
  Verdict by_graph() const;

  double stall(NodeIndex node) const { return std::max(state_.ready_time[node] - state_.now, 0.0); }

  const ListState& state_;
  Candidate& a_;
  Candidate& b_;
  const ScheduleNode& an_;
  const ScheduleNode& bn_;
  bool saves_memory_ = false;
};

/// Of a done, the better of its own change and its start's. A copy's done, which keeps its source
/// alive, is so thought to save what the start saves. That is a flaw of XLA's, and why round trips
/// to the host of unrolled programs end up close together.
const MemoryPressure::Change& Comparison::change_of(Candidate& candidate) const {
  if (candidate.change) return *candidate.change;
  const auto change = [&](NodeIndex node) {
    return state_.pressure.change(state_.buffers, node, state_.inner_peak[node]);
  };
  candidate.change = change(candidate.node);
  if (state_.graph[candidate.node].is_done) {
    const auto before = state_.graph.before(candidate.node);
    if (!before.empty() && state_.graph[before[0].other].is_start) {
      const MemoryPressure::Change start = change(before[0].other);
      candidate.change->net = std::min(candidate.change->net, start.net);
      candidate.change->peak = std::max(candidate.change->peak, start.peak);
    }
  }
  return *candidate.change;
}

Verdict Comparison::by_memory() {
  if (!state_.limits.memory) return std::nullopt;
  const std::int64_t limit = state_.limits.memory->value();
  const std::int64_t usage = state_.pressure.usage();
  if (usage <= limit / 2) return std::nullopt;
  saves_memory_ = true;
  const MemoryPressure::Change& a = change_of(a_);
  const MemoryPressure::Change& b = change_of(b_);
  if (usage >= limit)
    if (const Verdict verdict = less(a.net, b.net)) return verdict;
  return more(a.peak + usage <= limit, b.peak + usage <= limit);
}

Verdict Comparison::by_early_start() const {
  if (!state_.limits.starts_collectives_early || state_.limits.collectives <= 1)
    return std::nullopt;
  if (an_.occupies != 0 || bn_.occupies != 0) return std::nullopt;
  const bool a_starts = an_.releases != 0 && !a_.is_constrained;
  const bool b_starts = bn_.releases != 0 && !b_.is_constrained;
  if (a_starts != b_starts) return b_starts;
  return a_starts ? more(an_.depth, bn_.depth) : std::nullopt;
}

Verdict Comparison::by_kind() const {
  if (const Verdict verdict = by_early_start()) return verdict;
  if (const Verdict verdict = less(an_.offloads_slice, bn_.offloads_slice)) return verdict;
  if (const Verdict verdict = more(an_.occupies != 0, bn_.occupies != 0)) return verdict;
  if (!an_.is_done || !bn_.is_done) return std::nullopt;
  const auto starts_early = [&](NodeIndex done) {
    const auto before = state_.graph.before(done);
    return !before.empty() && state_.graph[before[0].other].runs_early;
  };
  return less(starts_early(a_.node), starts_early(b_.node));
}

Verdict Comparison::by_time() const {
  if (const Verdict verdict = less(stall(a_.node), stall(b_.node))) return verdict;
  // A start that waits for nothing asynchronous can still go to the very beginning.
  const auto may_wait = [](const ScheduleNode& node, const Candidate& candidate) {
    return node.releases != 0 && node.async_depth == 0 && !candidate.is_constrained;
  };
  if (const Verdict verdict = less(may_wait(an_, a_), may_wait(bn_, b_))) return verdict;
  return more(an_.releases != 0 && a_.is_constrained, bn_.releases != 0 && b_.is_constrained);
}

Verdict Comparison::by_graph() const {
  if (const Verdict verdict = more(an_.async_depth, bn_.async_depth)) return verdict;
  if (!state_.waiting.empty()) {  // what fills the time until the next is ready, and no more
    const double left = state_.ready_time[state_.waiting.front()] - state_.now;
    const double a = std::abs(left - an_.cost);
    const double b = std::abs(left - bn_.cost);
    if (const Verdict verdict = more(an_.releases == 0 && a < b, bn_.releases == 0 && b < a))
      return verdict;
  }
  if (const Verdict verdict = more(an_.reads_done, bn_.reads_done)) return verdict;
  if (const Verdict verdict = more(state_.makes_ready[a_.node], state_.makes_ready[b_.node]))
    return verdict;
  if (saves_memory_)
    if (const Verdict verdict = more(a_.change->net < 0, b_.change->net < 0)) return verdict;
  return std::nullopt;
}

}  // namespace

bool is_constrained(const ListState& state, NodeIndex node) {
  const ResourceSet used = state.graph[node].occupies | state.graph[node].releases;
  if (used == 0) return false;
  for (std::size_t kind = 0; kind < kAsyncResources; ++kind)
    if ((used >> kind & 1) != 0 && state.free[kind] == 0 && state.wanted[kind] > 0) return true;
  return false;
}

bool is_better(const ListState& state, Candidate& a, Candidate& b) {
  return Comparison(state, a, b).run();
}

}  // namespace spillway
