// What `simulate --explain` answers, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/explain/explain.h"

namespace spillway {

/// For a person at a terminal: a paragraph a copy.
std::string explain_text(const std::vector<CopyExplanation>& copies);

/// The text of the `explain` object of spillway.simulate/1. `name` is what was asked for.
std::string explain_json(const std::string& name, const std::vector<CopyExplanation>& copies);

}  // namespace spillway
