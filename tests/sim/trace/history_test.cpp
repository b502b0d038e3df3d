#include "sim/trace/history.h"

#include <doctest/doctest.h>

#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway {
namespace {

using engine::StepId;
using engine::testing::seconds;
using engine::testing::Toy;

/// Readers by step number.
History record(const Toy& toy, const std::vector<std::pair<int, int>>& readers,
               std::size_t most = 100'000) {
  LoweredProgram lowered;
  lowered.program = toy.program;
  IdVector<StepId, std::optional<StepId>> reader_of(toy.program.steps.size());
  for (const auto& [wait, reader] : readers)
    reader_of[StepId(static_cast<std::size_t>(wait))] = StepId(static_cast<std::size_t>(reader));
  MemoryLevels levels;
  for (const StepId step : ids(toy.program.steps))
    levels.at_step.push({Bytes(10 * step.index), Bytes(step.index)});
  levels.at_end = {Bytes(5), Bytes(0)};
  ChronicleWriter writer(toy.program, {toy.d2h, toy.h2d, toy.hbm}, most);
  const auto run = engine::run_to_end(toy.program, {}, &writer);
  return make_history(lowered, writer.take(), reader_of, levels, run.makespan);
}

TEST_CASE("a copy has its run, its wait and its reader") {
  Toy toy;
  const auto slot = toy.start(toy.reload(12), toy.up);  // 3 s
  toy.run(toy.kernel(seconds(1)));
  toy.wait(slot);
  toy.run(toy.kernel(seconds(2)));
  const History history = record(toy, {{2, 3}});
  REQUIRE(history.runs.size() == 3);
  const TaskRun& copy = history.runs[RunId(0)];
  CHECK(copy.started == seconds(0));
  CHECK(copy.finished == seconds(3));
  CHECK(copy.read_by == RunId(2));
  CHECK(history.runs[RunId(2)].started == seconds(3));
  REQUIRE(history.waits.size() == 1);
  CHECK(history.waits[0].awaited == RunId(0));
  CHECK(history.waits[0].from == seconds(1));
  CHECK(history.waits[0].to == seconds(3));
  CHECK(history.end == seconds(5));
}

TEST_CASE("memory follows the main stream, a wait's from where it is reached") {
  Toy toy;
  const auto slot = toy.start(toy.reload(12), toy.up);
  toy.run(toy.kernel(seconds(1)));
  toy.wait(slot);
  toy.run(toy.kernel(seconds(2)));
  const History history = record(toy, {});
  struct Row {
    SimTime at;
    std::int64_t device;
  };
  const Row rows[] = {
      {seconds(0), 0}, {seconds(0), 10}, {seconds(1), 20}, {seconds(3), 30}, {seconds(5), 5}};
  REQUIRE(history.levels.size() == std::size(rows));
  for (std::size_t k = 0; k < std::size(rows); ++k) {
    CHECK(history.levels[k].at == rows[k].at);
    CHECK(history.levels[k].live.device == Bytes(rows[k].device));
  }
}

/// Fetched one iteration ahead: the first in front of the loop, the last is never waited for.
struct Pipelined {
  Toy toy;
  StepId loop;
  explicit Pipelined(std::int64_t trips) {
    const auto slot = add_slot(toy.program);
    const auto fetch = toy.reload(8);  // 2 s
    add_start(toy.program, fetch, toy.up, slot);
    loop = add_loop(toy.program, trips, [&] {
      toy.wait(slot);
      add_start(toy.program, fetch, toy.up, slot);
      toy.run(toy.kernel(seconds(3)));
    });
  }
};

TEST_CASE("of a pipelined loop each wait is for the copy before, each reader reads that") {
  for (const std::int64_t trips : {4, 200}) {
    const Pipelined pipelined(trips);
    const History history = record(pipelined.toy, {{2, 4}});
    REQUIRE(history.waits.size() == static_cast<std::size_t>(trips));
    for (std::size_t k = 0; k < history.waits.size(); ++k) {
      CHECK(history.waits[k].iteration == static_cast<std::int64_t>(k));
      const TaskRun& awaited = history.runs[history.waits[k].awaited];
      CHECK(awaited.iteration == std::max<std::int64_t>(static_cast<std::int64_t>(k) - 1, 0));
    }
    std::int64_t kernels = 0;
    for (const RunId id : ids(history.runs)) {
      const TaskRun& run = history.runs[id];
      if (run.step != StepId(4)) continue;
      CHECK(run.iteration == kernels);
      CHECK(run.entry == 0);
      CHECK(run.started == seconds(2 + 3 * kernels));
      ++kernels;
    }
    CHECK(kernels == trips);
    std::int64_t copies = 0;
    for (const RunId id : ids(history.runs)) {
      const TaskRun& run = history.runs[id];
      if (run.step == StepId(4) || copies == trips) continue;
      REQUIRE(run.read_by);
      CHECK(history.runs[*run.read_by].iteration == copies);
      ++copies;
    }
    REQUIRE(history.loops.size() == static_cast<std::size_t>(trips));
    CHECK(history.loops.back().iteration == trips - 1);
    CHECK(history.loops.back().to == seconds(2 + 3 * trips));
  }
}

TEST_CASE("what is left out is a stretch of its loop, and iterations go on behind it") {
  const Pipelined pipelined(1000);
  const History history = record(pipelined.toy, {{2, 4}}, 60);
  std::int64_t left_out = 0, next = 0;
  SimTime at = seconds(2);
  for (const LoopSpan& span : history.loops) {
    CHECK(span.iteration == next);
    CHECK(span.from == (next == 0 ? seconds(0) : at));
    at = span.to;
    next += span.left_out > 0 ? span.left_out : 1;
    left_out += span.left_out;
  }
  CHECK(next == 1000);
  CHECK(left_out > 900);
  const TaskRun& last = history.runs[RunId(history.runs.size() - 1)];
  CHECK(last.step == StepId(4));
  CHECK(last.iteration == 999);
  CHECK(last.finished == seconds(3002));
}

TEST_CASE("the loops around steps") {
  Toy toy;
  toy.run(toy.kernel(seconds(1)));
  const StepId outer = add_loop(toy.program, 2, [&] {
    add_loop(toy.program, 2, [&] { toy.run(toy.kernel(seconds(1))); });
    toy.run(toy.kernel(seconds(1)));
  });
  toy.run(toy.kernel(seconds(1)));
  const auto around = loops_around(toy.program);
  CHECK_FALSE(around[StepId(0)]);
  CHECK_FALSE(around[outer]);
  CHECK(around[StepId(2)] == outer);
  CHECK(around[StepId(3)] == StepId(2));
  CHECK(around[StepId(4)] == outer);
  CHECK_FALSE(around[StepId(5)]);
}

}  // namespace
}  // namespace spillway
