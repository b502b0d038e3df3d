// The order that XLA's memory scheduler made, made again from the graph alone; and the fences that
// XLA put into a program. Runs only where the corpus is.
#include <doctest/doctest.h>

#include <set>

#include "model/program/control_predecessors.h"
#include "sim/schedule/default_order.h"
#include "sim/schedule/memory_fences.h"
#include "tests/support/csv_rows.h"
#include "tests/support/schedule_dump.h"

namespace spillway {
namespace {

/// Pairs of instructions that stand the other way round than in the program's text, of all pairs:
/// that text has XLA's order. n log n.
double kendall_distance(const std::vector<InstructionIndex>& order) {
  std::vector<std::uint32_t> numbers;
  for (const InstructionIndex i : order) numbers.push_back(i.index);
  std::uint64_t swapped = 0;
  std::vector<std::uint32_t> seen(numbers.size() + 1, 0);  // a Fenwick tree of those that came
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    std::uint64_t smaller = 0;
    for (std::size_t at = numbers[k]; at > 0; at &= at - 1) smaller += seen[at];
    swapped += k - smaller;
    for (std::size_t at = numbers[k] + 1; at < seen.size(); at += at & (~at + 1)) ++seen[at];
  }
  const auto n = static_cast<double>(numbers.size());
  return n < 2 ? 0 : static_cast<double>(swapped) / (n * (n - 1) / 2);
}

TEST_CASE("the memory scheduler's order of every computation of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  int computations = 0, exact = 0, chosen_otherwise = 0;
  for (const auto& path : testing::find_schedule_dumps(*corpus)) {
    const std::string name = path.parent_path().filename().string();
    if (name == "l8b4_unr_off_fence") continue;  // its fences came after the memory scheduler
    CAPTURE(name);
    const testing::ScheduleDump dump = testing::read_schedule_dump(path);
    const MemoryAssignment given = assign_memory(dump.program, text_schedule(dump.program).value());
    const DefaultOrder ours = find_default_order(dump.program, given);
    if (name == "host_a_device") {  // docs/schedule.md
      CHECK(ours.scheduler == DefaultScheduler::kDepthFirst);
      ++chosen_otherwise;
      continue;
    }
    for (const ComputationId id : ids(dump.program.computations)) {
      const auto& order = ours.schedule.order[id];
      if (order.size() <= 20) continue;
      CAPTURE(dump.program[id].name());
      const double distance = kendall_distance(order);
      CHECK(distance <= (ours.scheduler == DefaultScheduler::kList ? 0.008 : 0.0002));
      ++computations;
      if (distance == 0) ++exact;
    }
  }
  CHECK(chosen_otherwise == 1);
  CHECK(computations == 254);
  CHECK(exact >= 228);
}

TEST_CASE("the fences that XLA put into an unrolled program") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const std::string file = "/jit_train_step.schedule.txt.gz";
  const auto fenced = testing::read_schedule_dump(corpus->string() + "/l8b4_unr_off_fence" + file);
  const auto plain = testing::read_schedule_dump(corpus->string() + "/l8b4_unr_off" + file);
  using Edge = std::pair<std::string, std::string>;
  const auto edges = [](const Program& program) {
    std::set<Edge> found;
    const Computation& entry = program.entry_computation();
    ControlPredecessors control(entry);
    for (const InstructionIndex i : entry.instructions())
      for (const InstructionIndex before : control.of(i))
        found.insert({std::string(entry[before].name), std::string(entry[i].name)});
    return found;
  };
  const MemoryAssignment given = assign_memory(plain.program, text_schedule(plain.program).value());
  const Program ours = with_control_dependencies(
      plain.program, find_memory_fences(plain.program, given, {.threshold = Bytes(1 << 20)}));
  CHECK(edges(fenced.program).size() == 281);
  CHECK(edges(ours) == edges(fenced.program));
}

}  // namespace
}  // namespace spillway
