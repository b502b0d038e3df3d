// "Did you mean …": the known name that is nearest to a mistyped one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace spillway {

/// The nearest of `names`, or empty when none is near: at most one letter in `letters_a_mistake`
/// differs. Letter case and the difference between '-' and '_' count nothing; the first of equals
/// wins.
std::string_view nearest_name(std::string_view name, std::span<const std::string> names,
                              std::size_t letters_a_mistake = 3);

}  // namespace spillway
