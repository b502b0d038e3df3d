#include "model/memory/fusion_hero.h"

#include <algorithm>

namespace spillway {
namespace {

constexpr std::int64_t kWarp = 32;

bool is_trivial_step(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  if (in.operand_count != 1) return false;
  if (in.opcode == Opcode::kBitcast) return true;
  return is_elementwise(in.opcode) && in.opcode != Opcode::kCopy;
}

/// Sizes of a reduction as XLA sees it: neighbouring dimensions joined, physical order.
struct ReductionSizes {
  bool row = false;
  std::int64_t major = 1, middle = 1, minor = 1;
};

std::optional<ReductionSizes> reduction_sizes(const Computation& computation,
                                              InstructionIndex reduce) {
  const Shape input = computation.shape_of(computation.operands(reduce)[0]);
  const auto reduced = parse_integers(computation.attribute(reduce, "dimensions").value_or(""));
  std::vector<std::int64_t> physical(input.minor_to_major().rbegin(),
                                     input.minor_to_major().rend());
  if (physical.empty())
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(input.dims().size()); ++d)
      physical.push_back(d);
  // Runs of kept and of reduced dimensions, major to minor.
  struct Run {
    bool reduced;
    std::int64_t size;
  };
  std::vector<Run> runs;
  for (const std::int64_t d : physical) {
    const bool is_reduced = std::ranges::find(reduced, d) != reduced.end();
    const std::int64_t size = input.dims()[static_cast<std::size_t>(d)];
    if (runs.empty() || runs.back().reduced != is_reduced) runs.push_back({is_reduced, 1});
    runs.back().size *= size;
  }
  const auto count = [&runs](bool wanted) {
    return std::ranges::count(runs, wanted, &Run::reduced);
  };
  if (runs.empty() || runs.size() > 3 || (count(true) > 1 && count(false) > 1)) return std::nullopt;
  if (count(true) == 0) return std::nullopt;
  ReductionSizes sizes;
  if (runs.back().reduced) {  // (R, K, R), (K, R) or (R)
    sizes.row = true;
    sizes.minor = runs.back().size;
    if (runs.size() > 1) sizes.middle = runs[runs.size() - 2].size;
    if (runs.size() > 2) sizes.major = runs[0].size;
  } else {  // (K, R, K) or (R, K)
    sizes.minor = runs.back().size;
    sizes.middle = runs[runs.size() - 2].size;
    if (runs.size() > 2) sizes.major = runs[0].size;
  }
  return sizes;
}

/// Small reductions are emitted element by element; these have no hero. The sizes are XLA's: its
/// authors found those of columns by trying small reductions
/// (IsUnnestedReductionFasterThanElemental in xla/service/gpu/reduction_utils.cc).
bool has_reduction_emitter(const Computation& computation, InstructionIndex i) {
  if (computation[i].opcode != Opcode::kReduce) return false;
  const auto sizes = reduction_sizes(computation, i);
  if (!sizes) return false;
  if (sizes->row)
    return sizes->minor >= kWarp || kWarp % std::max<std::int64_t>(sizes->minor, 1) == 0;
  const std::int64_t reduced = sizes->middle;
  const std::int64_t minor = sizes->minor;
  const bool elemental = reduced < kWarp || (reduced < 2 * kWarp && minor < kWarp) ||
                         (reduced < 4 * kWarp && minor < 8) || (reduced < 8 * kWarp && minor < 3);
  return !elemental;
}

/// The first transpose or concatenation behind elementwise steps of any number of operands.
std::optional<InstructionIndex> find_behind(const Computation& computation, InstructionIndex from,
                                            Opcode wanted) {
  std::vector<InstructionIndex> queue = {from};
  std::vector<bool> seen(computation.size(), false);
  for (std::size_t k = 0; k < queue.size(); ++k) {
    const InstructionIndex at = queue[k];
    if (computation[at].opcode == wanted) return at;
    const bool passes =
        computation[at].opcode == Opcode::kBitcast || is_elementwise(computation[at].opcode);
    if (!passes || computation[at].opcode == Opcode::kCopy) continue;
    for (const Operand& operand : computation.operands(at)) {
      if (seen[operand.instruction.index]) continue;
      seen[operand.instruction.index] = true;
      queue.push_back(operand.instruction);
    }
  }
  return std::nullopt;
}

InstructionIndex hero_of(const Computation& computation, InstructionIndex root) {
  InstructionIndex hero = root;
  while (is_trivial_step(computation, hero)) {
    const InstructionIndex next = computation.operands(hero)[0].instruction;
    if (computation[next].opcode == Opcode::kParameter) break;
    hero = next;
  }
  if (const auto transpose = find_behind(computation, hero, Opcode::kTranspose)) return *transpose;
  if (const auto concatenate = find_behind(computation, hero, Opcode::kConcatenate))
    return *concatenate;
  return computation[hero].opcode == Opcode::kReduce ? hero : root;
}

}  // namespace

FusionHeroes find_heroes(const Program& program, InstructionId fusion) {
  const Computation& outer = program[fusion.computation];
  const Computation& inner = program[outer.called(fusion.instruction)[0]];
  FusionHeroes heroes;
  const InstructionIndex root = inner.root().instruction;
  if (inner[root].opcode == Opcode::kTuple) {
    for (const Operand& output : inner.operands(root))
      heroes.roots.push_back({output.instruction, output.instruction});
  } else {
    heroes.roots.push_back({root, root});
  }
  if (has_attribute(outer, fusion.instruction, "kind", "kCustom")) return heroes;
  for (FusionRoot& output : heroes.roots) {
    output.hero = hero_of(inner, output.root);
    if (!heroes.reduction && has_reduction_emitter(inner, output.hero))
      heroes.reduction = output.hero;
  }
  return heroes;
}

}  // namespace spillway
