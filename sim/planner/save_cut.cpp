#include "sim/planner/save_cut.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <limits>

#include "model/base/check.h"

namespace spillway {
namespace {

/// Capacities are in 1/1024 of a picosecond, so that prices are hardly rounded.
constexpr std::int64_t kFine = 1024;

/// More than all prices and times of a step together, and far from the end of 64 bits.
constexpr std::int64_t kNever = std::int64_t{1} << 58;

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Network = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_index_t, long,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, long,
                                                    boost::property<boost::vertex_predecessor_t,
                                                                    Traits::edge_descriptor>>>>,
    boost::property<
        boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// Vertices: source, sink, two a value (needed; needed and not saved), one an operation.
class CutNetwork {
 public:
  CutNetwork(const SaveGraph& graph, SavePrice price)
      : graph_(graph), network_(2 + 2 * graph.values.size() + graph.operations.size()) {
    for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
      const SaveGraph::Value& value = graph.values[v];
      connect(wanted(v), missing(v), value.may_be_saved ? cost_of(value, price) : kNever);
      connect(missing(v), value.maker ? run(*value.maker) : kSink, kNever);
    }
    for (std::uint32_t k = 0; k < graph.operations.size(); ++k) {
      connect(run(k), kSink, graph.operations[k].time.value() * kFine);
      for (const std::uint32_t v : graph.operations[k].reads) connect(run(k), wanted(v), kNever);
    }
    for (const std::uint32_t v : graph.needed) connect(kSource, wanted(v), kNever);
  }

  /// The side of the source, as small as it can be: what can still be reached.
  std::vector<char> source_side() {
    boost::boykov_kolmogorov_max_flow(network_, kSource, kSink);
    const auto left = boost::get(boost::edge_residual_capacity, network_);
    std::vector<char> reached(boost::num_vertices(network_), 0);
    std::vector<std::size_t> open = {kSource};
    reached[kSource] = 1;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      const auto [first, last] = boost::out_edges(at, network_);
      for (auto edge = first; edge != last; ++edge) {
        const std::size_t next = boost::target(*edge, network_);
        if (left[*edge] <= 0 || reached[next] != 0) continue;
        reached[next] = 1;
        open.push_back(next);
      }
    }
    check(reached[kSink] == 0, "a cut leaves its sink within reach");
    return reached;
  }

  static std::size_t wanted(std::uint32_t value) { return 2 + 2 * std::size_t{value}; }
  static std::size_t missing(std::uint32_t value) { return 3 + 2 * std::size_t{value}; }
  std::size_t run(std::uint32_t operation) const {
    return 2 + 2 * graph_.values.size() + operation;
  }

 private:
  static constexpr std::size_t kSource = 0, kSink = 1;

  static std::int64_t cost_of(const SaveGraph::Value& value, SavePrice price) {
    const double cost = static_cast<double>(value.bytes.value()) * static_cast<double>(kFine) *
                        static_cast<double>(price.picoseconds) / static_cast<double>(price.bytes);
    const double most = static_cast<double>(kNever / 4);
    return value.save_time.value() * kFine + static_cast<std::int64_t>(std::min(cost, most) + 0.5);
  }

  void connect(std::size_t from, std::size_t to, std::int64_t capacity) {
    const auto there = boost::add_edge(from, to, network_).first;
    const auto back = boost::add_edge(to, from, network_).first;
    boost::put(boost::edge_capacity, network_, there, capacity);
    boost::put(boost::edge_capacity, network_, back, std::int64_t{0});
    boost::put(boost::edge_reverse, network_, there, back);
    boost::put(boost::edge_reverse, network_, back, there);
  }

  const SaveGraph& graph_;
  Network network_;
};

bool same_point(const SaveCut& a, const SaveCut& b) {
  return a.bytes == b.bytes && a.time == b.time;
}

/// Of choices that take equally long a cut may be one that saves more: those are left out.
void add_corner(const SaveCut& corner, std::vector<SaveCut>& corners) {
  if (corner.time < corners.back().time) corners.push_back(corner);
}

/// Corners strictly between two: where the line through them can still be beaten.
void add_between(const SaveGraph& graph, const SaveCut& less, const SaveCut& more,
                 std::vector<SaveCut>& corners) {
  if (more.bytes <= less.bytes || more.time >= less.time) return;
  const SaveCut found =
      cheapest_cut(graph, {(less.time - more.time).value(), (more.bytes - less.bytes).value()});
  if (same_point(found, less) || same_point(found, more)) return;
  // On the line itself, or outside of the two: nothing better.
  if (found.bytes <= less.bytes || found.bytes >= more.bytes) return;
  add_between(graph, less, found, corners);
  add_corner(found, corners);
  add_between(graph, found, more, corners);
}

}  // namespace

SaveCut with_saved(const SaveGraph& graph, const std::vector<std::uint32_t>& saved) {
  SaveCut cut;
  std::vector<char> is_saved(graph.values.size(), 0), runs(graph.operations.size(), 0),
      is_used(graph.values.size(), 0);
  for (const std::uint32_t v : saved) is_saved[v] = 1;
  std::vector<std::uint32_t> open = graph.needed;
  while (!open.empty()) {
    const std::uint32_t v = open.back();
    open.pop_back();
    if (is_used[v] != 0) continue;
    is_used[v] = 1;
    const SaveGraph::Value& value = graph.values[v];
    if (is_saved[v] != 0 || !value.maker || runs[*value.maker] != 0) continue;
    runs[*value.maker] = 1;
    for (const std::uint32_t read : graph.operations[*value.maker].reads) open.push_back(read);
  }
  for (std::uint32_t k = 0; k < runs.size(); ++k)
    if (runs[k] != 0) {
      cut.run_again.push_back(k);
      cut.time += graph.operations[k].time;
    }
  for (std::uint32_t v = 0; v < is_used.size(); ++v)
    if (is_used[v] != 0 && is_saved[v] != 0) {
      cut.saved.push_back(v);
      cut.bytes += graph.values[v].bytes;
      cut.time += graph.values[v].save_time;
    }
  return cut;
}

SaveCut cheapest_cut(const SaveGraph& graph, SavePrice price) {
  CutNetwork network(graph, price);
  const std::vector<char> side = network.source_side();
  std::vector<std::uint32_t> saved;
  for (std::uint32_t v = 0; v < graph.values.size(); ++v)
    if (side[CutNetwork::wanted(v)] != 0 && side[CutNetwork::missing(v)] == 0) saved.push_back(v);
  return with_saved(graph, saved);
}

std::vector<SaveCut> cheapest_cuts(const SaveGraph& graph) {
  // A price at which no byte is worth what it saves, and one of nothing.
  SimTime all(1);
  for (const SaveGraph::Operation& operation : graph.operations) all += operation.time;
  const SaveCut least = cheapest_cut(graph, {all.value(), 1});
  const SaveCut most = cheapest_cut(graph, {0, 1});
  std::vector<SaveCut> corners = {least};
  add_between(graph, least, most, corners);
  add_corner(most, corners);
  return corners;
}

}  // namespace spillway
