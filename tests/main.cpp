// Entry of the test binary: doctest's own options, and --update to rewrite goldens (golden.h).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <string_view>

#include "tests/golden.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--update") spillway::testing::update_goldens() = true;
  doctest::Context context(argc, argv);
  return context.run();
}
