#include "model/program/control_predecessors.h"

#include <algorithm>

namespace spillway {

std::vector<InstructionIndex> ControlPredecessors::of(InstructionIndex i) {
  std::vector<InstructionIndex> found;
  const auto list = computation_.attribute(i, "control-predecessors");
  if (!list) return found;
  if (by_name_.empty())
    for (const InstructionIndex other : computation_.instructions())
      by_name_.emplace(computation_[other].name, other);
  constexpr std::string_view kBetween = "{}%, \t\r\n";
  std::size_t at = 0;
  while ((at = list->find_first_not_of(kBetween, at)) != std::string_view::npos) {
    const std::size_t end = std::min(list->find_first_of(kBetween, at), list->size());
    if (const auto named = by_name_.find(list->substr(at, end - at)); named != by_name_.end())
      found.push_back(named->second);
    at = end;
  }
  return found;
}

}  // namespace spillway
