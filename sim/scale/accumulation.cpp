#include "sim/scale/accumulation.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "model/program/call_graph.h"
#include "sim/scale/resize_program.h"

namespace spillway {
namespace {

/// Of the operations that JAX names, "jit(step)/jvp()/mul" and "jit(step)/transpose(jvp())/mul".
struct Passes {
  bool forward = false, backward = false;
};

constexpr std::string_view kDifferentiated = "jvp(";
constexpr std::string_view kTransposed = "transpose(jvp(";

std::string_view op_name(const Computation& computation, InstructionIndex i) {
  return metadata_field(computation, i, "op_name");
}

/// A computation and all that it calls, loops included or not.
void visit_below(const Program& program, ComputationId id, bool into_loops,
                 std::set<ComputationId>& seen) {
  if (!seen.insert(id).second) return;
  for (const InstructionIndex i : program[id].instructions())
    if (into_loops || program[id][i].opcode != Opcode::kWhile)
      for (const ComputationId callee : program[id].called(i))
        visit_below(program, callee, into_loops, seen);
}

Passes passes_below(const Program& program, ComputationId id) {
  std::set<ComputationId> computations;
  visit_below(program, id, true, computations);
  Passes passes;
  for (const ComputationId c : computations)
    for (const InstructionIndex i : program[c].instructions()) {
      const std::string_view name = op_name(program[c], i);
      const bool transposed = name.find(kTransposed) != std::string_view::npos;
      passes.backward |= transposed;
      passes.forward |= !transposed && name.find(kDifferentiated) != std::string_view::npos;
    }
  return passes;
}

std::optional<AccumulationLoop> find_below(const Program& program, ComputationId id) {
  for (const InstructionIndex i : program[id].instructions()) {
    if (!is_control_flow(program[id][i].opcode)) continue;
    if (program[id][i].opcode == Opcode::kWhile &&
        op_name(program[id], i).find(kDifferentiated) == std::string_view::npos) {
      const Passes passes = passes_below(program, program[id].called(i)[1]);
      if (const auto steps = known_trip_count(program[id], i);
          steps && passes.forward && passes.backward)
        return AccumulationLoop{{id, i}, *steps};
    }
    for (const ComputationId callee : program[id].called(i))
      if (const auto found = find_below(program, callee)) return found;
  }
  return std::nullopt;
}

/// Dimensions of what the loop carries: those of which each iteration takes one, `steps`; the
/// others stay.
std::vector<WantedSize> wanted_sizes(const Program& program, const DimensionRules& rules,
                                     const AccumulationLoop& found, std::int64_t steps) {
  std::set<ComputationId> body;
  visit_below(program, body_of(program, found.loop), false, body);
  std::set<DimensionId> counted;
  for (const PartRule& rule : rules.parts)
    if (body.contains(rule.at.computation) && rules.dimensions.size_of(rule.part) == 1 &&
        rules.dimensions.size_of(rule.whole) == found.steps)
      counted.insert(rules.dimensions.representative(rule.whole));
  std::vector<WantedSize> wanted;
  const Shape carried = program[found.loop].shape;
  for (ShapeNodeIndex node = 0; node < carried.node_count(); ++node)
    for (std::size_t k = 0; k < carried.at(node).dims().size(); ++k) {
      const DimensionId d = rules.dimensions.at(found.loop, node, k);
      const bool grows = counted.contains(rules.dimensions.representative(d));
      wanted.push_back({d, grows ? steps : rules.dimensions.size_of(d)});
    }
  return wanted;
}

}  // namespace

std::optional<AccumulationLoop> find_accumulation_loop(const Program& program) {
  return find_below(program, program.entry);
}

Result<Program> with_accumulation(const Program& program, std::int64_t steps) {
  if (steps < 1) return usage_error("a step has at least one micro batch");
  const auto found = find_accumulation_loop(program);
  if (!found)
    return error_in_file(program.path,
                         "has no loop around forward and backward, so that it does not "
                         "accumulate gradients",
                         "compile the step with two micro batches or more, scanned; a batch "
                         "without accumulation is --batch");
  if (steps == found->steps) return program;
  const DimensionRules rules = find_dimension_rules(program);
  return resize_program(
      program, rules,
      solve_dimensions(program, rules, wanted_sizes(program, rules, *found, steps), {}),
      {{found->loop, steps}});
}

}  // namespace spillway
