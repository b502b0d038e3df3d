#include "sim/planner/least_time.h"

#include <algorithm>
#include <cstdint>

namespace spillway {
namespace {

/// Instructions of a computation.
class InstructionSet {
 public:
  explicit InstructionSet(std::size_t size) : words_((size + 63) / 64) {}
  void insert(std::size_t k) { words_[k / 64] |= std::uint64_t{1} << (k % 64); }
  bool contains(std::size_t k) const { return (words_[k / 64] >> (k % 64) & 1) != 0; }
  void insert(const InstructionSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// Of each instruction, what it hangs on.
std::vector<InstructionSet> find_ancestors(const Computation& computation) {
  std::vector<InstructionSet> ancestors;
  ancestors.reserve(computation.size());
  for (const InstructionIndex i : computation.instructions()) {
    InstructionSet& own = ancestors.emplace_back(computation.size());
    for (const Operand& operand : computation.operands(i)) {
      own.insert(operand.instruction.index);
      own.insert(ancestors[operand.instruction.index]);
    }
  }
  return ancestors;
}

}  // namespace

Seconds least_time(const Computation& computation, const std::vector<Seconds>& kernel,
                   const std::vector<Seconds>& collective) {
  Seconds all(0);
  std::vector<std::size_t> collectives, kernels;
  for (std::size_t k = 0; k < computation.size(); ++k) {
    all += kernel[k];
    if (kernel[k] > Seconds(0)) kernels.push_back(k);
    if (collective[k] > Seconds(0)) collectives.push_back(k);
  }
  if (collectives.empty()) return all;
  const std::vector<InstructionSet> ancestors = find_ancestors(computation);
  const auto sum_of = [&](const auto& counts) {
    Seconds sum(0);
    for (const std::size_t k : kernels)
      if (counts(k)) sum += kernel[k];
    return sum;
  };
  // The longest chain that ends with each collective; operands stand before their users.
  std::vector<Seconds> chain;
  Seconds longest = all;
  for (std::size_t b = 0; b < collectives.size(); ++b) {
    const std::size_t at = collectives[b];
    Seconds before = sum_of([&](std::size_t k) { return ancestors[at].contains(k); });
    for (std::size_t a = 0; a < b; ++a) {
      const std::size_t earlier = collectives[a];
      if (!ancestors[at].contains(earlier)) continue;
      const Seconds between = sum_of([&](std::size_t k) {
        return ancestors[at].contains(k) && ancestors[k].contains(earlier);
      });
      before = std::max(before, chain[a] + between);
    }
    chain.push_back(before + collective[at]);
    const Seconds behind = sum_of([&](std::size_t k) { return ancestors[k].contains(at); });
    longest = std::max(longest, chain.back() + behind);
  }
  return longest;
}

}  // namespace spillway
