#include "model/base/spelling.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace spillway {
namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// How many letters must be added, dropped, replaced or swapped with their neighbour.
/// Three rows of the usual table: rows[i % 3][j] is the distance of a's first i and b's first j.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> rows[3];
  for (auto& row : rows) row.resize(b.size() + 1);
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
          folded(a[i - 2]) == folded(b[j - 1]))
        row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string> names,
                              std::size_t letters_a_mistake) {
  constexpr std::size_t kLongest = 96;  // nobody mistypes more
  if (name.size() > kLongest) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / letters_a_mistake) + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > kLongest) continue;
    const std::size_t d = distance(name, candidate);
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace spillway
