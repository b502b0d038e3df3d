// From policies that are known to better ones near by.
#pragma once

#include <optional>
#include <vector>

#include "sim/planner/case_book.h"

namespace spillway {

class LocalSearch {
 public:
  /// Simulates into `book`, which holds a policy that may be proposed. Of neighbours with two
  /// handles moved no more than `most` are looked at, and no more than those simulated on ways from
  /// afar. What comes out is the same every time.
  LocalSearch(const Evaluator& evaluator, std::size_t most, CaseBook& book);

  /// From the best on the best neighbour, as long as that is better. The neighbours with one handle
  /// moved of what it ends at are simulated.
  std::optional<Error> improve();
  /// The same where nothing is proven: neighbours with two handles moved as well, and policies that
  /// are several moves away, each followed down to where no single move helps.
  std::optional<Error> improve_widely();

 private:
  std::vector<Policy> one_moved(const Policy& policy) const;
  std::vector<Policy> two_moved(const Policy& policy) const;
  /// With `handles` of them, drawn by lot, set anew; with all of them, each.
  Policy shaken(Policy policy, std::size_t handles);
  std::optional<Error> follow_down(Policy at);
  std::size_t random(std::size_t below);

  const std::vector<Handle>& handles_;
  std::vector<std::vector<Choice>> choices_;  ///< of each handle
  std::size_t most_;
  CaseBook& book_;
  std::uint32_t random_ = 1;
};

}  // namespace spillway
