#include "model/plan/check_plan.h"

#include <fmt/format.h>

#include "model/base/format.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

/// Where the done of a start stands; several, or none, are a mistake.
std::vector<InstructionIndex> dones_of(const Computation& computation, InstructionIndex start) {
  std::vector<InstructionIndex> dones;
  for (const Use& use : computation.uses(start))
    if (is_async_done(computation[use.user].opcode)) dones.push_back(use.user);
  return dones;
}

/// Whether an instruction reads only what stands before it.
bool check_order(const Computation& computation, InstructionIndex i,
                 std::vector<std::string>& wrong) {
  bool right = true;
  for (const Operand& operand : computation.operands(i))
    if (operand.instruction >= i) {
      right = false;
      wrong.push_back(fmt::format("{}: '{}' reads '{}' before it is defined", computation.name(),
                                  computation[i].name, computation[operand.instruction].name));
    }
  return right;
}

void check_pair(const Program& program, InstructionId id, std::vector<std::string>& wrong) {
  const Computation& computation = program[id.computation];
  if (!host_transfer(program, id) || !is_async_start(computation[id.instruction].opcode)) return;
  const auto dones = dones_of(computation, id.instruction);
  if (dones.size() != 1) {
    wrong.push_back(fmt::format("{}: copy '{}' has {} dones", computation.name(),
                                computation[id.instruction].name, dones.size()));
    return;
  }
  // What a start fills may be read through its done only.
  for (const Use& use : computation.uses(id.instruction))
    if (use.user != dones[0])
      wrong.push_back(fmt::format("{}: '{}' reads the copy '{}' before it is done at '{}'",
                                  computation.name(), computation[use.user].name,
                                  computation[id.instruction].name, computation[dones[0]].name));
}

/// Fusions and functions that reductions apply are checked where they are called.
std::vector<ComputationId> reached_by_control_flow(const Program& program) {
  std::vector<ComputationId> found = {program.entry};
  std::vector<bool> seen(program.computations.size(), false);
  seen[program.entry.index] = true;
  for (std::size_t k = 0; k < found.size(); ++k)
    for (const InstructionIndex i : program[found[k]].instructions()) {
      if (!is_control_flow(program[found[k]][i].opcode)) continue;
      for (const ComputationId callee : program[found[k]].called(i))
        if (!seen[callee.index]) {
          seen[callee.index] = true;
          found.push_back(callee);
        }
    }
  return found;
}

void check_memory(const Program& program, const Budget& budget, std::vector<std::string>& wrong) {
  const Result<Schedule> schedule = text_schedule(program);
  if (!schedule.ok()) return wrong.push_back(schedule.error().text);
  const MemoryTotals totals = sum_totals(assign_memory(program, *schedule));
  const Fit fit = check_fit(totals, budget);
  for (const std::string& miss : misses_of(fit)) wrong.push_back("misses the budget, " + miss);
}

}  // namespace

std::vector<std::string> check_plan(const Program& planned, const Budget& budget) {
  std::vector<std::string> wrong;
  bool in_order = true;
  for (const ComputationId id : reached_by_control_flow(planned)) {
    const Computation& computation = planned[id];
    for (const InstructionIndex i : computation.instructions()) {
      in_order &= check_order(computation, i, wrong);
      check_pair(planned, {id, i}, wrong);
      if (is_host_compute(planned, {id, i}))
        wrong.push_back(fmt::format("{}: '{}' computes on an array in host memory",
                                    computation.name(), computation[i].name));
    }
  }
  // What is read before it is defined has no lifetime.
  if (in_order) check_memory(planned, budget, wrong);
  return wrong;
}

}  // namespace spillway
