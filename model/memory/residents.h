// The values that lie in one allocation, one after another, and when it is free.
#pragma once

#include <map>
#include <set>

#include "model/memory/live_range.h"

namespace spillway {

/// Adding and asking take time for the values nearby, not for all: one result may house a value of
/// every layer.
class Residents {
 public:
  /// For ranges from 0 to `end`.
  explicit Residents(LogicalTime end = LogicalTime(0)) : end_(end), gaps_{end.value()} {}

  void add(ValueId value, const LiveRange& range);

  /// Whether `range` overlaps the residents by more than a moment at which one ends and the other
  /// starts. Those it does not overlap so may still meet it at its ends.
  bool surely_overlap(const LiveRange& range) const;

  /// Whatever lives longer surely overlaps.
  std::int32_t longest_gap() const { return *gaps_.rbegin(); }

  /// Residents by start; of equal ones the older first.
  const std::multimap<LogicalTime, ValueId>& by_start() const { return by_start_; }

 private:
  using Stretches = std::map<LogicalTime, LogicalTime>;
  std::int32_t gap_before(Stretches::const_iterator stretch) const;

  LogicalTime end_;
  std::multimap<LogicalTime, ValueId> by_start_;
  /// When the allocation is in use without a gap, from start to end: what meets or overlaps is one.
  ///   position    0   1   2   3   4   5   6
  ///   residents   [=======]       [===]
  ///                       [===]               {0, 3} and {4, 5}; gaps 0, 1 and 1
  Stretches stretches_;
  std::multiset<std::int32_t> gaps_;  ///< before, between and behind the stretches
};

}  // namespace spillway
