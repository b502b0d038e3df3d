// The layers of one name treated differently, where they are not scanned: a scan has one choice for
// all of them, an unrolled step a jax.checkpoint for each layer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/planner/case_book.h"

namespace spillway {

/// Some layers of a handle otherwise than in a plan that fits, simulated.
struct LayeredPlan {
  std::string handle;
  Choice choice = Choice::kKeep;      ///< of `layers`; the others stay as planned
  std::vector<std::uint32_t> layers;  ///< ascending
  std::size_t of_layers = 0;
  std::vector<Handle> handles;  ///< the plan's, that one in two
  PolicyCase outcome;           ///< of those
  std::size_t simulated = 0;    ///< to find it
};

/// The fastest found that fits, where it is faster than the plan. Alike layers are collapsed first:
/// how many of them, by bisection, with the first, the last and evenly spread ones; then which, by
/// what each gains alone. All subsets where there are no more than kAllSubsets. One handle at a
/// time, those first whose other choice would gain most if all layers had room. `book` has the plan
/// and all that differ from it by one handle; the plan is its best and fits.
inline constexpr std::size_t kAllSubsets = 16;
Result<std::optional<LayeredPlan>> find_layered_plan(const Evaluator& evaluator,
                                                     const CaseBook& book,
                                                     const ScheduleSettings& order,
                                                     std::size_t threads,
                                                     const std::function<void()>& on_case = {});

}  // namespace spillway
