// Copies between HBM and host, and of stacks: what they fetch, whether they wait, whether they
// transpose.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/diagnostics/slice_offsets.h"
#include "model/flags/flag_names.h"
#include "model/flags/scheduler_choice.h"
#include "model/hlo/dump_facts.h"

namespace spillway::internal {
namespace {

/// The slices of a residual that XLA's annotation takes from another place than the program asks.
std::optional<Finding> reads_wrong_slice(const Evidence& in) {
  std::vector<std::string> names;
  std::optional<WrongSlice> example;
  for (const Residual& r : in.residuals.residuals) {
    const auto wrong = find_wrong_slice(in.program, in.assignment.schedule, r);
    if (!wrong) continue;
    names.push_back(label_of(r));
    if (!example) example = wrong;
  }
  if (!example) return std::nullopt;
  return Finding{
      fmt::format("the backward loop reloads the wrong layers of {}: it asks for the slice at {} B "
                  "first and then moves by {} B, but the copy is annotated to start at {} B and to "
                  "move by {} B.",
                  enumerate(names), format_count(example->asked.offset),
                  format_count(example->asked.stride), format_count(example->annotated.offset),
                  format_count(example->annotated.stride)),
      "XLA analysed the index of the slice as if it were the loop's counter (openxla/xla#46231). "
      "Gradients are wrong without any message.",
      "Do not train with this build: use jaxlib 0.11.2 or later, or keep these names on the "
      "device."};
}

/// Of each place in a computation, how many instructions before it do work: neither renamings nor
/// other copies.
class WorkBefore {
 public:
  explicit WorkBefore(const Program& program) : program_(program) {}

  std::uint32_t operator()(ComputationId id, std::uint32_t place) {
    auto [known, fresh] = counts_.try_emplace(id);
    if (fresh) count(program_[id], known->second);
    return known->second[place];
  }

 private:
  static void count(const Computation& computation, std::vector<std::uint32_t>& counts) {
    counts.push_back(0);
    for (const InstructionIndex i : computation.instructions()) {
      const Instruction& in = computation[i];
      const bool works = !is_free(in) && !is_async_start(in.opcode) && !is_async_done(in.opcode);
      counts.push_back(counts.back() + (works ? 1 : 0));
    }
  }

