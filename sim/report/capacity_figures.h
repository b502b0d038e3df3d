// The figures of a cell of a capacity report, under the names that they have outside: one list for
// JSON, CSV and SQLite.
#pragma once

#include <string>

#include "sim/capacity/capacity.h"

namespace spillway {

/// Where a cell stands: visit(name, value) for text, whole numbers and others.
template <typename Cell, typename Visit>
void visit_key(Cell& cell, const Visit& visit) {
  visit("model", cell.key.model);
  visit("machine", cell.key.machine);
  visit("devices", cell.key.devices);
  visit("batch_sequences_per_device", cell.key.batch);
  visit("sequence_tokens", cell.key.sequence);
}

/// What was estimated; of a cell without `impossible`. Bytes and seconds are of one device.
template <typename Cell, typename Visit>
void visit_estimate(Cell& cell, const Visit& visit) {
  visit("fits", cell.fits);
  visit("policy", cell.policy);
  visit("binds", cell.binds);
  visit("step_seconds", cell.step.step);
  visit("tokens_per_second", cell.tokens_per_second);
  visit("mfu", cell.mfu);
  visit("hbm_bytes", cell.step.device);
  visit("hbm_pool_bytes", cell.pool);
  visit("host_bytes", cell.step.host);
  visit("host_pool_bytes", cell.host);
  visit("state_bytes", cell.step.state);
  visit("saved_bytes", cell.step.saved);
  visit("working_bytes", cell.step.working);
  visit("kernel_seconds", cell.step.kernels);
  visit("recomputed_seconds", cell.step.recomputed);
  visit("exposed_collective_seconds", cell.step.exposed_collectives);
  visit("exposed_copy_seconds", cell.step.exposed_copies);
  visit("step_seconds_with_room", cell.step_with_room);
  visit("model_flops", cell.step.model_flops);
}

/// What follows from those, for readers who do not want to calculate.
template <typename Visit>
void visit_derived(const CapacityCell& cell, const Visit& visit) {
  visit("tokens_per_second_per_device", cell.tokens_per_second_per_device());
  visit("hbm_headroom_bytes", cell.hbm_headroom());
  visit("host_headroom_bytes", cell.host_headroom());
}

/// A figure as a plain number, text or truth.
inline std::int64_t plain(Bytes value) { return value.value(); }
inline double plain(Seconds value) { return value.value(); }
inline double plain(Flops value) { return value.value(); }
inline double plain(double value) { return value; }
inline std::int64_t plain(std::int64_t value) { return value; }
inline bool plain(bool value) { return value; }
inline const std::string& plain(const std::string& value) { return value; }

}  // namespace spillway
