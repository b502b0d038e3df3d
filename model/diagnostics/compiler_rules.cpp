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

/// What rematerialisation compared with its limit, where the device is known that it compiled for.
std::string remat_account(const Evidence& in) {
  const auto hbm = in.dump.compiled_for_hbm ? in.dump.compiled_for_hbm
                   : in.budget != nullptr   ? std::optional(in.budget->hbm)
                                            : std::nullopt;
  const MemoryTotals& totals = in.memory.totals;
  if (!hbm || host_bytes(totals) == Bytes(0)) return "";
  const Bytes limit = remat_limit(totals, ahead_of_time_base(*hbm));
  const Bytes counted_bytes = totals.total_device + host_bytes(totals);
  if (totals.total_device > limit || counted_bytes <= limit) return "";
  return fmt::format(
      " Here its limit is {}: the device needs {} and would fit, with {} of host memory counted "
      "too "
      "it does not.",
      format_bytes(limit), format_bytes(totals.total_device), format_bytes(host_bytes(totals)));
}

std::optional<Finding> remat_clones(const Evidence& in) {
  std::int64_t count = 0;
  for (const auto& computation : in.program.computations)
    for (const InstructionIndex i : computation->instructions())
      if (is_remat_clone((*computation)[i])) ++count;
  if (count == 0) return std::nullopt;
  return Finding{
      fmt::format("{} made by XLA's own rematerialisation.",
                  counted(count, "instruction is a clone", "instructions are clones")),
      "It recomputes work that no policy asked for, and counts pinned host buffers as HBM." +
          remat_account(in),
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
