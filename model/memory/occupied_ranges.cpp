#include "model/memory/occupied_ranges.h"

#include <algorithm>

#include "model/base/check.h"

namespace spillway {
namespace {

/// Visits the nodes that together cover leaves `left` to `right` - 1 exactly, and those above them,
/// which cover other leaves too.
template <typename Covering, typename Above>
void visit_nodes(std::size_t left, std::size_t right, Covering covering, Above above) {
  const std::size_t last = right - 1;
  for (std::size_t height = 1; last >> height > 0; ++height) {
    const auto reaches_out = [&](std::size_t n) {
      return n << height < left || (n + 1) << height > right;
    };
    const std::size_t n = left >> height;
    const std::size_t m = last >> height;
    if (reaches_out(n)) above(n);
    if (m != n && reaches_out(m)) above(m);
  }
  for (; left < right; left /= 2, right /= 2) {
    if (left & 1) covering(left++);
    if (right & 1) covering(--right);
  }
}

}  // namespace

void OffsetSet::add(OffsetRange range) {
  if (!many_) {
    const bool empty = only_.begin == only_.end;
    if (empty || (range.begin <= only_.end && only_.begin <= range.end)) {
      only_ = empty
                  ? range
                  : OffsetRange{std::min(only_.begin, range.begin), std::max(only_.end, range.end)};
      return;
    }
    many_ = std::make_unique<std::vector<OffsetRange>>(1, only_);
  }
  const auto first = std::ranges::lower_bound(*many_, range.begin, {}, &OffsetRange::end);
  auto last = first;
  while (last != many_->end() && last->begin <= range.end) ++last;
  if (first == last) {
    many_->insert(first, range);
    return;
  }
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(std::prev(last)->end, range.end);
  many_->erase(std::next(first), last);
}

OccupiedRanges::OccupiedRanges(std::int32_t times) {
  check(times >= 0, "a heap has no negative times");
  while (leaves_ < static_cast<std::size_t>(times)) leaves_ *= 2;
  nodes_.resize(2 * leaves_);
}

void OccupiedRanges::occupy(std::int32_t start, std::int32_t end, OffsetRange range) {
  const auto throughout = [&](std::size_t n) {
    nodes_[n].throughout.add(range);
    nodes_[n].sometime.add(range);
  };
  const auto sometime = [&](std::size_t n) { nodes_[n].sometime.add(range); };
  visit_nodes(leaves_ + static_cast<std::size_t>(start),
              leaves_ + static_cast<std::size_t>(end) + 1, throughout, sometime);
}

void OccupiedRanges::collect(std::int32_t start, std::int32_t end,
                             std::vector<OffsetRange>& out) const {
  const auto append = [&out](const OffsetSet& set) {
    out.insert(out.end(), set.ranges().begin(), set.ranges().end());
  };
  visit_nodes(
      leaves_ + static_cast<std::size_t>(start), leaves_ + static_cast<std::size_t>(end) + 1,
      [&](std::size_t n) { append(nodes_[n].sometime); },
      [&](std::size_t n) { append(nodes_[n].throughout); });
}

}  // namespace spillway
