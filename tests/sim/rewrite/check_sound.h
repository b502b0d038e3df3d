// Whether a rewritten program is sound, in the opinion of those that did not make it.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/plan/check_plan.h"
#include "model/program/validate.h"

namespace spillway::testing {

inline void check_valid(const Program& program) {
  const auto error = validate(program);
  CHECK_MESSAGE(!error.has_value(), (error ? to_text(*error) : ""));
}

/// And a plan that could be carried out where there is memory enough.
inline void check_sound(const Program& program) {
  check_valid(program);
  Budget much;
  much.hbm = much.pool = much.host = Bytes(std::int64_t{1} << 40);
  CHECK(check_plan(program, much) == std::vector<std::string>{});
}

}  // namespace spillway::testing
