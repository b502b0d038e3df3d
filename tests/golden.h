// Golden files: the exact text that a person or a script sees. `spillway_tests --update` rewrites
// them; the change is then reviewed as a diff.
#pragma once

#include <string>
#include <string_view>

namespace spillway::testing {

/// Whether goldens are rewritten instead of compared.
bool& update_goldens();

/// Compares `text` with tests/golden/`name`, to the byte, and fails the running test with the first
/// line that differs.
void check_golden(std::string_view name, std::string_view text);

/// The whole content of a file; fails the running test when it cannot be read.
std::string read_text(const std::string& path);

/// A path inside the repository.
std::string source_path(std::string_view relative);

}  // namespace spillway::testing
