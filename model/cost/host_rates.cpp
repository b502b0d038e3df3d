#include "model/cost/host_rates.h"

#include <algorithm>

namespace spillway {

HostRates host_rates(const HardwareProfile& profile, std::int64_t gpus_of_cpu) {
  const HostLink& link = profile.link;
  const Host& host = profile.host;
  const auto share = [&](const std::optional<Figure<BytesPerSecond>>& one_way) {
    return one_way.value_or(host.memory_bandwidth).value / static_cast<double>(gpus_of_cpu);
  };
  HostRates rates;
  rates.gpus_of_cpu = gpus_of_cpu;
  rates.memory_read = share(host.memory_bandwidth_read);
  rates.memory_write = share(host.memory_bandwidth_write);
  rates.memory = share(std::nullopt);
  rates.host_to_device = std::min(link.host_to_device.value, rates.memory_read);
  rates.device_to_host = std::min(link.device_to_host.value, rates.memory_write);
  rates.each_of_both = std::min(link.both_directions.value / 2, rates.memory / 2);
  return rates;
}

HostRates host_rates(const HardwareProfile& profile, const Topology& topology) {
  return host_rates(profile, gpus_sharing_cpu(topology, profile));
}

}  // namespace spillway
