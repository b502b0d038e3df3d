#include "model/diagnostics/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/memory/compare_xla.h"
#include "model/plan/budget.h"
#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

/// A rule says nothing (empty) or one message.
using Rule = std::string (*)(const DiagnosisInput&);

std::string host_compute(const DiagnosisInput& input) {
  std::size_t count = 0;
  std::string first;
  const auto all_callers = callers(input.program);
  const auto runs = multiplicity(input.program).runs;
  for (const ComputationId id : ids(input.program.computations)) {
    // What stands inside a fusion is part of it, not a second instruction.
    const bool fused = std::ranges::any_of(all_callers[id], [&](InstructionId caller) {
      return input.program[caller].opcode == Opcode::kFusion;
    });
    if (fused || runs[id] == 0) continue;
    for (const InstructionIndex i : input.program[id].instructions())
      if (is_host_compute(input.program, {id, i}) && count++ == 0)
        first = std::string(input.program[id][i].name);
  }
  if (count == 0) return "";
  return fmt::format(
      "{} instruction(s) compute on arrays in pinned host memory, first {}: the host runs them, "
      "very slowly. "
      "Something beside a copy or a slice touches an offloaded array; do not offload that name, or "
      "guard with "
      "--xla_disable_automatic_host_compute_offload=true, which makes it an error.",
      count, first);
}

std::string memory_differs(const DiagnosisInput& input) {
  if (input.program.xla_assignment == nullptr) return "";
  const auto difference = compare_with_xla(input.assignment, *input.program.xla_assignment);
  if (!difference) return "";
  return fmt::format(
      "the file's own buffer assignment differs: XLA allocates {} on the device and {} on the "
      "host, where this report has {} and {}. First difference: {}. Trust XLA's figures for this "
      "program, and please report it.",
      format_bytes(difference->xla_device), format_bytes(difference->xla_host),
      format_bytes(difference->our_device), format_bytes(difference->our_host), difference->first);
}

std::string remat_clones(const DiagnosisInput& input) {
  std::size_t count = 0;
  for (const auto& computation : input.program.computations)
    for (const InstructionIndex i : computation->instructions())
      if (is_remat_clone((*computation)[i])) ++count;
  if (count == 0) return "";
  return fmt::format(
      "{} instruction(s) are clones made by XLA's own rematerialisation, which counts pinned host "
      "buffers as HBM and "
      "recomputes work that no policy asked for. Compile with "
      "--xla_disable_hlo_passes=rematerialization and look again.",
      count);
}

std::string unknown_trip_count(const DiagnosisInput& input) {
  const auto unknown = multiplicity(input.program).unknown_trip_counts;
  if (unknown.empty()) return "";
  return fmt::format(
      "{} loop(s) have no known trip count, first {}: each is counted once, so totals for a step "
      "are too low.",
      unknown.size(), input.program[unknown.front()].name);
}

std::string host_pool(const DiagnosisInput& input) {
  const Bytes host = host_bytes(input.memory.totals);
  if (host <= kDefaultHostPool) return "";
  return fmt::format(
      "the step needs {} of pinned host memory on each device, above the {} GiB that XLA's host "
      "pool has by default: "
      "set XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB={} or more, and check that every GPU of a host finds "
      "as much.",
      format_bytes(host), host_pool_gib(kDefaultHostPool), host_pool_gib(host));
}

std::string stack_copied(const DiagnosisInput& input) {
  std::string names;
  Bytes bytes(0);
  for (const Residual& residual : input.residuals.residuals) {
    if (!residual.copied_between_loops) continue;
    names += (names.empty() ? "" : ", ") +
             (residual.names.empty() ? residual.id : residual.names.front());
    bytes += residual.total_bytes;
  }
  if (names.empty()) return "";
  return fmt::format(
      "XLA copies or transposes {} between the forward and the backward loop: {} are held twice "
      "for a moment. "
      "A layout that both loops agree on would save it.",
      names, format_bytes(bytes));
}

std::string nothing_offloaded(const DiagnosisInput& input) {
  if (input.memory.traffic.offloads > 0 || input.memory.traffic.reloads > 0) return "";
  return "nothing moves between HBM and pinned host memory. If a policy asked for offload, it "
         "matched no name: the name must "
         "be on a value that the backward pass needs, inside the rematerialised function.";
}

std::string names_without_residual(const DiagnosisInput& input) {
  if (input.residuals.unmatched_names.empty()) return "";
  std::string names;
  for (const std::string& name : input.residuals.unmatched_names)
    names += (names.empty() ? "" : ", ") + name;
  return fmt::format(
      "no residual carries {}: recomputed under this program's policy, or not needed by the "
      "backward pass.",
      names);
}

std::string guessed_names(const DiagnosisInput& input) {
  std::string names;
  for (const Residual& residual : input.residuals.residuals)
    if (residual.evidence == NameEvidence::kGuess)
      names +=
          fmt::format("{}{} = {}", names.empty() ? "" : ", ", residual.id, residual.names.front());
  if (names.empty()) return "";
  return fmt::format(
      "several names have the same shape and not all of them are saved; taken in order: {}.",
      names);
}

struct Row {
  const char* code;
  Severity severity;
  Rule rule;
};

constexpr Row kRules[] = {
    {"memory-differs", Severity::kWarning, memory_differs},
    {"host-compute", Severity::kWarning, host_compute},
    {"xla-remat-clones", Severity::kWarning, remat_clones},
    {"unknown-trip-count", Severity::kWarning, unknown_trip_count},
    {"host-pool", Severity::kWarning, host_pool},
    {"stack-copied", Severity::kWarning, stack_copied},
    {"nothing-offloaded", Severity::kInfo, nothing_offloaded},
    {"names-without-residual", Severity::kInfo, names_without_residual},
    {"guessed-names", Severity::kInfo, guessed_names},
};

}  // namespace

std::string_view name_of(Severity severity) {
  return severity == Severity::kInfo ? "info" : "warning";
}

std::vector<Diagnostic> diagnose(const DiagnosisInput& input) {
  std::vector<Diagnostic> found;
  for (const Row& row : kRules)
    if (std::string message = row.rule(input); !message.empty())
      found.push_back({row.code, row.severity, std::move(message)});
  return found;
}

}  // namespace spillway
