// What a user asks to happen to names, as policies: --set query_proj=keep,offload.
#pragma once

#include <string>
#include <vector>

#include "model/diagnostics/diagnostics.h"
#include "model/plan/policy.h"
#include "model/residuals/names.h"

namespace spillway {

/// A name and what it is to become, one case for each.
struct NameChoice {
  std::string name;
  std::vector<Choice> choices;
  std::optional<LayerGroup> group = {};  ///< the layers it is for; empty: all that nobody else has
};
/// "query_proj=keep,offload,recompute"; of unrolled layers "query_proj@3=keep",
/// "query_proj@0-15=…". An error: no name, no layers, or something other than these.
Result<NameChoice> parse_name_choice(const std::string& text);

/// The layers that wishes are for, each a handle of its own (EvaluatorOptions::split).
std::vector<LayerGroup> groups_of(const std::vector<NameChoice>& wishes);
/// An error: layers of a name that are scanned, that there are not, or that stand in another wish.
/// `handles` are split already.
std::optional<Error> check_layers(const std::vector<NameChoice>& wishes,
                                  const std::vector<Handle>& handles, const UnrolledTable& table);

/// More cases than these are not simulated in one go.
inline constexpr std::size_t kMostPolicies = 1'000'000;

struct PolicyCases {
  std::vector<Policy> policies;  ///< the first name's choice changing slowest
  std::vector<Diagnostic> findings;
};
/// Every combination of choices; names that are not asked about stay as compiled. Of two names on
/// one value, keep or offload on either wins over recompute. What cannot take effect is a finding:
/// a name that the program does not save, or a handle that cannot be moved. An error: a name that
/// is neither a handle nor in the sidecar, a name twice, or more than `most` combinations.
Result<PolicyCases> combine(const std::vector<NameChoice>& wishes,
                            const std::vector<Handle>& handles, const NameList& names,
                            std::size_t most);

}  // namespace spillway
