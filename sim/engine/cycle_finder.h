// Notices that a loop has come back to a state it was in before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spillway::engine {

/// Remembers the states of the last few iterations, which finds short periods at once, and one
/// older state that is renewed at iterations 1, 2, 4, 8 …, which finds every period in the end
/// (Brent's method). Memory stays bounded; states are compared word by word, never by hash alone.
class CycleFinder {
 public:
  void clear();

  /// Tells the state at the head of an iteration, iterations in rising order. Returns by how many
  /// iterations it repeats an earlier state, if it does.
  std::optional<std::int64_t> add(std::int64_t iteration, std::span<const std::int64_t> state);

 private:
  struct Seen {
    std::int64_t iteration = 0;
    std::uint64_t hash = 0;
    std::vector<std::int64_t> state;
  };
  static constexpr std::size_t kRecent = 16;

  static void remember(Seen& seen, std::int64_t iteration, std::uint64_t hash,
                       std::span<const std::int64_t> state);

  std::array<Seen, kRecent> recent_;
  std::size_t added_ = 0;  // the latest is recent_[(added_ - 1) % kRecent]
  Seen anchor_;
  std::int64_t next_anchor_ = 1;
};

}  // namespace spillway::engine
