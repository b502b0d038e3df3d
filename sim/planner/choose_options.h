// One option out of each group, at the least cost, within limits: a mixed integer linear program,
// solved by CBC.
#pragma once

#include <cstddef>
#include <vector>

namespace spillway {

struct Option {
  double cost = 0;
  std::vector<double> uses;  ///< of each resource; may be below zero
};

struct OptionProblem {
  std::vector<std::vector<Option>> groups;  ///< none of them empty
  std::vector<double> limits;               ///< of each resource
  /// What a unit above a limit costs: as much as to be worth any option's cost.
  double penalty = 0;
  /// Choices, an option of each group, that are not to be the answer.
  std::vector<std::vector<std::size_t>> excluded;
};

/// The option of each group. Empty where every choice is excluded, or CBC gives up.
std::vector<std::size_t> choose_options(const OptionProblem& problem);

}  // namespace spillway
