#include "sim/explain/find_copy.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/hardware/spelling.h"

namespace spillway {
namespace {

using engine::StepId;

constexpr std::size_t kListed = 4;

/// Everything that can be asked for, with the steps it means.
using Names = std::map<std::string, std::set<StepId>>;

/// Whether its time is that of a copy or a collective.
bool moves_data(const LoweredProgram& lowered, StepId step) {
  const StepOrigin& origin = lowered.origins[step];
  return origin.kind == StepOrigin::kCopy || origin.kind == StepOrigin::kCollective ||
         (origin.kind == StepOrigin::kKernel &&
          std::holds_alternative<engine::StartStep>(lowered.program.steps[step]));
}

Names list_names(const Program& program, const LoweredProgram& lowered, const CopyLabels& labels) {
  Names names;
  for (const StepId step : ids(lowered.origins)) {
    const StepOrigin& origin = lowered.origins[step];
    if (origin.kind == StepOrigin::kWait)
      names[std::string(program[*origin.done].name)].insert(*origin.started);
    if (!moves_data(lowered, step)) continue;
    names[std::string(program[origin.instruction].name)].insert(step);
    for (const std::string& residual : labels.of_step[step].names) names[residual].insert(step);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < std::min(names.size(), kListed); ++k)
    text += (k == 0 ? "" : ", ") + quoted(names[k]);
  if (names.size() > kListed)
    text += " or one of " + std::to_string(names.size() - kListed) + " more";
  return text;
}

Error unknown(const Names& names, const std::string& name) {
  std::vector<std::string> left, near;
  for (const auto& [known, steps] : names) left.push_back(known);
  while (near.size() < kListed) {
    const std::string nearest(nearest_name(name, left));
    if (nearest.empty()) break;
    near.push_back(nearest);
    std::erase(left, nearest);
  }
  std::string advice = "the table of what is exposed names some";
  if (names.empty()) advice = "the program has neither";
  if (!near.empty()) advice = "did you mean " + listed(near) + "?";
  return {
      ErrorKind::kUsage,
      "--explain: " + quoted(name) + " is no copy, collective or offloaded residual of the program",
      {},
      "",
      advice};
}

}  // namespace

Result<std::vector<StepId>> find_copies(const Program& program, const LoweredProgram& lowered,
                                        const CopyLabels& labels, const std::string& name) {
  const Names names = list_names(program, lowered, labels);
  std::set<StepId> found;
  std::vector<std::string> candidates;
  if (const auto exact = names.find(name); exact != names.end()) {
    found = exact->second;
  } else {
    for (auto it = names.lower_bound(name); it != names.end() && it->first.starts_with(name);
         ++it) {
      // A start and its done are one copy: the second of them adds no doubt.
      if (candidates.empty() || it->second != found) candidates.push_back(it->first);
      if (candidates.size() == 1) found = it->second;
    }
    if (candidates.empty()) return unknown(names, name);
    if (candidates.size() > 1)
      return Error{ErrorKind::kUsage,
                   "--explain: " + quoted(name) + " may mean several",
                   {},
                   "",
                   listed(candidates)};
  }
  return std::vector<StepId>(found.begin(), found.end());
}

}  // namespace spillway
