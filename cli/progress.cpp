#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace spillway {

void Progress::advance() {
  const std::size_t done = ++done_;
  const std::int64_t due = (Clock::now() - begun_) / kEvery;
  std::int64_t lines = lines_;
  // Whoever first sees that a line is due writes it.
  if (done == total_ || due <= lines || !lines_.compare_exchange_strong(lines, due)) return;
  if (total_ == 0)
    fmt::print(stderr, "{} {}\n", done, what_);
  else
    fmt::print(stderr, "{} of {} {}\n", done, total_, what_);
}

}  // namespace spillway
