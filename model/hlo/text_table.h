// A hash table from pieces of text to small values. Keys are views; their text must stay alive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace spillway::hlo {

template <typename Word>
std::uint64_t load_word(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Equality without the call to memcmp, which costs more than to compare a name.
inline bool same_text(const char* a, const char* b, std::size_t size) {
  if (size < 8) {
    for (std::size_t i = 0; i < size; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }
  const std::size_t last = size - 8;
  for (std::size_t i = 0; i < last; i += 8)
    if (load_word<std::uint64_t>(a + i) != load_word<std::uint64_t>(b + i)) return false;
  return load_word<std::uint64_t>(a + last) == load_word<std::uint64_t>(b + last);
}

/// A hash of a few instructions a word; its quality is enough for names and shapes.
inline std::uint32_t hash_text(std::string_view text) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  const char* at = text.data();
  const std::size_t size = text.size();
  std::uint64_t h = size * kMultiplier;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * kMultiplier;
    h ^= h >> 32;
  };
  if (size >= 8) {
    for (const char* const last = at + size - 8; at < last; at += 8)
      mix(load_word<std::uint64_t>(at));
    mix(load_word<std::uint64_t>(text.data() + size - 8));
  } else if (size >= 4) {
    mix(load_word<std::uint32_t>(at) << 32 | load_word<std::uint32_t>(at + size - 4));
  } else if (size > 0) {
    mix(load_word<std::uint8_t>(at) << 16 | load_word<std::uint8_t>(at + size / 2) << 8 |
        load_word<std::uint8_t>(at + size - 1));
  }
  return static_cast<std::uint32_t>(h ^ h >> 29);
}

/// Open addressing, linear probing. Clearing takes time for what is in the table, not for its size,
/// so that one table serves every computation in turn.
template <typename T>
class TextTable {
 public:
  TextTable() : slots_(1024) {}

  /// The value of `key`, or null.
  T* find(std::string_view key) {
    const Slot& slot = slots_[probe(key, hash_text(key))];
    return slot.entry == 0 ? nullptr : &entries_[slot.entry - 1].value;
  }

  /// The value of `key`, made by default if it is new; `is_new` says which. Valid until the next
  /// insertion.
  T& insert(std::string_view key, bool& is_new) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    const std::uint32_t hash = hash_text(key);
    const std::uint32_t at = probe(key, hash);
    is_new = slots_[at].entry == 0;
    if (is_new) {
      entries_.push_back({key.data(), static_cast<std::uint32_t>(key.size()), at, T{}});
      slots_[at] = {hash, static_cast<std::uint32_t>(entries_.size())};
    }
    return entries_[slots_[at].entry - 1].value;
  }

  void clear() {
    if (entries_.size() * 16 < slots_.size()) {
      for (const Entry& entry : entries_) slots_[entry.slot] = {};
    } else {
      std::ranges::fill(slots_, Slot{});
    }
    entries_.clear();
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t entry = 0;  ///< index + 1; 0 is free
  };
  struct Entry {
    const char* key = nullptr;
    std::uint32_t key_size = 0;
    std::uint32_t slot = 0;
    T value{};
  };

  /// The slot of `key`, or the free one where it belongs.
  std::uint32_t probe(std::string_view key, std::uint32_t hash) const {
    const auto mask = static_cast<std::uint32_t>(slots_.size() - 1);
    for (std::uint32_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.entry == 0) return i;
      if (slot.hash != hash) continue;
      const Entry& entry = entries_[slot.entry - 1];
      if (entry.key_size == key.size() && same_text(entry.key, key.data(), key.size())) return i;
    }
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const auto mask = static_cast<std::uint32_t>(slots_.size() - 1);
    for (const Slot& slot : old) {
      if (slot.entry == 0) continue;
      std::uint32_t i = slot.hash & mask;
      while (slots_[i].entry != 0) i = (i + 1) & mask;
      slots_[i] = slot;
      entries_[slot.entry - 1].slot = i;
    }
  }

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
};

}  // namespace spillway::hlo
