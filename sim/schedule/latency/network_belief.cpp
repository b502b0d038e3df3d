#include "sim/schedule/latency/network_belief.h"

#include <algorithm>
#include <cmath>

namespace spillway {

NetworkBelief network_belief(std::string_view compute_capability) {
  NetworkBelief belief;
  if (!compute_capability.starts_with("9.")) return belief;
  belief.nic_gb_per_s = 55.56;
  belief.chunk_preparation_us = 13.34;
  belief.round_trip_us = 68.89;
  return belief;
}

double believed_network_time(CollectiveKind kind, double bytes, std::int64_t hosts,
                             const NetworkBelief& network) {
  constexpr double kCoefficient = 0.45;         ///< of all terms
  constexpr double kHeaders = 1.025;            ///< of what goes over the wire
  constexpr double kBytesPerMicrosecond = 1e3;  ///< of one GB/s
  const double n = kind == CollectiveKind::kPermute
                       ? 2.0
                       : static_cast<double>(std::max<std::int64_t>(hosts, 1));
  const auto gpus = static_cast<double>(network.gpus_per_host);
  const auto step = [&](double share) {
    return share / (network.nic_gb_per_s * kBytesPerMicrosecond) * kHeaders +
           std::ceil(share / static_cast<double>(network.chunk_bytes)) *
               network.chunk_preparation_us +
           network.round_trip_us;
  };
  if (kind == CollectiveKind::kAllToAll)
    return kCoefficient * (network.launch_us + gpus * (n - 1) * step(bytes / n / gpus));
  const double rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  return kCoefficient * (network.launch_us + rounds * (n - 1) / gpus * step(bytes / n));
}

}  // namespace spillway
