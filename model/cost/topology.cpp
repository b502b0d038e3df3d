#include "model/cost/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace spillway {
namespace {

std::int64_t largest_divisor(std::int64_t n, std::int64_t at_most) {
  for (std::int64_t divisor = std::min(n, at_most); divisor > 1; --divisor)
    if (n % divisor == 0) return divisor;
  return 1;
}

std::string describe(const Topology& topology, const HardwareProfile& profile) {
  const std::int64_t domains = topology.devices / topology.gpus_per_domain;
  const std::string_view fabric = name_of(profile.scale_up.kind);
  std::string text = domains == 1
                         ? fmt::format("{} GPUs in one {} domain", topology.devices, fabric)
                         : fmt::format("{} GPUs in {} {} domains of {}", topology.devices, domains,
                                       fabric, topology.gpus_per_domain);
  text += fmt::format(" (one holds {}), {} a host", profile.scale_up.domain_gpus.value.value(),
                      topology.gpus_per_host);
  const std::int64_t host = gpus_per_host(profile.host).value();
  if (topology.gpus_per_host > host)
    text += fmt::format(" as stated ({} has {})", profile.id, host);
  return text + ", device ids in that order";
}

Error wrong_grid(std::int64_t devices, const HardwareProfile& profile, HostGrid grid) {
  const std::int64_t gpus = make_topology(devices, profile).gpus_per_host;
  Error error;
  error.kind = ErrorKind::kUsage;
  error.text =
      fmt::format("{}x{} GPUs are not the {} of the program", grid.hosts, grid.gpus, devices);
  error.advice = fmt::format("hosts x GPUs, for example {}x{}", devices / gpus, gpus);
  return error;
}

}  // namespace

std::string to_string(HostGrid grid) {
  return std::to_string(grid.hosts) + "x" + std::to_string(grid.gpus);
}

std::optional<HostGrid> parse_host_grid(std::string_view text) {
  const auto read = [](std::string_view number, std::int64_t& out) {
    const char* const end = number.data() + number.size();
    const auto [at, failed] = std::from_chars(number.data(), end, out);
    return failed == std::errc() && at == end && out > 0;
  };
  const std::size_t x = text.find('x');
  HostGrid grid;
  if (x == std::string_view::npos || !read(text.substr(0, x), grid.hosts) ||
      !read(text.substr(x + 1), grid.gpus))
    return std::nullopt;
  return grid;
}

Topology make_topology(std::int64_t devices, const HardwareProfile& profile) {
  check(devices > 0, "a program runs on no device");
  Topology topology{.devices = devices};
  topology.gpus_per_domain = largest_divisor(devices, profile.scale_up.domain_gpus.value.value());
  topology.gpus_per_host =
      largest_divisor(topology.gpus_per_domain, gpus_per_host(profile.host).value());
  topology.assumption = describe(topology, profile);
  return topology;
}

Result<Topology> make_topology(std::int64_t devices, const HardwareProfile& profile,
                               HostGrid grid) {
  const bool is_sane =
      std::min(grid.hosts, grid.gpus) > 0 && std::max(grid.hosts, grid.gpus) <= devices;
  if (!is_sane || grid.hosts * grid.gpus != devices) return wrong_grid(devices, profile, grid);
  const std::int64_t domain = profile.scale_up.domain_gpus.value.value();
  const std::int64_t host = gpus_per_host(profile.host).value();
  Topology topology{.devices = devices};
  topology.gpus_per_host = grid.gpus;
  topology.gpus_per_domain = largest_divisor(grid.gpus, domain);
  if (topology.gpus_per_domain == grid.gpus && domain > host)
    topology.gpus_per_domain = grid.gpus * largest_divisor(grid.hosts, domain / grid.gpus);
  topology.assumption = describe(topology, profile);
  return topology;
}

std::int64_t gpus_sharing_cpu(const Topology& topology, const HardwareProfile& profile) {
  return std::min(topology.gpus_per_host, profile.host.gpus_per_cpu.value.value());
}

GroupLayout layout_of(const std::vector<IdGroup>& groups, const Topology& topology) {
  GroupLayout worst;
  for (const IdGroup& group : groups) {
    std::map<std::int64_t, std::int64_t> in_domain;
    for (const std::int64_t device : group) ++in_domain[device / topology.gpus_per_domain];
    if (in_domain.empty()) continue;
    const auto domains = static_cast<std::int64_t>(in_domain.size());
    const auto size = static_cast<std::int64_t>(group.size());
    std::int64_t fewest = size;
    for (const auto& [domain, members] : in_domain) fewest = std::min(fewest, members);
    if (domains > worst.domains || (domains == worst.domains && size > worst.size))
      worst = {.size = size, .domains = domains, .per_domain = fewest};
  }
  return worst;
}

}  // namespace spillway
