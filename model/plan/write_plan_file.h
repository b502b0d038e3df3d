// Writer of plan files (plan_file.h).
#pragma once

#include <string>

#include "model/plan/plan_file.h"

namespace spillway {

/// YAML that read_plan_file takes back as the same plan, and PyYAML as the same words. Same plan,
/// same text.
std::string to_yaml(const PlanFile& plan);

}  // namespace spillway
