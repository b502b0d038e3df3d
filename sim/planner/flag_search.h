// Which of XLA's flags help a plan: each is tried by ordering the planned program again and
// simulating it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planner/advice.h"

namespace spillway {

/// Flags worth setting, one after the other: of those not set yet the one that helps most, with
/// what it brings on top of those before it. A flag helps when it makes the step at least
/// `kWorthStep` faster and the step still fits; or, where it costs no more than `kWorthStep`, when
/// it makes the step fit, or saves at least `kWorthMemory` of the HBM.
///
/// Tried are flags that `context.jaxlib` knows, that the user does not set, and that are not at
/// their value anyway. Empty where the order cannot be made again: see `reorder`.
inline constexpr double kWorthStep = 0.01;
inline constexpr double kWorthMemory = 0.05;
inline constexpr std::size_t kMostSearched = 3;  ///< flags; each takes a round of evaluations

struct FlagSearch {
  std::vector<Setting> flags;
  std::optional<PolicyCase> with_flags;  ///< ordered anew under all of them; empty: not tried
  /// With a profile of the planned step's modelled costs on top, where that is worth it; one can be
  /// written once the step is compiled (write_pgle.h).
  std::optional<PolicyCase> with_profile;
  std::size_t tried = 0;
  std::string not_tried_because;  ///< empty when they were
};
FlagSearch search_flags(const Evaluator& evaluator, const Policy& policy, const FlagSettings& users,
                        const FlagContext& context);

}  // namespace spillway
