// Policies that need no search: what others would do. Each is a pure function of the handles.
#pragma once

#include <span>

#include "model/plan/policy.h"

namespace spillway {

struct Baseline {
  const char* name;
  Policy (*propose)(const std::vector<Handle>&);
};

std::span<const Baseline> baselines();

}  // namespace spillway
