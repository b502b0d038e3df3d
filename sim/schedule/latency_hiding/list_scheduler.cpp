#include "sim/schedule/latency_hiding/list_scheduler.h"

#include <algorithm>
#include <limits>

#include "sim/schedule/latency_hiding/ready_order.h"

namespace spillway {
namespace {

/// How many sends and receives may be in flight at once: kNumAsyncCollectivesP2P.
constexpr std::int32_t kPointToPoint = 4;

ResourceCounts all_free(const LatencyHidingLimits& limits) {
  ResourceCounts free{};
  free[static_cast<std::size_t>(AsyncResource::kCollectives)] = limits.collectives;
  free[static_cast<std::size_t>(AsyncResource::kComputes)] = limits.async_computes;
  free[static_cast<std::size_t>(AsyncResource::kSlices)] = std::numeric_limits<std::int32_t>::max();
  free[static_cast<std::size_t>(AsyncResource::kSend)] = kPointToPoint;
  free[static_cast<std::size_t>(AsyncResource::kReceive)] = kPointToPoint;
  return free;
}

class ListScheduler {
 public:
  ListScheduler(ListState state, const LatencyHidingLimits& limits)
      : state_(std::move(state)), graph_(state_.graph) {
    const std::size_t nodes = graph_.nodes().size();
    state_.free = all_free(limits);
    state_.ready_time.assign(nodes, std::numeric_limits<double>::max());
    state_.makes_ready.assign(nodes, 0);
    scheduled_.assign(nodes, 0);
    open_.reserve(nodes);
    for (NodeIndex node = 0; node < nodes; ++node)
      open_.push_back(static_cast<std::uint32_t>(graph_.after(node).size()));
    needs_any_.reserve(nodes);
    for (const ScheduleNode& node : graph_.nodes())
      needs_any_.push_back(std::ranges::any_of(node.needs, [](auto n) { return n != 0; }) ? 1 : 0);
    for (NodeIndex node = 0; node < nodes; ++node)
      for (const ScheduleEdge& edge : graph_.before(node))
        if (open_[edge.other] == 1) ++state_.makes_ready[node];
  }

  void run() {
    for (NodeIndex node = 0; node < open_.size(); ++node) {
      if (open_[node] != 0) continue;
      state_.ready_time[node] = 0;
      (graph_[node].is_nop ? nops_ : ready_).push_back(node);
    }
    while (!ready_.empty() || !nops_.empty()) schedule(take_best());
    check(order_.size() == open_.size(), "a computation's instructions wait for one another");
    std::ranges::reverse(order_);
  }

  const std::vector<NodeIndex>& order() const { return order_; }
  const ListState& state() const { return state_; }

 private:
  bool exceeds_limits(NodeIndex node) const {
    if (needs_any_[node] == 0) return false;
    for (std::size_t kind = 0; kind < kAsyncResources; ++kind)
      if (graph_[node].needs[kind] > state_.free[kind]) return true;
    return false;
  }

  NodeIndex take_best();
  std::optional<std::size_t> find_best(bool within_limits);
  void schedule(NodeIndex node);
  void take_resources(const ScheduleNode& node);
  double time_after_followers(NodeIndex node) const;
  void release(NodeIndex node);
  void make_ready(NodeIndex node);

