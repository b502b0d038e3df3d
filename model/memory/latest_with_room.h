// A list that only grows, of things with some room; finds the latest one with room enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace spillway {

/// Finding looks at O(log size) entries, however many without room lie in between.
class LatestWithRoom {
 public:
  std::size_t size() const { return size_; }

  void push(std::int32_t room) {
    if (size_ + 1 == leaves_) grow();  // one leaf stays empty, for find to begin at
    set(size_++, room);
  }

  void set(std::size_t number, std::int32_t room) {
    std::size_t node = leaves_ + number;
    most_[node] = room;
    while (node /= 2) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }

  /// The last of the first `count` that has at least `room`.
  std::optional<std::size_t> find(std::size_t count, std::int32_t room) const {
    // Up from behind the last one until a whole subtree in front of it has room, then down again.
    for (std::size_t node = leaves_ + count; node > 1; node /= 2) {
      if (node % 2 == 0 || most_[node - 1] < room) continue;
      std::size_t found = node - 1;
      while (found < leaves_) found = 2 * found + (most_[2 * found + 1] >= room ? 1 : 0);
      return found - leaves_;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  void grow() {
    std::vector<std::int32_t> old(most_.begin() + static_cast<std::ptrdiff_t>(leaves_),
                                  most_.begin() + static_cast<std::ptrdiff_t>(leaves_ + size_));
    leaves_ *= 2;
    most_.assign(2 * leaves_, kNone);
    for (std::size_t number = 0; number < old.size(); ++number) set(number, old[number]);
  }

  std::size_t leaves_ = 1;
  std::size_t size_ = 0;
  /// Most room under each node; node n has children 2n and 2n+1, leaves come last.
  std::vector<std::int32_t> most_ = std::vector<std::int32_t>(2, kNone);
};

}  // namespace spillway
