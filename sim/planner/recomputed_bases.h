// The program with some residuals recomputed, before the others are placed: policies that recompute
// the same share it. Each is made when it is first asked for; the oldest go when there are many.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sim/rewrite/recompute.h"

namespace spillway {

/// What is left once residuals are recomputed.
struct RecomputedBase {
  Program program;
  Lifetimes memory;
  ResidualTable residuals;  ///< without names
  /// Of each residual that there was before; empty for those that are gone.
  IdVector<ResidualId, std::optional<ResidualId>> now;
};

class RecomputedBases {
 public:
  /// Keeps `most` at least one.
  explicit RecomputedBases(std::size_t most) : most_(most) {}

  /// The program of `recompute`, whose residuals these are, with some of them recomputed that can
  /// be (in ascending order). Thread-safe; what it gives does not depend on who asked before.
  std::shared_ptr<const RecomputedBase> with(const Program& program, const ResidualTable& residuals,
                                             const RecomputeRewrite& recompute,
                                             const std::vector<ResidualId>& recomputed) const;

 private:
  using Key = std::pair<const RecomputeRewrite*, std::vector<ResidualId>>;

  std::size_t most_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::shared_ptr<const RecomputedBase>> made_;
  mutable std::deque<Key> oldest_first_;
};

}  // namespace spillway
