#include "model/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace spillway {

void fail_check(std::string_view what, const char* file, int line) {
  std::fprintf(stderr, "internal error: %s:%d: %.*s\n", file, line, static_cast<int>(what.size()),
               what.data());
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace spillway
