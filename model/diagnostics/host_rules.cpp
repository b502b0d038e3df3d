// Pinned host memory: how much of it, and what computes on it.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/flags/flag_names.h"
#include "model/plan/host_pool.h"

namespace spillway::internal {
namespace {

std::optional<Finding> host_compute(const Evidence& in) {
  std::int64_t count = 0;
  std::string first;
  const auto all_callers = callers(in.program);
  for (const ComputationId id : ids(in.program.computations)) {
    // What stands inside a fusion is part of it, not a second instruction.
    const bool fused = std::ranges::any_of(all_callers[id], [&](InstructionId caller) {
      return in.program[caller].opcode == Opcode::kFusion;
    });
    if (fused || in.times.runs[id] == 0) continue;
    for (const InstructionIndex i : in.program[id].instructions())
      if (is_host_compute(in.program, {id, i}) && count++ == 0)
        first = std::string(in.program[id][i].name);
  }
  if (count == 0) return std::nullopt;
  return Finding{
      fmt::format("{} on arrays in pinned host memory, first {}.",
                  counted(count, "instruction computes", "instructions compute"), first),
      "The host runs them, very slowly. Something beside a copy or a slice touches an offloaded "
      "array, often a change of sharding next to it.",
      "Do not offload that name; --xla_disable_automatic_host_compute_offload=true makes it an "
      "error when compiling."};
}

std::optional<Finding> host_pool(const Evidence& in) {
  const Bytes host = host_bytes(in.memory.totals);
  if (host <= kDefaultHostPool) return std::nullopt;
  return Finding{
      fmt::format("the step needs {} of pinned host memory on each device, above the {} GiB that "
                  "XLA's host pool has by default.",
                  format_bytes(host), host_pool_gib(kDefaultHostPool)),
      "There is one pool for each local device; a host with several GPUs needs the sum.",
      fmt::format("Set XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB={} or more{}.", host_pool_gib(host),
                  in.budget == nullptr ? ", and check that every GPU of a host finds as much"
                  : host <= in.budget->host
                      ? fmt::format("; the machine has {} for it", format_bytes(in.budget->host))
                      : "")};
}

std::optional<Finding> host_pool_growth(const Evidence& in) {
  // Arguments and results are there first, the block of temporaries comes when the step runs.
  std::vector<Bytes> requests;
  for (const bool temporaries : {false, true})
    for (const Allocation& allocation : in.assignment.allocations)
      if (is_host(allocation.space) && allocation.is_temp() == temporaries)
        requests.push_back(allocation.size);
  const Bytes need = host_bytes(in.memory.totals);
  const Bytes limit = std::max(kDefaultHostPool, Bytes(host_pool_gib(need) << 30));
  const Bytes pinned = pinned_by_growth(requests, limit);
  if (pinned.value() < need.value() / 4 * 5 || pinned - need < Bytes(std::int64_t{1} << 30))
    return std::nullopt;
  return Finding{
      fmt::format("the step needs {} of pinned host memory, for which XLA's pool pins {}.",
                  format_bytes(need), format_bytes(pinned)),
      "It grows by regions of a power of two that double, and gives none back.",
      fmt::format("Count with that much for each GPU of a host; XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB "
                  "caps it ({} leaves some room).",
                  host_pool_gib(need) + 1)};
}

/// State in pinned host memory that is in HBM all the same when most is live.
std::optional<Finding> state_at_peak(const Evidence& in) {
  Bytes fetched, early;
  for (const TransferSite& site : in.transfers) {
    const bool reload = site.transfer.direction == TransferDirection::kHostToDevice;
    if (!reload || site.id.computation != in.program.entry || !is_state(in, site)) continue;
    fetched += site.transfer.bytes;
    if (in.is_at_peak(site.id, arrival_node(in.program[site.id]))) early += site.transfer.bytes;
  }
  if (!at_least(early, fetched, 10)) return std::nullopt;
  return Finding{
      fmt::format("{} of {} of state that is kept in pinned host memory are in HBM when most is "
                  "live.",
                  format_bytes(early), format_bytes(fetched)),
      "XLA fetches them long before the update that needs them.",
      flag::set(flag::kAsyncComputes, "8") +
          " moves the fetches behind the last matrix product; they are not hidden there either, "
          "but the memory is free until then."};
}

constexpr Rule kRules[] = {
    {"host-compute", Severity::kWarning, host_compute},
    {"host-pool", Severity::kWarning, host_pool},
    {"state-at-peak", Severity::kWarning, state_at_peak},
    {"host-pool-growth", Severity::kInfo, host_pool_growth},
};

}  // namespace

std::span<const Rule> host_rules() { return kRules; }

}  // namespace spillway::internal
