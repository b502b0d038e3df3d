// What moving each handle to the host comes to: bytes that cross the link against bytes that are
// missing at the peak, and how long the copies take against the kernels that could hide them.
//
// Bytes moved are not bytes saved: what is not live at the peak frees nothing there, and what is
// fetched too early lies in HBM again when it matters.
#pragma once

#include <vector>

#include "sim/planner/case_book.h"

namespace spillway {

struct MoveEffect {
  std::size_t handle = 0;
  Bytes device_to_host, host_to_device;  ///< of a step, for this handle
  Bytes saved_at_peak;                   ///< below zero: the peak rises
  Bytes host;
  Seconds added;   ///< to the step; below zero: it gets faster
  Seconds link;    ///< the copies at the rates of the link
  Seconds window;  ///< kernels that run while it may be on its way

  Bytes moved() const { return device_to_host + host_to_device; }
  /// Above 1 the link cannot hide it, whatever the order.
  double load() const {
    return window > Seconds(0) ? ratio(link, window) : link > Seconds(0) ? 1e9 : 0;
  }
};

/// Of each handle that may be on the host, what offloading it changes against keeping it, all
/// others as in `policy`; those that hide most easily first. By window:
///   a name      kernels of the forward loop (out) and of the backward loop (in)
///   parameters  the loops, which fetch them layer by layer, and what follows
///   optimizer   kernels behind the last loop: the update, all there is between its being needed
///   and
///               its being sent back. Fetched earlier it lies in HBM as if it had never left.
/// Policies are ordered as the planner orders them (case_book.h). An error: one cannot be
/// simulated.
Result<std::vector<MoveEffect>> move_effects(const Evaluator& evaluator, const Policy& policy,
                                             const ScheduleSettings& order, std::size_t threads);

/// Updating the optimizer's state where it lies, on the host, instead of copying it in and out:
/// gradients go out, the CPU reads and writes everything once, parameters come in. An estimate from
/// bytes alone, and so a lower bound: what the CPU computes, and that XLA runs it on few threads,
/// is not modelled.
struct HostUpdate {
  Bytes gradients_out, parameters_in;
  Bytes host_traffic;  ///< that the CPU reads and writes for it
  Seconds link, memory;
  BytesPerSecond memory_rate;  ///< the GPU's share
  Bytes saved;                 ///< of HBM: the optimizer's state
  Seconds total() const { return link + memory; }
};
/// Empty: the optimizer's state or the parameters are not known.
std::optional<HostUpdate> estimate_host_update(const Evaluator& evaluator);

}  // namespace spillway
