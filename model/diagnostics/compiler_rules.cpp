// What XLA itself added, assumed or left out.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/memory/compare_xla.h"
#include "model/plan/compiler_limit.h"

namespace spillway::internal {
namespace {

std::optional<Finding> memory_differs(const Evidence& in) {
  if (in.program.xla_assignment == nullptr) return std::nullopt;
  const auto difference = compare_with_xla(in.assignment, *in.program.xla_assignment);
  if (!difference) return std::nullopt;
  return Finding{
      fmt::format("the file's own buffer assignment differs: XLA allocates {} on the device and {} "
                  "on the host, where this report has {} and {}.",
                  format_bytes(difference->xla_device), format_bytes(difference->xla_host),
                  format_bytes(difference->our_device), format_bytes(difference->our_host)),
      fmt::format("First difference: {}.", difference->first),
      "Trust XLA's figures for this program, and please report it."};
}

/// Why XLA rematerialised, as far as the device is known that it compiled for.
std::string why_rematerialised(const Evidence& in) {
  const std::string general =
      "It recomputes work that no policy asked for, to stay below the "
      "compiler's limit.";
  const MemoryTotals& totals = in.memory.totals;
  const Bytes host = host_bytes(totals);
  const auto hbm = compiled_for(in);
  const std::string counts_host = host > Bytes(0) ? " It counts pinned host buffers as HBM." : "";
  if (!hbm) return general + counts_host;
  const Bytes limit = remat_limit(totals, ahead_of_time_base(*hbm));
  const std::string here = fmt::format(" Here the limit is {} and the device needs {}",
                                       format_bytes(limit), format_bytes(totals.total_device));
  if (totals.total_device > limit) return general + here + " even so.";
  if (totals.total_device + host > limit)
    return general + counts_host + here +
           fmt::format(": that would fit, and with {} of host memory it does not.",
                       format_bytes(host));
  return general + counts_host;
}

std::optional<Finding> remat_clones(const Evidence& in) {
  std::int64_t count = 0;
  for (const ComputationId id : ids(in.program.computations)) {
    if (!in.assignment.schedule.reaches(id)) continue;  // parts of a kernel, or never run
    for (const InstructionIndex i : in.program[id].instructions())
      if (is_remat_clone(in.program[id][i])) ++count;
  }
  if (count == 0) return std::nullopt;
  return Finding{fmt::format("{} made by XLA's own rematerialisation.",
                             counted(count, "instruction is a clone", "instructions are clones")),
                 why_rematerialised(in),
                 "Compile with --xla_disable_hlo_passes=rematerialization and look again."};
}

std::optional<Finding> unknown_trip_count(const Evidence& in) {
  const auto& unknown = in.times.unknown_trip_counts;
  if (unknown.empty()) return std::nullopt;
  return Finding{
      fmt::format("{} no known trip count, first {}.",
                  counted(static_cast<std::int64_t>(unknown.size()), "loop has", "loops have"),
                  in.program[unknown.front()].name),
      "Each is counted once, so totals for a step are too low.", ""};
}

constexpr Rule kRules[] = {
    {"memory-differs", Severity::kWarning, memory_differs},
    {"xla-remat-clones", Severity::kWarning, remat_clones},
    {"unknown-trip-count", Severity::kWarning, unknown_trip_count},
};

}  // namespace

std::span<const Rule> compiler_rules() { return kRules; }

}  // namespace spillway::internal
