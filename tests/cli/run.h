// Runs the built binary from the top of the repository and keeps what it wrote.
#pragma once

#include <string>

namespace spillway::testing {

struct Run {
  int exit_code = -1;
  std::string out, err;
};

/// `arguments` as a shell would take them.
Run run_spillway(const std::string& arguments);

}  // namespace spillway::testing
