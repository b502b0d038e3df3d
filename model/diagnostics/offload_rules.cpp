// Did an offload do what it was meant to do: is there one at all, does it free memory when memory
// is short, does it spare the work it is there to spare.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "model/base/format.h"
#include "model/cost/kernel_class.h"
#include "model/diagnostics/rules.h"
#include "model/flags/flag_names.h"

namespace spillway::internal {
namespace {

/// A copy of a whole array in straight code; slices of stacks are counted by their stack.
bool is_straight_copy(const Evidence& in, const TransferSite& site) {
  const Opcode opcode = in.program[site.id].opcode;
  return site.id.computation == in.program.entry &&
         (opcode == Opcode::kCopy || opcode == Opcode::kCopyStart);
}

/// The largest stack that stays on the device, as a place to begin; null where there is none.
const Residual* largest_kept(const Evidence& in) {
  const Residual* largest = nullptr;
  for (const Residual& r : in.residuals.residuals)
    if (r.placement == Placement::kDevice &&
        (largest == nullptr || r.total_bytes > largest->total_bytes))
      largest = &r;
  return largest;
}

/// A source line without the folders of a Python installation.
std::string_view short_source(std::string_view source) {
  constexpr std::string_view kPackages = "site-packages";
  const std::size_t at = source.rfind(kPackages);
  if (at != std::string_view::npos) source.remove_prefix(at + kPackages.size());
  while (source.starts_with('/')) source.remove_prefix(1);
  return source;
}

/// How to have a stack moved.
std::string how_to_move(const Residual& residual) {
  if (!residual.names.empty())
    return fmt::format(
        "Put \"{}\" into names_which_can_be_offloaded of "
        "save_and_offload_only_these_names (MaxText: {}: offload).",
        residual.names.front(), residual.names.front());
  const std::string where =
      residual.source.empty() ? "" : fmt::format(", made at {},", short_source(residual.source));
  return fmt::format(
      "It needs a name: jax.ad_checkpoint.checkpoint_name on the value{} and that "
      "name in save_and_offload_only_these_names.",
      where);
}

std::optional<Finding> offload_vanished(const Evidence& in) {
  const std::int64_t asked = in.dump.host_placements_asked.value_or(0);
  if (asked == 0 || !in.transfers.empty()) return std::nullopt;
  return Finding{
      fmt::format("the step asks {} for pinned host memory before optimisation, and the compiled "
                  "program moves nothing there.",
                  counted(asked, "time", "times")),
      "XLA drops a move that is undone before anything else happens: without a scan or the "
      "barriers "
      "of jax.checkpoint the way to the host and back stands in one piece of straight code.",
      "Scan the layers, or leave prevent_cse at its default of True in jax.checkpoint."};
}

std::optional<Finding> nothing_offloaded(const Evidence& in) {
  if (!in.transfers.empty() || in.dump.host_placements_asked.value_or(0) > 0) return std::nullopt;
  Finding finding{"nothing moves between HBM and pinned host memory.",
                  in.dump.host_placements_asked
                      ? "The step did not ask for it."
                      : "If a policy asked for offload, it matched no name: the name must be on a "
                        "value that the backward pass needs, inside the rematerialised function.",
                  ""};
  if (const Residual* kept = largest_kept(in))
    finding.advice = fmt::format("The largest stack that is kept is {}, {}. {}", label_of(*kept),
                                 format_bytes(kept->total_bytes), how_to_move(*kept));
  return finding;
}

/// What is left on the device by a program that offloads other things.
std::optional<Finding> largest_still_kept(const Evidence& in) {
  const Residual* kept = largest_kept(in);
  if (in.transfers.empty() || kept == nullptr ||
      !at_least(kept->total_bytes, in.memory.totals.total_device, 5))
    return std::nullopt;
  return Finding{fmt::format("{} keeps {} on the device, {:.0f} % of the total, while others "
                             "are offloaded.",
                             label_of(*kept), format_bytes(kept->total_bytes),
                             100 * ratio(kept->total_bytes, in.memory.totals.total_device)),
                 "", how_to_move(*kept)};
}

/// What brings copies of straight code back in step with what they are for.
std::string how_to_keep_order() {
  return fmt::format(
      "Scan the layers, the sure cure; or {}, with which every copy waits; "
      "or {}, which helps less the more layers there are.",
      flag::set(flag::kLatencyHiding, "false"), fencing_flag());
}

/// Straight-line copies whose array is in HBM all the same when most is live: not yet gone, or back
/// already.
std::optional<Finding> round_trip_at_peak(const Evidence& in) {
  Bytes sent, still_there, already_back;
  std::int64_t count = 0;
  for (const TransferSite& site : in.transfers) {
    if (!is_straight_copy(in, site) || is_state(in, site)) continue;
    const Computation& entry = in.program[site.id.computation];
    const Bytes bytes = site.transfer.bytes;
    if (site.transfer.direction == TransferDirection::kHostToDevice) {
      const ShapeNodeIndex arrived = arrival_node(entry[site.id.instruction]);
      if (in.is_at_peak(site.id, arrived)) already_back += bytes;
      continue;
    }
    ++count;
    sent += bytes;
    const Operand source = entry.operands(site.id.instruction)[0];
    if (in.is_at_peak({site.id.computation, source.instruction}, source.node)) still_there += bytes;
  }
  if (!at_least(still_there + already_back, sent, 4)) return std::nullopt;
  return Finding{
      fmt::format("{} to the host ({}), but when most HBM is in use {} of that are still there and "
                  "{} are back already.",
                  counted(count, "array goes", "arrays go"), format_bytes(sent),
                  format_bytes(still_there), format_bytes(already_back)),
      "The latency-hiding scheduler sees no memory in a copy: it starts those to the host late, "
      "and those back early.",
      how_to_keep_order()};
}

/// The host holds less at any time than what was sent there: each copy leaves just before its way
/// back.
std::optional<Finding> host_bytes_short(const Evidence& in) {
  Bytes sent;
  std::int64_t count = 0;
  for (const TransferSite& site : in.transfers) {
    const bool to_host = site.transfer.direction == TransferDirection::kDeviceToHost;
    if (!is_straight_copy(in, site) || !to_host) continue;
    sent += site.transfer.bytes;
    ++count;
  }
  const Bytes held = host_bytes(in.memory.totals);
  if (held.value() >= sent.value() / 10 * 9) return std::nullopt;
  return Finding{
      fmt::format("{} to the host, {} in all, but it never holds more than {}.",
                  counted(count, "array goes", "arrays go"), format_bytes(sent),
                  format_bytes(held)),
      fmt::format(
          "Where an offload frees memory, the host holds all of it between forward and "
          "backward pass. Here {} leave only shortly before they come back, and wait in HBM "
          "until then.",
          format_bytes(sent - held)),
      how_to_keep_order()};
}

/// The most that HBM would hold with `bytes` more from `from` to `to`.
Bytes peak_with(const MemoryReport& memory, Bytes bytes, LogicalTime from, LogicalTime to) {
  Bytes peak = memory.live_peak;
  for (std::size_t i = 0; i < memory.curve.size(); ++i) {
    const bool last = i + 1 == memory.curve.size();
    const bool overlaps =
        memory.curve[i].position < to && (last || memory.curve[i + 1].position > from);
    if (overlaps) peak = std::max(peak, memory.curve[i].bytes + bytes);
  }
  return peak;
}

std::optional<Finding> offload_not_at_peak(const Evidence& in) {
  std::vector<std::string> names;
  Bytes bytes;
  for (const Residual& r : in.residuals.residuals) {
    if (r.placement != Placement::kPinnedHost) continue;
    const FlatSchedule& order = in.assignment.schedule;
    const auto body = [&](InstructionId loop) { return order.span[body_of(in.program, loop)]; };
    const Bytes peak =
        peak_with(in.memory, r.total_bytes, body(r.forward_loop).start, body(r.backward_loop).end);
    if (peak - in.memory.live_peak > Bytes(r.total_bytes.value() / 10)) continue;
    names.push_back(label_of(r));
    bytes += r.total_bytes;
  }
  if (names.empty()) return std::nullopt;
  return Finding{
      fmt::format("offloading {} ({}) lowers the peak by less than a tenth of that each.",
                  enumerate(names), format_bytes(bytes)),
      fmt::format("Most is live at {}, when what they free is not in use.",
                  in.memory.live_peak_instruction),
      "Each could stay on the device if the others stay as they are: `spillway plan` weighs them "
      "together."};
}

/// The attention kernel whose result an instruction of the body saves, through renamings, copies
/// and element by element work; empty where there is none.
std::optional<InstructionIndex> attention_behind(const Program& program, ComputationId body,
                                                 InstructionIndex from) {
  constexpr std::size_t kMostVisited = 16;
  std::vector<InstructionIndex> queue = {from};
  for (std::size_t k = 0; k < queue.size() && k < kMostVisited; ++k) {
    const InstructionIndex at = queue[k];
    const KernelClass kernel = kernel_kind(program, {body, at}).kernel;
    if (kernel == KernelClass::kAttentionForward) return at;
    const bool passes_on = kernel == KernelClass::kFree || kernel == KernelClass::kElementwise ||
                           kernel == KernelClass::kCopy || kernel == KernelClass::kSliceCopy ||
                           kernel == KernelClass::kTranspose ||
                           kernel == KernelClass::kTiledTranspose;
    if (!passes_on && k > 0) continue;
    for (const Operand& operand : program[body].operands(at))
      if (queue.size() < kMostVisited &&
          std::ranges::find(queue, operand.instruction) == queue.end())
        queue.push_back(operand.instruction);
  }
  return std::nullopt;
}

bool runs_attention_forward(const Program& program, ComputationId body) {
  for (const InstructionIndex i : program[body].instructions())
    if (kernel_kind(program, {body, i}).kernel == KernelClass::kAttentionForward) return true;
  return false;
}

/// Where a write of a residual stands in the body of its loop: the instruction itself, or the start
/// that wraps it. Empty for one in the loop's condition.
std::optional<InstructionId> in_body(const Evidence& in, const StackAccess& access,
                                     ComputationId body) {
  InstructionId at = access.instruction;
  while (at.computation != body) {
    const auto caller = in.assignment.schedule.caller[at.computation];
    if (!caller || in.program[*caller].opcode == Opcode::kWhile) return std::nullopt;
    at = *caller;
  }
  return at;
}

std::optional<Finding> kernel_runs_again(const Evidence& in) {
  std::vector<std::string> names;
  Bytes bytes;
  std::map<ComputationId, bool> runs_again;  // by backward body
  for (const Residual& r : in.residuals.residuals) {
    const ComputationId forward = body_of(in.program, r.forward_loop);
    const auto write = in_body(in, r.write, forward);
    if (!write || r.is_layer_input || !attention_behind(in.program, forward, write->instruction))
      continue;
    const ComputationId backward = body_of(in.program, r.backward_loop);
    const auto [known, fresh] = runs_again.try_emplace(backward, false);
    if (fresh) known->second = runs_attention_forward(in.program, backward);
    if (!known->second) continue;
    names.push_back(label_of(r));
    bytes += r.total_bytes;
  }
  if (names.empty()) return std::nullopt;
  return Finding{
      fmt::format("the backward pass runs the forward attention kernel again, although its result "
                  "{} ({}) is kept or offloaded.",
                  enumerate(names), format_bytes(bytes)),
      "The softmax statistics, which that kernel also makes, are not saved: the name stands "
      "outside "
      "of the attention's own backward rule, so saving or offloading it spares nothing.",
      "Recompute it, or name output and statistics inside the attention's forward rule."};
}

std::optional<Finding> loops_pipelined(const Evidence& in) {
  std::map<InstructionId, Bytes> a_layer;  // by loop: they run one after the other
  std::vector<std::string> names;
  for (const Residual& r : in.residuals.residuals) {
    if (!r.peeled || r.placement != Placement::kPinnedHost) continue;
    names.push_back(label_of(r));
    a_layer[r.forward_loop] += r.bytes_per_layer;
  }
  if (names.empty()) return std::nullopt;
  const Bytes most =
      std::ranges::max_element(a_layer, {}, [](const auto& loop) { return loop.second; })->second;
  return Finding{
      fmt::format(
          "the copies of {} are pipelined over the iterations of their loops, which holds up "
          "to {} more in HBM while these run.",
          enumerate(names), format_bytes(most)),
      "--" + std::string(flag::kPipelinedOffloading) +
          " does that, and so does an optimisation level of "
          "O1 or more, without being asked for the flag.",
      ""};
}

constexpr Rule kRules[] = {
    {"offload-vanished", Severity::kWarning, offload_vanished},
    {"round-trip-at-peak", Severity::kWarning, round_trip_at_peak},
    {"host-bytes-short", Severity::kWarning, host_bytes_short},
    {"kernel-runs-again", Severity::kWarning, kernel_runs_again},
    {"nothing-offloaded", Severity::kInfo, nothing_offloaded},
    {"largest-still-kept", Severity::kInfo, largest_still_kept},
    {"offload-not-at-peak", Severity::kInfo, offload_not_at_peak},
    {"loops-pipelined", Severity::kInfo, loops_pipelined},
};

}  // namespace

std::span<const Rule> offload_rules() { return kRules; }

}  // namespace spillway::internal
