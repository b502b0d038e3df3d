// The table of a capacity report for people: which cells it shows, and what it says of each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/capacity/capacity.h"

namespace spillway {

/// The cells that a table of at most `most` rows shows, in the order of the report.
struct CapacityRows {
  std::vector<std::size_t> cells;
  bool best_batch_only = false;  ///< of each model, machine, number of devices and sequence
  std::size_t left_out = 0;      ///< rows beyond `most`
};
CapacityRows choose_rows(const CapacityReport& report, std::size_t most);

/// What was left out, as a sentence; empty for nothing.
std::string left_out_text(const CapacityReport& report, const CapacityRows& rows);

/// Heads of a table's columns; '>' for those that are right-aligned. Model and machine stand above.
std::vector<std::string> capacity_heads();
std::vector<std::string> capacity_row(const CapacityCell& cell);

}  // namespace spillway
