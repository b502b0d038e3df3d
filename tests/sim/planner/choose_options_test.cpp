// CBC's answers against going through every choice.
#include "sim/planner/choose_options.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace spillway {
namespace {

using Choice = std::vector<std::size_t>;

std::vector<Choice> all_choices(const OptionProblem& problem) {
  std::vector<Choice> choices = {{}};
  for (const std::vector<Option>& group : problem.groups) {
    std::vector<Choice> longer;
    for (const Choice& choice : choices)
      for (std::size_t o = 0; o < group.size(); ++o) {
        longer.push_back(choice);
        longer.back().push_back(o);
      }
    choices = std::move(longer);
  }
  return choices;
}

/// Costs, and what is above a limit at its penalty.
double cost_of(const OptionProblem& problem, const Choice& choice) {
  double cost = 0;
  for (std::size_t g = 0; g < choice.size(); ++g) cost += problem.groups[g][choice[g]].cost;
  for (std::size_t r = 0; r < problem.limits.size(); ++r) {
    double above = -problem.limits[r];
    for (std::size_t g = 0; g < choice.size(); ++g) above += problem.groups[g][choice[g]].uses[r];
    cost += problem.penalty * std::max(above, 0.0);
  }
  return cost;
}

OptionProblem random_problem(std::mt19937& random) {
  std::uniform_int_distribution<int> figure(-9, 9), groups(1, 5), options(1, 3);
  OptionProblem problem;
  problem.limits = {static_cast<double>(figure(random)), static_cast<double>(figure(random))};
  problem.penalty = 1000;
  problem.groups.resize(static_cast<std::size_t>(groups(random)));
  for (std::vector<Option>& group : problem.groups)
    for (int o = options(random); o > 0; --o)
      group.push_back({static_cast<double>(figure(random)),
                       {static_cast<double>(figure(random)), static_cast<double>(figure(random))}});
  return problem;
}

TEST_CASE("the cheapest choice is found, and the next one where it is excluded") {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    OptionProblem problem = random_problem(random);
    std::vector<double> costs;
    for (const Choice& choice : all_choices(problem)) costs.push_back(cost_of(problem, choice));
    std::ranges::sort(costs);
    for (std::size_t k = 0; k < std::min<std::size_t>(costs.size(), 4); ++k) {
      const Choice found = choose_options(problem);
      REQUIRE(found.size() == problem.groups.size());
      CHECK(cost_of(problem, found) == doctest::Approx(costs[k]).epsilon(1e-6));
      CHECK(std::ranges::find(problem.excluded, found) == problem.excluded.end());
      problem.excluded.push_back(found);
    }
  }
}

TEST_CASE("nothing is chosen where everything is excluded") {
  OptionProblem problem;
  problem.groups = {{{1, {}}, {2, {}}}};
  problem.excluded = {{0}, {1}};
  CHECK(choose_options(problem).empty());
}

}  // namespace
}  // namespace spillway
