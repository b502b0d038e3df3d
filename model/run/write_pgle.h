// A profile that tells XLA's scheduler what the instructions of a program take: the text of its
// ProfiledInstructionsProto, which the flag xla_gpu_pgle_profile_file_or_directory_path names. XLA
// has such profiles from measured runs; this one has the costs of the cost model, and so is the one
// way to tell XLA what a copy across the host link takes, to which it gives a constant otherwise.
//
// XLA finds a cost by the name an instruction had when it was scheduled. A profile therefore
// belongs to one program, compiled with the same flags; to any other it is noise. How XLA reads it,
// which programs it helps, and the measurements behind the rules below: docs/pgle.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/cost_table.h"
#include "model/cost/topology.h"
#include "model/hardware/profile.h"
#include "model/run/pgle.h"

namespace spillway {

struct PgleCost {
  std::string name;  ///< of the instruction when XLA scheduled it
  Seconds time;      ///< of one run
};

/// A copy across the host link.
struct PgleCopy {
  std::string name;
  Bytes bytes;
  Seconds alone;  ///< what it takes when no other copy runs
  /// Whether it has a cost of its own; if not, XLA's constant stands for it.
  bool has_cost = true;
};

/// What was assumed about copies across the host link: bandwidth of one GPU.
struct PgleLink {
  BytesPerSecond device_to_host, host_to_device;  ///< what the times are made with
  BytesPerSecond both_ways;                       ///< either direction, while both are busy
  std::int64_t gpus_of_cpu = 1;                   ///< that copy at the same time
};

/// XLA's latency of a host copy without a profile, in the unit of its costs.
inline constexpr double kXlaCopyLatency = 5000;

struct PgleProfile {
  std::string program, hardware;
  std::vector<PgleCost> costs;   ///< in the order of the program's text, each name once
  std::vector<PgleCopy> copies;  ///< across the host link, in the same order
  /// Units of XLA for a microsecond: 1, or so many that its constant is the longest copy without a
  /// cost.
  double units_per_us = 1;
  PgleLink link;
};

/// Times of what a program runs, each for one run:
///   kernel       time + gap, for which the main stream is taken
///   collective   its time
///   loop         trip count x what is in its body; of a conditional the longest branch
///   host copy    sum over the copies that share its direction of the link with it, in one
///                iteration of its loop: copy_latency + bytes / rate
///                rate = min(link of the direction, HBM,
///                           host memory of the CPU / GPUs of the program that share it)
/// The copies of an iteration go one after the other, while XLA lets any number of them run at
/// once: with times of their own the short one is started last, and waits behind the long one.
///
/// A copy of a slice, within HBM too, goes by the name of what its start wraps, under which XLA
/// looks up a latency only. A plain copy-start would be looked up twice under its one name, as the
/// latency of the pair and as time of the main stream; so it gets no cost, and `units_per_us` makes
/// XLA's constant what the longest such copy takes. Holds for any scheduled dump; clones that XLA's
/// rematerialisation made later go by what they were cloned from. From: XLA of jaxlib 0.12.0 (its
/// log names what it finds, docs/pgle.md).
PgleProfile make_pgle_profile(const Program& program, const CostTable& costs,
                              const HardwareProfile& profile, const Topology& topology);

/// What XLA would read from it.
ProfiledInstructions as_read(const PgleProfile& profile);

/// A .pbtxt as XLA reads it, with what was assumed as comments on top.
std::string to_pbtxt(const PgleProfile& profile);

}  // namespace spillway
