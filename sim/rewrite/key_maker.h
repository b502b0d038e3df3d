// Hashes what a value is made of. Only for value_keys.cpp and what it is put together from.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "model/program/shape.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {

/// Two independent hashes, a word at a time.
class KeyMaker {
 public:
  void add(std::uint64_t number) {
    key_.high = (key_.high ^ number) * 0x9fb21c651e98df25ull;
    key_.high ^= key_.high >> 32;
    key_.low = (key_.low + number) * 0xd6e8feb86659fd93ull;
    key_.low ^= key_.low >> 29;
  }
  void add(std::string_view text) {
    add(text.size());
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(std::uint64_t)))) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
      add(word);
    }
  }
  void add(ValueKey key) {
    add(key.high);
    add(key.low);
  }
  void add(Shape shape) {
    add(std::uint64_t{shape.node_count()});
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      const Shape part = shape.at(node);
      add(static_cast<std::uint64_t>(part.type()));
      if (!part.is_array()) continue;
      add(std::uint64_t{part.dims().size()});
      for (const std::int64_t dim : part.dims()) add(static_cast<std::uint64_t>(dim));
      for (const std::int64_t dim : part.minor_to_major()) add(static_cast<std::uint64_t>(dim));
    }
  }
  ValueKey key() const { return key_; }

 private:
  ValueKey key_{0xcbf29ce484222325ull, 0x2545f4914f6cdd1dull};
};

}  // namespace spillway
