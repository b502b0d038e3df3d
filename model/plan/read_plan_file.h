// Reader of plan files (plan_file.h), as strict as that of profiles: a key that is not known, is
// given twice or is missing, and a value of another kind, are errors with line and column.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/plan/plan_file.h"

namespace spillway {

/// Errors: no such file, no YAML, no plan; or one whose residuals are not what its policy says,
/// since what it predicts would be of another policy.
Result<PlanFile> read_plan_file(const std::string& path);
/// `path` is only for messages.
Result<PlanFile> parse_plan_file(std::string text, std::string path);

}  // namespace spillway
