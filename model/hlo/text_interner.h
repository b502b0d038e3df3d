// A hash table from pieces of text to small values. Keys are views; their text must stay alive.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace spillway::hlo {

/// Open addressing, linear probing. `clear` takes no time, so that one table serves every
/// computation in turn.
template <typename T>
class TextTable {
 public:
  TextTable() : slots_(1024) {}

  /// The value of `key`, or null.
  T* find(std::string_view key) {
    Slot& slot = probe(key, hash(key));
    return slot.generation == generation_ ? &slot.value : nullptr;
  }

  /// The value of `key`, made by default if it is new; `is_new` says which.
  T& insert(std::string_view key, bool& is_new) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    const std::uint64_t h = hash(key);
    Slot& slot = probe(key, h);
    is_new = slot.generation != generation_;
    if (is_new) {
      slot = Slot{key, h, generation_, T{}};
      ++size_;
    }
    return slot.value;
  }

  void clear() {
    ++generation_;
    size_ = 0;
  }

 private:
  struct Slot {
    std::string_view key;
    std::uint64_t hash = 0;
    std::uint32_t generation = 0;
    T value{};
  };

  static std::uint64_t hash(std::string_view key) {
    // Eight bytes a round, multiply and fold; quality matters little at half load.
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
    std::uint64_t h = key.size() * kMultiplier;
    const char* at = key.data();
    std::size_t left = key.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      h = (h ^ word) * kMultiplier;
      h ^= h >> 32;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    h = (h ^ word) * kMultiplier;
    return h ^ (h >> 29);
  }

  Slot& probe(std::string_view key, std::uint64_t h) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.generation != generation_ || (slot.hash == h && slot.key == key)) return slot;
    }
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.generation == generation_) probe(slot.key, slot.hash) = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::uint32_t generation_ = 1;
  std::size_t size_ = 0;
};

}  // namespace spillway::hlo
