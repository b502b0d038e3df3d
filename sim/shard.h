// A part of the cases of a question: which one it is, and how parts of other questions are told
// apart when they are put together (sim/report/merge_shards.h).
#pragma once

#include <cstddef>
#include <string>

namespace spillway {

inline constexpr std::size_t kMostShards = 1'000'000;

/// Part `index` of `count`, from 1. Cases are dealt out in turn, so that parts take equally long.
struct Shard {
  std::size_t index = 1, count = 1;
  /// Whether case number `number`, from 0, is of this part.
  bool owns(std::size_t number) const { return number % count == index - 1; }
  /// How many of `cases` are.
  std::size_t share(std::size_t cases) const {
    return cases < index ? 0 : (cases - index) / count + 1;
  }
  bool is_valid() const {
    return count >= 1 && count <= kMostShards && index >= 1 && index <= count;
  }
};

/// What an answer in parts says of itself.
struct ShardLabel {
  Shard shard;
  std::size_t cases = 0;  ///< of the whole question
  std::string question;   ///< the same for all its parts, and for no other question
};

/// Its fields by the names that JSON has for them, for whoever writes or reads it.
template <typename Label, typename Visit>
void visit_label(Label& label, const Visit& visit) {
  visit("index", label.shard.index);
  visit("count", label.shard.count);
  visit("cases", label.cases);
  visit("question", label.question);
}

}  // namespace spillway
