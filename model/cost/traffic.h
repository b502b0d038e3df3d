// How many bytes an instruction moves: through HBM, and through the host link for operands and
// results in pinned host memory.
//
// What a kernel really reads and writes is counted, not the arrays it is handed: a slice at its own
// size, an in-place update at the size of the update, an operand that appears twice once. Reuse in
// caches is not modelled beyond that: every operand is read once, every result written once.
#pragma once

#include "model/base/units.h"
#include "model/program/program.h"

namespace spillway {

struct Traffic {
  Bytes hbm_read{}, hbm_written{};
  Bytes host_read{}, host_written{};  ///< memory space 5, pinned host

  Traffic& operator+=(const Traffic& other);
};

/// Holds for every instruction that runs by itself; zero for free ones, loops, calls and dones.
/// Collectives are counted as if each operand were read and each result written once.
Traffic count_traffic(const Program& program, InstructionId id);

}  // namespace spillway
