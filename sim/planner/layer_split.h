// What a name could gain if its layers need not all be treated alike: a scan split in two, the
// first part with another policy. Nothing that a name in a single scan can be set to, and so never
// the plan itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/planner/case_book.h"

namespace spillway {

/// Some layers of a handle otherwise than in a plan that fits. Interpolated between two policies
/// that were simulated: the plan, and the one with all layers of the handle so.
struct LayerSplit {
  std::string handle;
  Choice choice = Choice::kKeep;  ///< of `layers` of `of_layers`; the others stay as planned
  std::int64_t layers = 0, of_layers = 0;
  Seconds step;
  Bytes peak_device, host;
};

/// The fastest split of one handle that fits, where one is faster than the plan. `book` has the
/// plan and all that differ from it by one handle; the plan is its best and fits.
std::optional<LayerSplit> find_layer_split(const Evaluator& evaluator, const CaseBook& book);

}  // namespace spillway
