// Collectives: what one moves between which devices, and how long it takes alone.
//
// Left out: congestion by other collectives and by other jobs, stragglers, and waiting for peers to
// arrive. A collective's time starts when the last rank has called it.
#pragma once

#include <optional>

#include "model/cost/cost.h"
#include "model/cost/topology.h"
#include "model/program/program.h"

namespace spillway {

enum class CollectiveKind {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kPermute,
  kBroadcast,
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The whole tensor of one device: what an all-gather returns, what the others are given.
  Bytes tensor{};
  std::int64_t tensors = 1;  ///< combined in this one operation
  GroupLayout group{};
  bool groups_known = true;  ///< else all devices are taken to take part
};

/// The collective that an instruction is, or that its async start or its fusion wraps.
std::optional<Collective> find_collective(const Program& program, InstructionId id,
                                          const Topology& topology);

/// For n devices in d domains, m of them in each, S bytes of tensor, k tensors:
///   time = latency(m) + (d-1) r network_latency + (k-1) per_tensor
///          + max(transfer(fabric, m), network / nic_bandwidth)
///                     fabric           network            r
///   all-gather        (n-1)/n S        (n-1)/n S / m      1    rings through all devices, one for
///   reduce-scatter    (n-1)/n S        (n-1)/n S / m      1    each NIC of a domain
///   all-reduce        2 (m-1)/m S      2 (d-1)/d S / m    2    inside, across, inside
///   all-to-all        (m-1)/n S        (n-m)/n S          1    each to each
///   permute           S                S                  1
///   broadcast         S                S / m              1
/// latency and transfer, bytes / bus_bandwidth and what chunks and channels add, are the profile's
/// fits (CollectiveFit), interpolated between group sizes and the nearest beyond them. Without a
/// second domain the terms of the network vanish, without a second device in the domain those of
/// the fabric. HBM: what leaves a GPU is read, what arrives is written. Holds from some 64 KiB on;
/// smaller ones come out slow, as the fits were not made for them. From: fits of XLA's tables;
/// rings as in XLA's network model. Why: docs/cost-model.md#collectives
Cost collective_cost(const Collective& collective, const HardwareProfile& profile);

}  // namespace spillway
