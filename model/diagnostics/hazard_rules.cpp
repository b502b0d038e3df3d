// What is known about versions of jaxlib: a table with sources. A row speaks where the program has
// what it is about and the version is one of those; without a version, none does.
#include <fmt/format.h>

#include <algorithm>

#include "model/diagnostics/rules.h"
#include "model/diagnostics/slice_offsets.h"
#include "model/plan/compiler_limit.h"

namespace spillway::internal {
namespace {

/// Copies back from offloaded stacks of which the dump does not tell whether they fetch the right
/// layer; where it does, reads-wrong-slice speaks, or nothing is wrong.
bool has_unchecked_reload(const Evidence& in) {
  for (const Residual& r : in.residuals.residuals) {
    if (r.placement != Placement::kPinnedHost) continue;
    for (const StackAccess& read : r.reads)
      if (!check_slice(in.program, in.assignment.schedule, read).checked) return true;
  }
  return false;
}

/// Whether host buffers, counted as HBM, push the program above the limit, and nothing was cloned.
bool is_near_remat_limit(const Evidence& in) {
  const auto hbm = compiled_for(in);
  if (!hbm) return false;
  const MemoryTotals& totals = in.memory.totals;
  const Bytes limit = remat_limit(totals, ahead_of_time_base(*hbm));
  return totals.total_device <= limit && totals.total_device + host_bytes(totals) > limit;
}

bool has_expert_exchange(const Evidence& in) {
  for (const auto& computation : in.program.computations)
    for (const InstructionIndex i : computation->instructions()) switch ((*computation)[i].opcode) {
        case Opcode::kAllToAll:
        case Opcode::kAllToAllStart:
        case Opcode::kRaggedAllToAll:
          return true;
        default:
          break;
      }
  return false;
}

bool has_host_state(const Evidence& in) { return in.memory.totals.host_argument > Bytes(0); }

bool has_pipelined_copies(const Evidence& in) {
  return std::ranges::any_of(in.residuals.residuals, [](const Residual& r) {
    return r.peeled && r.placement == Placement::kPinnedHost;
  });
}

bool has_conditional_in_loop(const Evidence& in) {
  for (const ComputationId id : ids(in.program.computations)) {
    if (in.in_loop[id] == 0) continue;
    const Computation& computation = in.program[id];
    for (const InstructionIndex i : computation.instructions())
      if (computation[i].opcode == Opcode::kConditional) return true;
  }
  return false;
}

bool has_transfers(const Evidence& in) { return !in.transfers.empty(); }

struct Hazard {
  JaxlibVersion first, last;  ///< both inclusive
  bool (*concerns)(const Evidence&);
  const char* what;
  const char* advice;
  const char* source;
};

constexpr JaxlibVersion v(int a, int b, int c = 0, int d = 0) { return {{a, b, c, d}}; }
/// The newest version whose dumps were looked at.
constexpr JaxlibVersion kNewest = v(0, 12, 0, 1);

/// Ends of ranges are the last version that was seen to have it, not a promise about those between.
constexpr Hazard kHazards[] = {
    {v(0, 10), v(0, 11, 1), has_unchecked_reload,
     "gradients can be wrong without a message when residuals of a scan are offloaded: copies back "
     "may walk the layers in the wrong direction.",
     "Train with 0.11.2 or later: this dump does not tell whether its copies are right.",
     "openxla/xla#46231; seen in a dump of 0.10.2, not in one of 0.11.2"},
    {v(0, 4), v(0, 5), has_transfers,
     "the memory scheduler counts buffers in pinned host memory as if they took HBM.",
     "Upgrade: the order of instructions saves the wrong memory.",
     "openxla/xla#21825, proposed after 0.5.0 came out"},
    {v(0, 4), v(0, 5, 1), has_host_state,
     "the scheduler's memory limit can wrap around to nearly 2^64 when state is in pinned host "
     "memory, and then bounds nothing.",
     "Upgrade, or turn the latency-hiding scheduler off.",
     "openxla/xla#23271, proposed after 0.5.1 came out"},
    {v(0, 4, 35), v(0, 4, 35), has_host_state, "optimizer state in pinned host memory fails.",
     "Use 0.4.34 or 0.4.36.", "apple/axlearn#867"},
    {v(0, 8, 2), v(0, 9, 1), has_conditional_in_loop,
     "a conditional in a scan that hands the loop's state through makes copies of all of it in "
     "each "
     "iteration.",
     "Take the conditional out of the scan, or make its predicate constant.", "jax-ml/jax#38145"},
    {v(0, 9, 2), v(0, 9, 2), has_expert_exchange,
     "temporaries of a mixture-of-experts step were 3.6 times those of 0.8.0.",
     "`spillway compare` on dumps of both versions names the buffers.", "marin#5394"},
    {v(0, 11), kNewest, has_pipelined_copies,
     "pipelined host offloading is switched on by an optimisation level of O1 or more; it was "
     "taken "
     "out once for a loss that diverged, and came back.",
     "Compare the loss of a short run with --xla_gpu_enable_pipelined_host_offloading=false.",
     "openxla/xla#37979, openxla/xla#45393"},
    {v(0, 8, 2), kNewest, is_near_remat_limit,
     "rematerialisation counts pinned host buffers as HBM, and with them this program is above its "
     "limit.",
     "--xla_disable_hlo_passes=rematerialization, when compiling.", "dumps of 0.12.0.1"},
};

std::optional<Finding> known_hazards(const Evidence& in) {
  if (!in.jaxlib) return std::nullopt;
  std::vector<const Hazard*> known;
  for (const Hazard& hazard : kHazards)
    if (*in.jaxlib >= hazard.first && *in.jaxlib <= hazard.last && hazard.concerns(in))
      known.push_back(&hazard);
  if (known.empty()) return std::nullopt;
  Finding finding;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const std::string number = known.size() > 1 ? fmt::format("({}) ", k + 1) : "";
    const char* blank = k == 0 ? "" : " ";
    finding.what += fmt::format("{}{}{}", blank, number, known[k]->what);
    finding.why += fmt::format("{}{}{}.", blank, number, known[k]->source);
    finding.advice += fmt::format("{}{}{}", blank, number, known[k]->advice);
  }
  finding.what = fmt::format("with jaxlib {}, {}", to_string(*in.jaxlib), finding.what);
  finding.why = "Known from " + finding.why;
  return finding;
}

constexpr Rule kRules[] = {{"known-hazards", Severity::kWarning, known_hazards}};

}  // namespace

std::span<const Rule> hazard_rules() { return kRules; }

}  // namespace spillway::internal
