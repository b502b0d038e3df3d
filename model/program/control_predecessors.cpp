#include "model/program/control_predecessors.h"

#include <algorithm>
#include <cstring>

namespace spillway {
namespace {

constexpr std::uint32_t kNone = ~0u;

}  // namespace

std::size_t ControlPredecessors::hash(std::string_view name) {
  std::uint64_t mixed = name.size();
  while (!name.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(name.size(), sizeof word);
    std::memcpy(&word, name.data(), size);
    mixed = (mixed ^ word) * 0x9e3779b97f4a7c15ull;
    mixed ^= mixed >> 32;
    name.remove_prefix(size);
  }
  return static_cast<std::size_t>(mixed);
}

/// Of two instructions of one name the first.
void ControlPredecessors::index_names() {
  std::size_t places = 4;
  while (places < 2 * computation_.size()) places *= 2;
  by_name_.assign(places, kNone);
  for (const InstructionIndex i : computation_.instructions()) {
    std::size_t place = hash(computation_[i].name) & (places - 1);
    while (by_name_[place] != kNone) place = (place + 1) & (places - 1);
    by_name_[place] = i.index;
  }
}

std::vector<InstructionIndex> ControlPredecessors::of(InstructionIndex i) {
  std::vector<InstructionIndex> found;
  const auto list = computation_.attribute(i, kControlPredecessors);
  if (!list) return found;
  if (by_name_.empty()) index_names();
  const auto is_between = [](char c) {
    return c == ',' || c == '%' || c == ' ' || c == '{' || c == '}' || c == '\t' || c == '\r' ||
           c == '\n';
  };
  for (auto at = list->begin(); at != list->end();) {
    if (is_between(*at)) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, list->end(), is_between);
    const std::string_view name(at, end);
    const std::size_t mask = by_name_.size() - 1;
    for (std::size_t place = hash(name) & mask; by_name_[place] != kNone;
         place = (place + 1) & mask)
      if (const InstructionIndex named(by_name_[place]); computation_[named].name == name) {
        found.push_back(named);
        break;
      }
    at = end;
  }
  return found;
}

}  // namespace spillway
