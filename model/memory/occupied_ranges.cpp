#include "model/memory/occupied_ranges.h"

#include <algorithm>

#include "model/base/check.h"

namespace spillway {
namespace {

/// Visits the nodes that together cover leaves `left` to `right` - 1 exactly.
template <typename Covering>
void visit_covering(std::size_t left, std::size_t right, Covering covering) {
  for (; left < right; left /= 2, right /= 2) {
    if (left & 1) covering(left++);
    if (right & 1) covering(--right);
  }
}

/// Visits the nodes above those, which cover other leaves too, from below. `above` says whether to
/// go on to what is above the node.
template <typename Above>
void visit_above(std::size_t left, std::size_t right, Above above) {
  const std::size_t last = right - 1;
  bool first_goes_on = true;
  bool last_goes_on = true;
  for (std::size_t height = 1; last >> height > 0; ++height) {
    const auto reaches_out = [&](std::size_t n) {
      return n << height < left || (n + 1) << height > right;
    };
    const std::size_t n = left >> height;
    const std::size_t m = last >> height;
    if (n == m && !(first_goes_on && last_goes_on)) return;
    if (first_goes_on && reaches_out(n)) first_goes_on = above(n);
    if (n == m) last_goes_on = first_goes_on;
    if (n != m && last_goes_on && reaches_out(m)) last_goes_on = above(m);
  }
}

}  // namespace

bool OffsetSet::add(OffsetRange range) {
  if (!many_) {
    if (only_.begin <= range.begin && range.end <= only_.end) return false;
    const bool empty = only_.begin == only_.end;
    if (empty || (range.begin <= only_.end && only_.begin <= range.end)) {
      only_ = empty
                  ? range
                  : OffsetRange{std::min(only_.begin, range.begin), std::max(only_.end, range.end)};
      return true;
    }
    many_ = std::make_unique<std::vector<OffsetRange>>(1, only_);
  }
  const auto first = std::ranges::lower_bound(*many_, range.begin, {}, &OffsetRange::end);
  auto last = first;
  while (last != many_->end() && last->begin <= range.end) ++last;
  if (first == last) {
    many_->insert(first, range);
    return true;
  }
  if (first->begin <= range.begin && range.end <= first->end) return false;
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(std::prev(last)->end, range.end);
  many_->erase(std::next(first), last);
  return true;
}

OccupiedRanges::OccupiedRanges(std::int32_t times) {
  check(times >= 0, "a heap has no negative times");
  while (leaves_ < static_cast<std::size_t>(times)) leaves_ *= 2;
  nodes_.resize(2 * leaves_);
}

void OccupiedRanges::occupy(std::int32_t start, std::int32_t end, OffsetRange range) {
  const std::size_t left = leaves_ + static_cast<std::size_t>(start);
  const std::size_t right = leaves_ + static_cast<std::size_t>(end) + 1;
  visit_covering(left, right, [&](std::size_t n) {
    nodes_[n].throughout.add(range);
    nodes_[n].sometime.add(range);
  });
  // What a node has, those above it have: the first one that has the range already ends the way up.
  visit_above(left, right, [&](std::size_t n) { return nodes_[n].sometime.add(range); });
}

void OccupiedRanges::collect(std::int32_t start, std::int32_t end,
                             std::vector<OffsetRange>& out) const {
  const std::size_t left = leaves_ + static_cast<std::size_t>(start);
  const std::size_t right = leaves_ + static_cast<std::size_t>(end) + 1;
  const auto append = [&out](const OffsetSet& set) {
    for (const OffsetRange& range : set.ranges()) out.push_back(range);
  };
  visit_covering(left, right, [&](std::size_t n) { append(nodes_[n].sometime); });
  visit_above(left, right, [&](std::size_t n) {
    append(nodes_[n].throughout);
    return true;
  });
}

}  // namespace spillway