  ListState state_;
  const ScheduleGraph& graph_;
  std::vector<std::uint8_t> scheduled_;
  std::vector<std::uint8_t> needs_any_;  ///< of each node: whether limits concern it
  std::vector<std::uint32_t> open_;  ///< of each node: edges to those that are not scheduled yet
  std::vector<NodeIndex> ready_, nops_;
  std::vector<NodeIndex> order_;
};

NodeIndex ListScheduler::take_best() {
  if (!nops_.empty()) {
    const NodeIndex node = nops_.back();
    nops_.pop_back();
    return node;
  }
  auto best = find_best(/*within_limits=*/true);
  // Where every one is beyond the limits XLA gives the program up; here limits give way.
  if (!best) best = find_best(/*within_limits=*/false);
  const NodeIndex node = ready_[*best];
  std::swap(ready_[*best], ready_.back());
  ready_.pop_back();
  return node;
}

/// One pass over those that are ready, as XLA compares them: each with the best so far. The place
/// of the best.
std::optional<std::size_t> ListScheduler::find_best(bool within_limits) {
  std::optional<std::size_t> best_at;
  Candidate best;
  for (std::size_t k = 0; k < ready_.size(); ++k) {
    if (within_limits && exceeds_limits(ready_[k])) continue;
    Candidate candidate{ready_[k], std::nullopt, is_constrained(state_, ready_[k])};
    if (best_at && !is_better(state_, candidate, best)) continue;
    best = candidate;
    best_at = k;
  }
  return best_at;
}

void ListScheduler::take_resources(const ScheduleNode& node) {
  // What a loop both takes and gives back within does not show outside.
  const ResourceSet within = node.occupies & node.releases;
  for (std::size_t kind = 0; kind < kAsyncResources; ++kind) {
    if ((within >> kind & 1) != 0) continue;
    if ((node.releases >> kind & 1) != 0) ++state_.free[kind];
    if ((node.occupies >> kind & 1) != 0) {
      --state_.free[kind];
      --state_.wanted[kind];
    }
  }
}

/// Never before what follows has begun, and the latency between.
double ListScheduler::time_after_followers(NodeIndex node) const {
  double time = 0;
  for (const ScheduleEdge& edge : graph_.after(node))
    time = std::max(time, state_.ready_time[edge.other] + edge.latency);
  return time;
}

void ListScheduler::schedule(NodeIndex node) {
  order_.push_back(node);
  scheduled_[node] = 1;
  take_resources(graph_[node]);
  state_.ready_time[node] = std::max(state_.now, time_after_followers(node));
  state_.now = state_.ready_time[node] + graph_[node].cost;
  const auto is_later = [this](NodeIndex a, NodeIndex b) {
    return state_.ready_time[a] > state_.ready_time[b];
  };
  auto& waiting = state_.waiting;
  while (!waiting.empty() && state_.ready_time[waiting.front()] < state_.now) {
    std::pop_heap(waiting.begin(), waiting.end(), is_later);
    waiting.pop_back();
  }
  for (const ScheduleEdge& edge : graph_.before(node)) release(edge.other);
  state_.pressure.add(state_.buffers, node, state_.inner_peak[node]);
}

/// One of those that hold `node` back has been scheduled.
void ListScheduler::release(NodeIndex node) {
  if (--open_[node] == 0) return make_ready(node);
  if (open_[node] != 1) return;
  for (const ScheduleEdge& edge : graph_.after(node))
    if (scheduled_[edge.other] == 0) ++state_.makes_ready[edge.other];
}

void ListScheduler::make_ready(NodeIndex node) {
  state_.ready_time[node] = std::max(state_.now, time_after_followers(node));
  for (std::size_t kind = 0; kind < kAsyncResources; ++kind)
    if ((graph_[node].occupies >> kind & 1) != 0) ++state_.wanted[kind];
  if (graph_[node].is_nop) {
    nops_.push_back(node);
    return;
  }
  ready_.push_back(node);
  if (state_.ready_time[node] <= state_.now) return;
  state_.waiting.push_back(node);
  std::push_heap(state_.waiting.begin(), state_.waiting.end(), [this](NodeIndex a, NodeIndex b) {
    return state_.ready_time[a] > state_.ready_time[b];
  });
}

}  // namespace

HiddenOrder hide_latencies_in(const ScheduleInput& input, const CountedBuffers& buffers,
                              const ProgramPressure& pressure, ComputationId id,
                              const ElementOrder& order, const ScheduleGraph& graph,
                              const LatencyHidingLimits& limits) {
  const Computation& computation = input.program[id];
  const NodeBuffers of_nodes(buffers, id, order);
  std::vector<std::int64_t> inner_peak;
  inner_peak.reserve(graph.nodes().size());
  for (const ScheduleNode& node : graph.nodes())
    inner_peak.push_back(node.is_element() ? 0
                                           : pressure.inner_peak(computation, node.instruction()));
  ListState state(graph, limits, of_nodes, MemoryPressure(buffers, pressure.around[id]),
                  std::move(inner_peak));
  ListScheduler scheduler(std::move(state), limits);
  scheduler.run();
  HiddenOrder result;
  result.peak = scheduler.state().pressure.peak();
  for (const NodeIndex node : scheduler.order())
    if (!graph[node].is_element()) result.order.push_back(graph[node].instruction());
  return result;
}

}  // namespace spillway
