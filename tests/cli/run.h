// Runs the built binary from the top of the repository and keeps what it wrote.
#pragma once

#include <string>
#include <string_view>

namespace spillway::testing {

struct Run {
  int exit_code = -1;
  std::string out, err;
};

/// `arguments` as a shell would take them.
Run run_spillway(const std::string& arguments);

/// A run that ends with this exit code, says exactly this on stderr and nothing on stdout.
void check_refused(const std::string& arguments, int exit_code, std::string_view message);

}  // namespace spillway::testing
