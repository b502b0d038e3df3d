// Where the devices of a program stand: which of them share an NVLink domain, which a host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/cost/replica_groups.h"
#include "model/hardware/profile.h"

namespace spillway {

/// Devices stand in order: domain = device / gpus_per_domain.
///   devices   0 … 63   64 … 127            128 GPUs, domains of 64
///   domain        0         1
struct Topology {
  std::int64_t devices = 1;
  std::int64_t gpus_per_domain = 1;  ///< of this program; a domain may hold more
  std::int64_t gpus_per_host = 1;
  std::string assumption{};  ///< one line for the user: what was assumed and from what
};

/// hosts x gpus, as a user states it.
struct HostGrid {
  std::int64_t hosts = 1, gpus = 1;
};
/// "32x4", and back; empty for what is none, or has no host or no GPU.
std::string to_string(HostGrid grid);
std::optional<HostGrid> parse_host_grid(std::string_view text);

/// Groups fill domains evenly: the largest divisor of `devices` that fits the profile's domain
/// (128 devices, domains of 72: 64 + 64).
Topology make_topology(std::int64_t devices, const HardwareProfile& profile);

/// The same with hosts as stated, even where those of the profile hold fewer GPUs. Whole hosts
/// share a domain where the fabric reaches beyond one host. Refused when hosts x gpus is not the
/// number of devices.
Result<Topology> make_topology(std::int64_t devices, const HardwareProfile& profile, HostGrid grid);

/// How many GPUs of the program share the memory of one CPU.
std::int64_t gpus_sharing_cpu(const Topology& topology, const HardwareProfile& profile);

/// How the groups of a collective lie.
struct GroupLayout {
  std::int64_t size = 1;        ///< devices of the largest group
  std::int64_t domains = 1;     ///< that a group touches
  std::int64_t per_domain = 1;  ///< its devices in the domain that holds fewest of it
  friend bool operator==(const GroupLayout&, const GroupLayout&) = default;
};
/// The worst over all groups: everyone waits for it. A device that is alone exchanges nothing.
GroupLayout layout_of(const std::vector<IdGroup>& groups, const Topology& topology);

}  // namespace spillway
