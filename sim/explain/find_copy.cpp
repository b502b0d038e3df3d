#include "sim/explain/find_copy.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/base/spelling.h"

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

struct Match {
  std::string name;
  const std::set<StepId>* steps;
};

/// What begins so, once where names mean the same: a start and its done are one copy.
std::vector<Match> find_matches(const Names& names, const std::string& beginning) {
  std::vector<Match> matches;
  for (auto it = names.lower_bound(beginning);
       it != names.end() && it->first.starts_with(beginning); ++it) {
    const auto same = std::ranges::find_if(
        matches, [&](const Match& match) { return *match.steps == it->second; });
    if (same == matches.end())
      matches.push_back({it->first, &it->second});
    else if (same->name.find("done") != std::string::npos)
      same->name = it->first;
  }
  return matches;
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

/// Of a residual that is not copied: why there is nothing to explain.
std::optional<Error> stays_in_hbm(const ResidualTable& residuals, const std::string& name) {
  for (const Residual& residual : residuals.residuals) {
    const bool meant =
        residual.id == name || std::ranges::find(residual.names, name) != residual.names.end();
    if (!meant || residual.placement != Placement::kDevice) continue;
    return Error{ErrorKind::kUsage,
                 "--explain: " + quoted(name) +
                     " stays in HBM: no copy of it crosses the host link, so none can be exposed",
                 {},
                 "",
                 "'plan --explain' says what moving it would bring"};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<StepId>> find_copies(const Program& program, const LoweredProgram& lowered,
                                        const CopyLabels& labels, const ResidualTable& residuals,
                                        const std::string& asked) {
  // HLO text writes a % in front of names, which are kept without.
  const std::string name = asked.starts_with('%') ? asked.substr(1) : asked;
  const Names names = list_names(program, lowered, labels);
  if (const auto exact = names.find(name); exact != names.end())
    return std::vector<StepId>(exact->second.begin(), exact->second.end());
  if (const auto kept = stays_in_hbm(residuals, name)) return *kept;
  // The end of a part of a name is a better place to stop than its middle: x.1 is x.1.0, not
  // x.12.0.
  for (const std::string& beginning : {name + ".", name}) {
    const std::vector<Match> matches = find_matches(names, beginning);
    if (matches.size() == 1)
      return std::vector<StepId>(matches[0].steps->begin(), matches[0].steps->end());
    if (matches.empty()) continue;
    std::vector<std::string> candidates;
    for (const Match& match : matches) candidates.push_back(match.name);
    return Error{ErrorKind::kUsage,
                 "--explain: " + quoted(name) + " may mean several",
                 {},
                 "",
                 listed(candidates)};
  }
  return unknown(names, name);
}

}  // namespace spillway
