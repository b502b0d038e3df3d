#include "model/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace spillway {

void fail_check(std::string_view what, std::source_location where) {
  std::fprintf(stderr, "internal error: %s:%u: %.*s\n", where.file_name(), where.line(),
               static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace spillway
