// Minimum cuts against every choice there is.
#include "sim/planner/save_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace spillway {
namespace {

using Value = SaveGraph::Value;

SaveGraph::Value value(std::int64_t bytes, std::optional<std::uint32_t> maker) {
  return {Bytes(bytes), SimTime(0), maker};
}

/// x -> product -> a -> cheap -> b, c; backward reads b and c.
///   a is half as large as b and c together
SaveGraph two_views_of_one_product() {
  SaveGraph graph;
  graph.operations = {{SimTime(1000), {}}, {SimTime(1), {0}}, {SimTime(1), {0}}};
  graph.values = {value(10, 0), value(10, 1), value(10, 2)};
  graph.needed = {1, 2};
  return graph;
}

/// An attention kernel gives a large output and small statistics; the output is saved already.
SaveGraph attention_with_statistics() {
  SaveGraph graph;
  graph.operations = {{SimTime(500), {}}, {SimTime(700), {0}}};
  graph.values = {value(64, 0), value(0, 1), value(2, 1)};
  graph.needed = {0, 1, 2};
  return graph;
}

/// 1 ps for so many bytes.
SavePrice one_for(std::int64_t bytes) { return {1, bytes}; }

TEST_CASE("known cuts") {
  struct Row {
    const char* name;
    SaveGraph graph;
    SavePrice price;
    std::vector<std::uint32_t> saved, run_again;
  };
  SaveGraph forbidden = two_views_of_one_product();
  forbidden.values[0].may_be_saved = false;
  const Row rows[] = {
      {"the product, not what is made of it", two_views_of_one_product(), {1, 1}, {0}, {1, 2}},
      {"bytes for nothing: all that is read", two_views_of_one_product(), {0, 1}, {1, 2}, {}},
      {"bytes too dear", two_views_of_one_product(), {2000, 1}, {}, {0, 1, 2}},
      {"the product may not be saved", forbidden, {1, 1}, {1, 2}, {}},
      {"statistics, beside an output that costs nothing more",
       attention_with_statistics(),
       {10, 1},
       {1, 2},
       {0}},
      {"and its inputs where bytes cost less", attention_with_statistics(), {7, 1}, {0, 1, 2}, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const SaveCut cut = cheapest_cut(row.graph, row.price);
    CHECK(cut.saved == row.saved);
    CHECK(cut.run_again == row.run_again);
  }
}

SaveGraph random_graph(std::mt19937& random) {
  const auto below = [&random](std::uint32_t n) {
    return static_cast<std::uint32_t>(random() % n);
  };
  SaveGraph graph;
  while (graph.values.size() < 10) {
    SaveGraph::Operation operation{SimTime(below(5) == 0 ? 100 + below(100) : below(10)), {}};
    const auto known = static_cast<std::uint32_t>(graph.values.size());
    for (std::uint32_t k = 0; known > 0 && k < below(3); ++k)
      operation.reads.push_back(below(known));
    const auto maker = static_cast<std::uint32_t>(graph.operations.size());
    for (std::uint32_t results = 1 + below(2); results > 0; --results)
      graph.values.push_back({Bytes(below(20)), SimTime(below(3)), maker, below(6) != 0});
    graph.operations.push_back(std::move(operation));
  }
  for (std::uint32_t v = 0; v < graph.values.size(); ++v)
    if (below(3) == 0 || v + 1 == graph.values.size()) graph.needed.push_back(v);
  return graph;
}

/// Of every choice that is allowed.
std::vector<SaveCut> all_choices(const SaveGraph& graph) {
  std::vector<SaveCut> choices;
  for (std::uint32_t mask = 0; mask < (1u << graph.values.size()); ++mask) {
    std::vector<std::uint32_t> saved;
    bool allowed = true;
    for (std::uint32_t v = 0; v < graph.values.size(); ++v)
      if ((mask >> v & 1) != 0) {
        saved.push_back(v);
        allowed &= graph.values[v].may_be_saved;
      }
    if (allowed) choices.push_back(with_saved(graph, saved));
  }
  return choices;
}

std::int64_t cost(const SaveCut& cut, std::int64_t picoseconds, std::int64_t bytes) {
  return cut.time.value() * bytes + cut.bytes.value() * picoseconds;
}

TEST_CASE("no choice is cheaper, at any price, on three hundred random graphs") {
  std::mt19937 random(20);
  for (int seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const SaveGraph graph = random_graph(random);
    const std::vector<SaveCut> choices = all_choices(graph);
    for (const std::int64_t price : {0, 1, 2, 3, 7, 20, 1000}) {
      CAPTURE(price);
      const auto best = std::ranges::min(
          choices, {}, [&](const SaveCut& choice) { return cost(choice, price, 1); });
      CHECK(cost(cheapest_cut(graph, {price, 1}), price, 1) == cost(best, price, 1));
    }
    // Corners: each further one takes less time, and no choice lies below the line between two.
    const std::vector<SaveCut> corners = cheapest_cuts(graph);
    for (std::size_t k = 1; k < corners.size(); ++k) {
      REQUIRE(corners[k].bytes >= corners[k - 1].bytes);
      REQUIRE(corners[k].time < corners[k - 1].time);
      const std::int64_t gained = (corners[k - 1].time - corners[k].time).value();
      const std::int64_t paid = (corners[k].bytes - corners[k - 1].bytes).value();
      for (const SaveCut& choice : choices)
        // Prices are rounded a little.
        CHECK(cost(choice, gained, paid) + paid >= cost(corners[k], gained, paid));
    }
  }
}

TEST_CASE("nothing needed, nothing saved") {
  SaveGraph graph = two_views_of_one_product();
  graph.needed.clear();
  CHECK(cheapest_cut(graph, one_for(1)).saved.empty());
  REQUIRE(cheapest_cuts(graph).size() == 1);
  CHECK(cheapest_cuts(graph)[0].time == SimTime(0));
}

}  // namespace
}  // namespace spillway
