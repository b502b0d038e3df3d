#include "model/program/control_predecessors.h"

#include <algorithm>

namespace spillway {

std::vector<InstructionIndex> ControlPredecessors::of(InstructionIndex i) {
  std::vector<InstructionIndex> found;
  const auto list = computation_.attribute(i, "control-predecessors");
  if (!list) return found;
  if (by_name_.empty()) {
    by_name_.reserve(computation_.size());
    for (const InstructionIndex other : computation_.instructions())
      by_name_.emplace(computation_[other].name, other);
  }
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
    if (const auto named = by_name_.find(std::string_view(at, end)); named != by_name_.end())
      found.push_back(named->second);
    at = end;
  }
  return found;
}

}  // namespace spillway
