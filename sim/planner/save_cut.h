// Which values a backward pass should find saved, and which it should compute again: a minimum cut.
//
//   needed ── value ─┬─ saved:  value.save_time + price x value.bytes
//                    └─ run again:  operation.time, and what the operation reads is needed too
//
// Both sides are added up over all values; the cheapest choice is the smallest cut of a network in
// which being needed flows from the values that backward reads to whatever makes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/units.h"

namespace spillway {

/// What one iteration computes again. Values that nothing has to be paid for (parameters, what is
/// saved anyway) are left out: operations just do not read them.
struct SaveGraph {
  struct Value {
    Bytes bytes;                         ///< what saving it takes
    SimTime save_time;                   ///< of writing it in forward and reading it in backward
    std::optional<std::uint32_t> maker;  ///< an operation; empty: it must be saved
    bool may_be_saved = true;
  };
  struct Operation {
    SimTime time;
    std::vector<std::uint32_t> reads;  ///< values; their makers stand in front of this operation
  };
  std::vector<Value> values;
  std::vector<Operation> operations;
  std::vector<std::uint32_t> needed;  ///< values that backward reads
};

struct SaveCut {
  std::vector<std::uint32_t> saved;      ///< values, ascending
  std::vector<std::uint32_t> run_again;  ///< operations, ascending
  Bytes bytes;                           ///< of what is saved
  SimTime time;                          ///< of what runs again, and of saving
};

/// What has to run again where just these are saved.
SaveCut with_saved(const SaveGraph& graph, const std::vector<std::uint32_t>& saved);

/// The choice with the least time + price x bytes; `price` is in whole picoseconds for so many
/// bytes. Of several, one that runs less again.
struct SavePrice {
  std::int64_t picoseconds = 0, bytes = 1;
};
SaveCut cheapest_cut(const SaveGraph& graph, SavePrice price);

/// Every choice that is the cheapest at some price, from the one that saves least to the one that
/// takes the least time: corners of the convex hull of (bytes, time).
std::vector<SaveCut> cheapest_cuts(const SaveGraph& graph);

}  // namespace spillway
