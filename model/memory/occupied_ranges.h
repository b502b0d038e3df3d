// Which offsets of a block are in use at which times; what the heap asks before it places a buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace spillway {

/// Bytes of a block, half-open.
struct OffsetRange {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

/// Offsets as disjoint ranges in ascending order; ranges that touch are joined, so that tightly
/// packed buffers are one range however many they are. Most sets hold one, which stands in the set
/// itself.
class OffsetSet {
 public:
  /// `range` is not empty. Whether it was not all there before.
  bool add(OffsetRange range);
  std::span<const OffsetRange> ranges() const {
    if (many_) return *many_;
    return {&only_, only_.begin < only_.end ? std::size_t{1} : std::size_t{0}};
  }

 private:
  OffsetRange only_;
  std::unique_ptr<std::vector<OffsetRange>> many_;  ///< null for one range or none
};

/// A segment tree over time. Adding and asking touch O(log times) nodes, each of which holds the
/// union of what lies there, not every buffer by itself.
///
///   time            0   1   2   3
///   nodes           [------1------]      a buffer of times 1…3 is stored whole at nodes 5 and 3,
///                   [--2--] [--3--]      and as "somewhere under" at these and at 2 and 1
///                   [4] [5] [6] [7]
class OccupiedRanges {
 public:
  /// For times from 0 to `times` - 1.
  explicit OccupiedRanges(std::int32_t times);

  /// `range` is in use from `start` to `end`, both inclusive.
  void occupy(std::int32_t start, std::int32_t end, OffsetRange range);

  /// Appends ranges whose union is what is in use at some time from `start` to `end`, in no order.
  void collect(std::int32_t start, std::int32_t end, std::vector<OffsetRange>& out) const;

 private:
  struct Node {
    OffsetSet throughout;  ///< in use during all times of the node
    OffsetSet sometime;    ///< in use during some: the node's own, and those of all nodes under it
  };

  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;  ///< node n has children 2n and 2n+1; leaves come last
};

}  // namespace spillway
