// Whether a plan file can be what plan or whatif wrote: figures that contradict each other, or that
// no step has, were edited or damaged, and what verify would say of them means nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/hardware/strict_map.h"
#include "model/hardware/yaml_document.h"
#include "model/plan/plan_file.h"

namespace spillway {

/// Where the values stand in the file.
struct PlanFilePlaces {
  std::map<std::string, TextPosition, std::less<>> fields;  ///< by key; those of lists: the last
  std::map<std::string, TextPosition, std::less<>> policy;  ///< by name
  std::vector<TextPosition> residuals, state;               ///< one an entry

  TextPosition of(std::string_view key) const;
};

/// Adds what is wrong.
void check_plan_file(const PlanFile& plan, const PlanFilePlaces& places, YamlProblems& problems);

}  // namespace spillway
