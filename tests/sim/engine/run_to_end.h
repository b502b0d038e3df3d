// Runs what does not take too long.
#pragma once

#include <doctest/doctest.h>

#include <utility>

#include "sim/engine/engine.h"

namespace spillway::engine {

inline EngineResult run_to_end(const EngineProgram& program, const EngineOptions& options = {},
                               Listener* listener = nullptr) {
  Result<EngineResult> result = run(program, options, listener);
  REQUIRE(result.ok());
  return std::move(result).value();
}

}  // namespace spillway::engine
