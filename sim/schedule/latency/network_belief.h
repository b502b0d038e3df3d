// What XLA's speed-of-light model believes that a collective between hosts takes: an S-curve over a
// ring, whatever the fabric between the GPUs of a host. Within an NVLink domain it has a table.
#pragma once

#include "model/cost/collective.h"

namespace spillway {

/// xla_gpu_analytical_latency_estimator_options, and what XLA assumes without.
struct NetworkBelief {
  double launch_us = 100;
  double nic_gb_per_s = 111.12;        ///< 55.56 for Hopper
  double chunk_preparation_us = 4.45;  ///< 13.34 for Hopper
  double round_trip_us = 46.67;        ///< 68.89 for Hopper
  std::int64_t gpus_per_host = 8;
  std::int64_t chunk_bytes = std::int64_t{4} << 20;
};

/// XLA's figures for a compute capability: "9.0" is Hopper, anything else as Blackwell.
NetworkBelief network_belief(std::string_view compute_capability);

/// Microseconds for `bytes` among `hosts` groups of GPUs, of which `communicators` run at once:
///   ring        0.45 [ launch + rounds (N-1)/gpus_per_host (share/NIC x 1.025
///                      + ceil(share/chunk) preparation + round trip) ],  share = bytes / N
///   all-to-all  0.45 [ launch + gpus_per_host (N-1) (the same for bytes / N / gpus_per_host) ]
/// rounds = 2 for an all-reduce, else 1; a permute counts N = 2.
double believed_network_time(CollectiveKind kind, double bytes, std::int64_t hosts,
                             const NetworkBelief& network);

}  // namespace spillway
