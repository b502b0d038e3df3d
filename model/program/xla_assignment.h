// What XLA itself assigned to memory, where the file that a program was read from says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/program/shape.h"

namespace spillway {

struct XlaBuffer {
  std::string defined_by;  ///< the instruction, and which element of its result: "while.3{2}"
  Bytes offset, size;
};

struct XlaAllocation {
  std::int64_t index = 0;
  Bytes size;
  MemorySpace space = MemorySpace::kDevice;
  std::optional<std::int64_t> parameter;  ///< number, for a parameter of the entry
  bool constant = false;
  bool thread_local_memory = false;
  bool live_out = false;
  bool tuple_table = false;
  std::vector<XlaBuffer> buffers;
};

struct XlaBufferAssignment {
  std::vector<XlaAllocation> allocations;  ///< by XLA's index
};

}  // namespace spillway