  const Program& program_;
  std::map<ComputationId, std::vector<std::uint32_t>> counts_;
};

/// Whether work runs between the begin of a transfer and its end.
bool hides_behind_work(const Program& program, const TransferSite& site, WorkBefore& work) {
  const Computation& computation = program[site.id.computation];
  const std::uint32_t begin = site.id.instruction.index;
  if (!is_async_start(computation[site.id.instruction].opcode)) return false;
  const auto done = find_done(computation, site.id.instruction);
  // Without a done here it ends in another iteration, behind all the work of this one.
  return !done || work(site.id.computation, done->index) > work(site.id.computation, begin + 1);
}

/// By the device of the program's file name: before Hopper the scheduler is off unless asked for.
std::string how_to_hide(const Evidence& in) {
  const std::string capability = capability_in_name(in.program.path);
  const auto choice = capability.empty() ? std::nullopt
                                         : choose_scheduler({}, GpuModel{capability, ""},
                                                            has_only_common_parts(in.program));
  if (!choice || choice->hides_latencies)
    return "See that XLA_FLAGS does not hold " + flag::set(flag::kLatencyHiding, "false") + ".";
  return "For compute capability " + capability + " it is off until " +
         flag::set(flag::kLatencyHiding, "true") + " asks for it.";
}

std::optional<Finding> copies_wait(const Evidence& in) {
  std::int64_t copies = 0, waiting = 0;
  bool in_loops = false;
  Bytes bytes;
  WorkBefore work(in.program);
  for (const TransferSite& site : in.transfers) {
    copies += site.runs;
    if (hides_behind_work(in.program, site, work)) continue;
    waiting += site.runs;
    bytes += site.transfer.bytes * site.runs;
    in_loops |= in.in_loop[site.id.computation] != 0;
  }
  if (waiting == 0 || waiting < (copies + 3) / 4) return std::nullopt;
  Finding finding{
      fmt::format("{} of {} between HBM and host in a step ({}) have no work between their begin "
                  "and their end: the GPU waits for them.",
                  format_count(waiting), counted(copies, "copy", "copies"), format_bytes(bytes)),
      "", "`spillway simulate` says what each costs."};
  if (waiting == copies) {
    finding.why = "That is what XLA makes without its latency-hiding scheduler.";
    finding.advice = how_to_hide(in) + " " + finding.advice;
  } else if (in_loops) {
    finding.why = "A copy that begins and ends in one iteration finds little to hide behind.";
    finding.advice =
        flag::set(flag::kPipelinedOffloading, "true") + " fetches a layer ahead. " + finding.advice;
  }
  return finding;
}

std::optional<Finding> stack_copied(const Evidence& in) {
  std::vector<std::string> names;
  Bytes bytes;
  for (const Residual& residual : in.residuals.residuals) {
    const bool matters = at_least(residual.total_bytes, in.memory.live_peak, 1000);
    if (!residual.copied_between_loops || !matters) continue;
    names.push_back(label_of(residual));
    bytes += residual.total_bytes;
  }
  if (names.empty()) return std::nullopt;
  return Finding{
      fmt::format("XLA copies or transposes {} between the forward and the backward loop: {} are "
                  "held twice for a moment.",
                  enumerate(names), format_bytes(bytes)),
      "The two loops want the stack in different orders of dimensions, or with different sharding.",
      "Look at what reads it first in the backward pass: a transpose or a constraint on its "
      "sharding, moved in front of the checkpoint_name, makes both agree."};
}

/// Whether `i` only brings what it reads into another order of dimensions.
bool transposes(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  if (in.opcode == Opcode::kTranspose) return true;
  if (in.opcode != Opcode::kCopy) return false;
  const Shape from = computation.shape_of(computation.operands(i)[0]);
  return in.shape.is_array() && from.is_array() &&
         !std::ranges::equal(in.shape.minor_to_major(), from.minor_to_major());
}

/// Whether a reload, behind its done and renamings, is read by a transpose.
bool transposed_on_arrival(const Computation& computation, InstructionIndex reload) {
  constexpr std::size_t kMostFollowed = 64;
  std::vector<InstructionIndex> places = {reload};
  for (std::size_t k = 0; k < places.size() && k < kMostFollowed; ++k)
    for (const Use& use : computation.uses(places[k])) {
      const Opcode opcode = computation[use.user].opcode;
      if (is_async_done(opcode) || is_renaming(opcode)) places.push_back(use.user);
      if (transposes(computation, use.user)) return true;
    }
  return false;
}

std::optional<Finding> transposed_on_the_way(const Evidence& in) {
  Bytes bytes;
  std::string first;
  for (const TransferSite& site : in.transfers) {
    const Computation& computation = in.program[site.id.computation];
    const Instruction& copy = computation[site.id.instruction];
    bool found = false;
    if (site.transfer.direction == TransferDirection::kHostToDevice)
      found = transposed_on_arrival(computation, site.id.instruction);
    else if (copy.opcode == Opcode::kCopy || copy.opcode == Opcode::kCopyStart)
      found = transposes(
          computation,
          behind_renamings(computation, computation.operands(site.id.instruction)[0]).instruction);
    if (!found) continue;
    bytes += site.transfer.bytes * site.runs;
    if (first.empty()) first = std::string(copy.name);
  }
  if (bytes == Bytes(0)) return std::nullopt;
  return Finding{
      fmt::format("{} a step are transposed on the way between HBM and host, first at {}.",
                  format_bytes(bytes), first),
      "Each is a second array in HBM and a kernel that neither link nor matrix units hide. It "
      "comes "
      "from scanning over another dimension than the first, or from a layout that the host side "
      "was "
      "given.",
      "Stack the layers along dimension 0, and store the array in the order in which it is used."};
}

constexpr Rule kRules[] = {
    {"reads-wrong-slice", Severity::kError, reads_wrong_slice},
    {"copies-wait", Severity::kWarning, copies_wait},
    {"stack-copied", Severity::kWarning, stack_copied},
    {"transposed-on-the-way", Severity::kWarning, transposed_on_the_way},
};

}  // namespace

std::span<const Rule> copy_rules() { return kRules; }

}  // namespace spillway::internal
