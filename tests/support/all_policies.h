// Every policy of a few handles.
#pragma once

#include <utility>
#include <vector>

#include "model/plan/policy.h"

namespace spillway::testing {

/// Every combination of what the handles may be, the first handle outermost.
inline std::vector<Policy> all_policies(const std::vector<Handle>& handles) {
  std::vector<Policy> policies = {{}};
  for (const Handle& handle : handles) {
    std::vector<Policy> longer;
    for (const Policy& policy : policies)
      for (const Choice choice : choices_of(handle)) {
        longer.push_back(policy);
        longer.back().push_back(choice);
      }
    policies = std::move(longer);
  }
  return policies;
}

}  // namespace spillway::testing
