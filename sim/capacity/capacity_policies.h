// The policies that a cell of a capacity report chooses among: presets, each with the state in
// several places.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// A step under one of the policies; batch and sequence are still those of the configuration.
struct CapacityPolicy {
  std::string label;  ///< "minimal_offloaded, optimizer on the host"
  StepSpec step;
  /// The entry that differs in where state lies only, and has none on the host that this one has
  /// not; itself where this has the least. Never slower, and to be preferred where it fits.
  std::size_t with_least_moved = 0;
};

/// "configured" is what the configuration says. An error: no such preset.
std::optional<Error> check_capacity_policies(const std::vector<std::string>& names);

/// `names` empty: the presets, and what is configured where that is none of them. Policies that
/// save the same values of this model in the same places are one, under the first name.
std::vector<CapacityPolicy> list_capacity_policies(const StepSpec& configured,
                                                   const std::vector<std::string>& names,
                                                   bool may_offload_state);

}  // namespace spillway
