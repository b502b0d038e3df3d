// A hash table from the 64-bit ids of a proto to small values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spillway::hlo {

/// Open addressing, linear probing. Values stay where they are in the order of insertion, and
/// clearing takes time for what is in the table, so that one table serves every computation.
template <typename T>
class IdTable {
 public:
  IdTable() : slots_(64, 0) {}

  std::size_t size() const { return entries_.size(); }

  /// The value of an id, or null. Valid until the next insertion.
  T* find(std::int64_t id) {
    const std::uint32_t entry = slots_[probe(id)];
    return entry == 0 ? nullptr : &entries_[entry - 1].value;
  }

  /// Whether the id was new; a known one keeps its value.
  bool insert(std::int64_t id, T value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    const std::size_t at = probe(id);
    if (slots_[at] != 0) return false;
    entries_.push_back({id, value});
    slots_[at] = static_cast<std::uint32_t>(entries_.size());
    return true;
  }

  void clear() {
    // From behind, so that no slot is freed on the way to one that is still to be found.
    for (; !entries_.empty(); entries_.pop_back()) slots_[probe(entries_.back().id)] = 0;
  }

 private:
  struct Entry {
    std::int64_t id = 0;
    T value{};
  };

  /// The slot of an id, or the free one where it belongs.
  std::size_t probe(std::int64_t id) const {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
    const std::uint64_t hash = static_cast<std::uint64_t>(id) * kMultiplier;
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = static_cast<std::size_t>(hash >> 32) & mask;
    while (slots_[i] != 0 && entries_[slots_[i] - 1].id != id) i = (i + 1) & mask;
    return i;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (std::size_t k = 0; k < entries_.size(); ++k)
      slots_[probe(entries_[k].id)] = static_cast<std::uint32_t>(k + 1);
  }

  std::vector<std::uint32_t> slots_;  ///< index of the entry + 1; 0 is free
  std::vector<Entry> entries_;
};

}  // namespace spillway::hlo
