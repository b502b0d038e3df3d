// Dimensions of the models that MaxText ships, under its names and in its keys.
//
// Origin: the dimensions are those of MaxText's configs/models at commit e591f30 (August 2026),
// written down anew here; parameter counts are checked against the makers' published ones in tests.
#pragma once

#include <string_view>
#include <vector>

namespace spillway {

/// The model's settings as YAML in MaxText's keys; empty where there is no such model.
std::string_view known_model(std::string_view name);

/// Every name, in alphabetical order.
std::vector<std::string_view> known_model_names();

}  // namespace spillway
