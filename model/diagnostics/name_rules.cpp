// Names of the sidecar, and how they were matched.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"

namespace spillway::internal {
namespace {

std::optional<Finding> names_without_residual(const Evidence& in) {
  const auto& names = in.residuals.unmatched_names;
  if (names.empty()) return std::nullopt;
  return Finding{fmt::format("no residual carries {}.", enumerate(names, names.size())),
                 "Either the policy of this program recomputes it, or the backward pass does not "
                 "need it: then "
                 "neither saving nor offloading changes a byte.",
                 "A dump compiled with everything saved tells the two apart."};
}

std::optional<Finding> guessed_names(const Evidence& in) {
  std::vector<std::string> pairs;
  for (const Residual& residual : in.residuals.residuals)
    if (residual.evidence == NameEvidence::kGuess)
      pairs.push_back(residual.id + " = " + residual.names.front());
  if (pairs.empty()) return std::nullopt;
  return Finding{
      fmt::format("names are guessed: {}.", enumerate(pairs, pairs.size())),
      "Several names have the same shape and not all of them are saved; they were taken in order.",
      ""};
}

constexpr Rule kRules[] = {
    {"names-without-residual", Severity::kInfo, names_without_residual},
    {"guessed-names", Severity::kInfo, guessed_names},
};

}  // namespace

std::span<const Rule> name_rules() { return kRules; }

}  // namespace spillway::internal
