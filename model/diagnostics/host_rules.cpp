// Pinned host memory: how much of it, what computes on it, and copies that wait or transpose.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/format.h"
#include "model/diagnostics/rules.h"
#include "model/diagnostics/slice_offsets.h"
#include "model/plan/host_pool.h"

namespace spillway::internal {
namespace {

/// The slices of a residual that XLA's annotation takes from another place than the program asks.
std::optional<Finding> reads_wrong_slice(const Evidence& in) {
  std::vector<std::string> names;
  std::optional<WrongSlice> example;
  for (const Residual& r : in.residuals.residuals) {
    if (r.placement != Placement::kPinnedHost) continue;
    for (const StackAccess& read : r.reads)
      if (const auto wrong = find_wrong_slice(in.program, in.assignment.schedule, read)) {
        if (names.empty() || names.back() != label_of(r)) names.push_back(label_of(r));
        if (!example) example = wrong;
      }
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
      "error "
      "when compiling."};
}

std::optional<Finding> host_pool(const Evidence& in) {
  const Bytes host = host_bytes(in.memory.totals);
  if (host <= kDefaultHostPool) return std::nullopt;
  return Finding{
      fmt::format("the step needs {} of pinned host memory on each device, above the {} GiB that "
                  "XLA's host pool has by default.",
                  format_bytes(host), host_pool_gib(kDefaultHostPool)),
      "There is one pool for each local device; a host with several GPUs needs the sum.",
      fmt::format("Set XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB={} or more, and check that every GPU of a "
                  "host finds as much.",
                  host_pool_gib(host))};
}

std::optional<Finding> host_pool_growth(const Evidence& in) {
  std::vector<Bytes> requests;
  for (const Allocation& allocation : in.assignment.allocations)
    if (is_host(allocation.space)) requests.push_back(allocation.size);
  // Arguments are there first, the block of temporaries comes when the step runs.
  std::stable_partition(requests.begin(), requests.end(),
                        [&](Bytes size) { return size != in.memory.totals.host_temp; });
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
                  "caps it ({} is enough).",
                  host_pool_gib(need))};
}

/// Whether anything but renamings and other copies runs between the begin of a transfer and its
/// end.
bool hides_behind_work(const Evidence& in, const TransferSite& site) {
  const Computation& computation = in.program[site.id.computation];
  if (!is_async_start(computation[site.id.instruction].opcode)) return false;
  std::uint32_t end = site.id.instruction.index;
  for (const Use& use : computation.uses(site.id.instruction)) end = std::max(end, use.user.index);
  for (std::uint32_t i = site.id.instruction.index + 1; i < end; ++i) {
    const Instruction& between = computation[InstructionIndex(i)];
    if (!is_free(between) && !is_async_start(between.opcode) && !is_async_done(between.opcode))
      return true;
  }
  return false;
}

std::optional<Finding> copies_wait(const Evidence& in) {
  std::int64_t copies = 0, waiting = 0;
  Bytes bytes;
  for (const TransferSite& site : in.transfers) {
    copies += site.runs;
    if (hides_behind_work(in, site)) continue;
    waiting += site.runs;
    bytes += site.transfer.bytes * site.runs;
  }
  if (waiting == 0 || waiting < copies / 4) return std::nullopt;
  return Finding{
      fmt::format("{} of {} between HBM and host in a step ({}) have no work between their begin "
                  "and their end: the GPU waits for them.",
                  format_count(waiting), counted(copies, "copy", "copies"), format_bytes(bytes)),
      "Without the latency-hiding scheduler each copy ends where it begins; with it, this is how "
      "it "
      "ordered them.",
      "See that XLA_FLAGS does not hold --xla_gpu_enable_latency_hiding_scheduler=false; for loops "
      "over layers, --xla_gpu_enable_pipelined_host_offloading=true fetches a layer ahead. "
      "`spillway simulate` says what each costs."};
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
  if (fetched == Bytes(0) || early.value() < fetched.value() / 10) return std::nullopt;
  return Finding{
      fmt::format("{} of {} of state that is kept in pinned host memory are in HBM when most is "
                  "live.",
                  format_bytes(early), format_bytes(fetched)),
      "XLA fetches them long before the update that needs them.",
      "--xla_gpu_experimental_parallel_async_compute_limit=8 moves the fetches behind the last "
      "matrix product; they are not hidden there either, but the memory is free until then."};
}

std::optional<Finding> stack_copied(const Evidence& in) {
  std::vector<std::string> names;
  Bytes bytes;
  for (const Residual& residual : in.residuals.residuals) {
    if (!residual.copied_between_loops) continue;
    names.push_back(label_of(residual));
    bytes += residual.total_bytes;
  }
  const bool matters = bytes.value() >= in.memory.live_peak.value() / 1000;
  if (names.empty() || !matters) return std::nullopt;
  return Finding{
      fmt::format("XLA copies or transposes {} between the forward and the backward loop: {} are "
                  "held twice for a moment.",
                  enumerate(names), format_bytes(bytes)),
      "", "A layout that both loops agree on would save it."};
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

/// A whole array that is transposed on its way from or to the host.
std::optional<Finding> transposed_on_the_way(const Evidence& in) {
  Bytes bytes;
  std::string first;
  for (const TransferSite& site : in.transfers) {
    const Computation& computation = in.program[site.id.computation];
    bool found = false;
    if (site.transfer.direction == TransferDirection::kDeviceToHost) {
      const Operand source =
          behind_renamings(computation, computation.operands(site.id.instruction).back());
      found = transposes(computation, source.instruction);
    } else {
      std::vector<InstructionIndex> readers = {site.id.instruction};
      for (std::size_t k = 0; k < readers.size(); ++k)
        for (const Use& use : computation.uses(readers[k])) {
          const Opcode opcode = computation[use.user].opcode;
          if (is_async_done(opcode) || is_renaming(opcode)) readers.push_back(use.user);
          found |= transposes(computation, use.user);
        }
    }
    if (!found) continue;
    bytes += site.transfer.bytes * site.runs;
    if (first.empty()) first = std::string(computation[site.id.instruction].name);
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
    {"host-compute", Severity::kWarning, host_compute},
    {"host-pool", Severity::kWarning, host_pool},
    {"copies-wait", Severity::kWarning, copies_wait},
    {"state-at-peak", Severity::kWarning, state_at_peak},
    {"stack-copied", Severity::kWarning, stack_copied},
    {"transposed-on-the-way", Severity::kWarning, transposed_on_the_way},
    {"host-pool-growth", Severity::kInfo, host_pool_growth},
};

}  // namespace

std::span<const Rule> host_rules() { return kRules; }

}  // namespace spillway::internal
