#include "model/memory/phi_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace spillway {
namespace {

using Origin = PhiGraph::Origin;

constexpr Origin def(std::uint32_t k) { return {false, k}; }
constexpr Origin phi(std::uint32_t k) { return {true, k}; }

/// What each phi of a graph settles to.
std::vector<Origin> settled(const std::vector<std::vector<Origin>>& inputs) {
  PhiGraph graph;
  for (const auto& of_one : inputs) graph.add(of_one);
  graph.simplify();
  std::vector<Origin> result;
  for (std::uint32_t k = 0; k < inputs.size(); ++k) result.push_back(graph.settle(phi(k)));
  return result;
}

TEST_CASE("a phi that meets one thing is that thing") {
  struct Row {
    const char* name;
    std::vector<std::vector<Origin>> inputs;
    std::vector<Origin> expected;
  };
  const Row rows[] = {
      {"handed through", {{def(7), phi(0)}}, {def(7)}},
      {"replaced", {{def(7), def(8)}}, {phi(0)}},
      {"twice the same", {{def(7), def(7)}}, {def(7)}},
      {"two that feed each other", {{def(7), phi(1)}, {phi(0), phi(1)}}, {def(7), def(7)}},
      {"behind a real one", {{def(7), def(8)}, {phi(0), phi(1)}}, {phi(0), phi(0)}},
      {"a chain of them",
       {{def(7), def(8)}, {phi(0)}, {phi(1)}, {phi(2)}},
       {phi(0), phi(0), phi(0), phi(0)}},
      {"in front of one that turns out to be needless",
       {{phi(1), def(7)}, {phi(2)}, {def(7), phi(0)}},
       {def(7), def(7), def(7)}},
      {"two real ones that feed each other",
       {{def(7), phi(1)}, {def(8), phi(0)}},
       {phi(0), phi(1)}},
      {"nothing arrives", {{phi(0)}}, {phi(0)}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(settled(row.inputs) == row.expected);
  }
}

/// XLA's two rules, tried on every phi until nothing changes.
class Obvious {
 public:
  explicit Obvious(std::vector<std::vector<Origin>> inputs)
      : inputs_(std::move(inputs)), same_as_(inputs_.size()) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t k = 0; k < inputs_.size(); ++k) changed |= trivial(k) || closure(k);
    }
  }
  Origin settle(Origin origin) const {
    while (origin.is_phi && same_as_[origin.index]) origin = *same_as_[origin.index];
    return origin;
  }

 private:
  bool trivial(std::uint32_t k) {
    if (same_as_[k]) return false;
    std::vector<Origin> others;
    for (const Origin& input : inputs_[k])
      if (const Origin origin = settle(input); origin != phi(k)) others.push_back(origin);
    if (others.empty() || std::ranges::count(others, others[0]) != std::ssize(others)) return false;
    same_as_[k] = others[0];
    return true;
  }
  bool closure(std::uint32_t k) {
    if (same_as_[k]) return false;
    std::vector<std::uint32_t> group = {k};
    std::vector<Origin> definitions;
    for (std::size_t g = 0; g < group.size(); ++g)
      for (const Origin& input : inputs_[group[g]]) {
        const Origin origin = settle(input);
        if (!origin.is_phi)
          definitions.push_back(origin);
        else if (std::ranges::find(group, origin.index) == group.end())
          group.push_back(origin.index);
      }
    if (definitions.empty() ||
        std::ranges::count(definitions, definitions[0]) != std::ssize(definitions))
      return false;
    for (const std::uint32_t member : group)
      if (!same_as_[member]) same_as_[member] = definitions[0];
    return true;
  }

  std::vector<std::vector<Origin>> inputs_;
  std::vector<std::optional<Origin>> same_as_;
};

TEST_CASE("the same as trying the rules until nothing changes") {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) {
      return static_cast<std::uint32_t>(random() % n);
    };
    std::vector<std::vector<Origin>> inputs(1 + below(12));
    for (std::uint32_t k = 0; k < inputs.size(); ++k) {
      inputs[k].resize(1 + below(3));
      for (Origin& input : inputs[k])
        input = below(4) == 0 ? def(below(3)) : phi(below(inputs.size()));
      // Something arrives at each: a definition, or what arrives at an earlier one.
      inputs[k][0] = k == 0 || below(3) == 0 ? def(below(3)) : phi(below(k));
    }
    const Obvious obvious(inputs);
    const std::vector<Origin> found = settled(inputs);
    for (std::uint32_t k = 0; k < inputs.size(); ++k) {
      CAPTURE(k);
      REQUIRE(found[k] == obvious.settle(phi(k)));
    }
  }
}

TEST_CASE("long chains take linear time and no stack") {
  constexpr std::uint32_t kMany = 200'000;
  PhiGraph graph;
  graph.add({def(1), def(2)});
  for (std::uint32_t k = 1; k < kMany; ++k) graph.add({phi(k - 1), phi(k)});
  graph.simplify();
  for (std::uint32_t k = 0; k < kMany; ++k) REQUIRE(graph.settle(phi(k)) == phi(0));
}

}  // namespace
}  // namespace spillway
