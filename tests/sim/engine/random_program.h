// Small random programs for properties: same seed, same program, on every machine.
#pragma once

#include <cstdint>
#include <random>

#include "sim/engine/program.h"

namespace spillway::engine::testing {

/// Whole numbers in [low, high], the same everywhere (the distributions of <random> are not).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  std::int64_t roll(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(std::int64_t percent) { return roll(1, 100) <= percent; }

 private:
  std::mt19937_64 bits_;
};

struct RandomProgramOptions {
  std::int64_t scale = 1;  ///< picoseconds and units of a short task
  std::int64_t most_trips = 40;
  int deepest = 3;                 ///< nesting of loops
  bool private_resources = false;  ///< no resource is used on two streams
  bool two_sided = false;          ///< some resources are, and tasks use either side or both
};

/// Loops up to `deepest`, slots waited for late, early, never, and across iterations, tasks with
/// and without latency, work and demands. Without a fault.
EngineProgram random_program(std::uint64_t seed, const RandomProgramOptions& options = {});

/// The same program without loops: their bodies written out.
EngineProgram unrolled(const EngineProgram& program);

}  // namespace spillway::engine::testing
