// One field out of the JSON that XLA writes into backend_config, without parsing the rest: a
// program has thousands of these texts, of which the cost model wants one or two numbers.
#pragma once

#include <string_view>

namespace spillway {

/// The value of the first field called `key`, as it stands: a number, an object or a list with its
/// brackets, a string without its quotes. Empty when there is no such field.
std::string_view json_value(std::string_view json, std::string_view key);

}  // namespace spillway
