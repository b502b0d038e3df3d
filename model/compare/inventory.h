// What a program holds and moves, as a list in which two programs can be compared: what lies in HBM
// when most is live, what lies in pinned host memory, what crosses the link, what XLA has cloned.
#pragma once

#include <string>
#include <vector>

#include "model/memory/memory_report.h"

namespace spillway {

/// Things that are alike: same shape, same origin.
struct Item {
  std::string name;    ///< of one of them: an instruction, with the tuple element
  std::string shape;   ///< of a copy, what crosses the link
  std::string origin;  ///< the JAX operation, where XLA tells it
  Bytes bytes;         ///< of one
  std::int64_t count = 1;

  Bytes total() const { return bytes * count; }
};

/// By kind; what is alike is one item.
struct Inventory {
  std::vector<Item> buffers;            ///< live at the peak, on the device
  std::vector<Item> host_arrays;        ///< in pinned host memory at any time
  std::vector<Item> offloads, reloads;  ///< of one step, loops multiplied
  std::vector<Item> clones;             ///< made by XLA's rematerialisation; runs in a step
};

/// `memory` and `report` are those of `program`.
Inventory take_inventory(const Program& program, const MemoryAssignment& memory,
                         const MemoryReport& report);

}  // namespace spillway
