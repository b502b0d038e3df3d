#include "sim/engine/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::milliseconds;
using testing::seconds;
using testing::Toy;

TEST_CASE("a run may take 80 hours and not a picosecond more, extended or not") {
  struct Row {
    std::int64_t trips;
    SimTime more;
    bool fits;
  };
  const Row rows[] = {{4, SimTime(0), true},
                      {4, SimTime(1), false},
                      {5, SimTime(0), false},
                      {std::int64_t{1} << 60, SimTime(0), false}};
  for (const Row& row : rows) {
    for (const bool extend : {true, false}) {
      CAPTURE(row.trips);
      CAPTURE(extend);
      Toy toy;
      add_loop(toy.program, row.trips, [&] { toy.run(toy.kernel(kLongestTask)); });
      toy.run(toy.kernel(row.more));
      const Result<EngineResult> result = run(toy.program, {.extend_loops = extend});
      CHECK(result.ok() == row.fits);
      if (result.ok()) CHECK(result->makespan == kLongestRun);
      if (!result.ok()) CHECK(result.error().text == "takes longer than 80 hours");
    }
  }
}

TEST_CASE("an empty program takes no time") {
  const EngineResult result = run_to_end(EngineProgram{});
  CHECK(result.makespan == SimTime(0));
  CHECK(result.main_end == SimTime(0));
  CHECK(result.effort.events == 0);
}

TEST_CASE("closed forms") {
  struct Row {
    std::string name;
    void (*build)(Toy&);
    SimTime makespan;
  };
  const Row rows[] = {
      {"one kernel", [](Toy& toy) { toy.run(toy.kernel(seconds(3))); }, seconds(3)},
      {"a kernel bound by HBM", [](Toy& toy) { toy.run(toy.kernel(seconds(3), 320)); },
       seconds(10)},
      {"kernels follow each other",
       [](Toy& toy) {
         toy.run(toy.kernel(seconds(3)));
         toy.run(toy.kernel(seconds(4)));
       },
       seconds(7)},
      {"latency comes before work",
       [](Toy& toy) {
         toy.run(add_task(toy.program, {.latency = seconds(2), .duration = seconds(3)}));
       },
       seconds(5)},
      {"latency alone", [](Toy& toy) { toy.run(add_task(toy.program, {.latency = seconds(2)})); },
       seconds(2)},
      {"nothing at all", [](Toy& toy) { toy.run(add_task(toy.program, {})); }, seconds(0)},
      {"what is started and never waited for still runs to its end",
       [](Toy& toy) { toy.start(toy.reload(40), toy.up); }, seconds(10)},
      {"one way", [](Toy& toy) { toy.start(toy.reload(12), toy.up); }, seconds(3)},
      {"both ways: 3 B/s each",
       [](Toy& toy) {
         toy.start(toy.reload(12), toy.up);
         toy.start(toy.offload(12), toy.down);
       },
       seconds(4)},
      {"both ways until the shorter is done, then one way at full rate: 2 s + 6 B at 4 B/s",
       [](Toy& toy) {
         toy.start(toy.reload(12), toy.up);
         toy.start(toy.offload(6), toy.down);
       },
       milliseconds(3500)},
      {"one way after the other: FIFO",
       [](Toy& toy) {
         toy.start(toy.reload(12), toy.up);
         toy.start(toy.offload(12), toy.up);
       },
       seconds(6)},
      {"a compute-bound kernel does not notice a copy: 8 of 32 B/s and 4 B/s",
       [](Toy& toy) {
         toy.start(toy.reload(40), toy.up);
         toy.run(toy.kernel(seconds(10), 80));
       },
       seconds(10)},
      {"a memory-bound kernel does: both at 8/9, the kernel for 9 s, then the copy alone",
       [](Toy& toy) {
         toy.start(toy.reload(40), toy.up);
         toy.run(toy.kernel(seconds(8), 256));
       },
       seconds(11)},
      {"latency demands nothing: the kernel is alone for 4 s, then shares at 8/9",
       [](Toy& toy) {
         toy.start(add_task(toy.program, {.latency = seconds(4)}, {{toy.h2d, 40}, {toy.hbm, 40}}),
                   toy.up);
         toy.run(toy.kernel(seconds(12), 384));
       },
       seconds(15)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Toy toy;
    row.build(toy);
    CHECK(run_to_end(toy.program).makespan.value() == row.makespan.value());
  }
}

TEST_CASE("n equal copies over one link take n times as long, all of them") {
  for (std::int64_t n = 1; n <= 7; ++n) {
    CAPTURE(n);
    EngineProgram program;
    const ResourceId link = add_resource(program, 4);
    const TaskId copy = add_task(program, {}, {{link, 8}});
    std::vector<StepId> starts;
    for (std::int64_t i = 0; i < n; ++i)
      starts.push_back(add_start(program, copy, add_stream(program), add_slot(program)));
    const EngineResult result = run_to_end(program);
    CHECK(result.makespan.value() == seconds(2 * n).value());
    for (const StepId start : starts) CHECK(result.steps[start].busy == seconds(2 * n));
    CHECK(result.resources[link].moved == 8 * n);
    CHECK(result.resources[link].busy == seconds(2 * n));
    CHECK(result.resources[link].contended == (n > 1 ? seconds(2 * n) : seconds(0)));
  }
}

/// The table of docs/engine.md#sharing, in GB: weights that make copies share by bytes.
TEST_CASE("copies both ways, with equal weights and by bytes") {
  struct Row {
    std::string name;
    std::int64_t h2d, d2h, both;  // tenths of a GB/s
    std::int32_t h2d_weight, d2h_weight;
    std::int64_t up, down;  // tenths of a GB that are moved in one second
  };
  const Row rows[] = {
      {"GH200, equal weights", 3700, 2950, 3640, 1, 1, 2011, 1629},
      {"GH200, by bytes", 3700, 2950, 3640, 295, 364, 1820, 1820},
      {"GB300, equal weights", 2115, 1935, 3430, 1, 1, 1791, 1639},
      {"GB300, by bytes", 2115, 1935, 3430, 1935, 2115, 1715, 1715},
      {"GB200, equal weights", 2007, 1935, 3270, 1, 1, 1665, 1605},
      {"GB200, by bytes", 2007, 1935, 3270, 1935, 2007, 1635, 1635},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    EngineProgram program;
    const ResourceId h2d = add_resource(program, row.h2d), d2h = add_resource(program, row.d2h),
                     both = add_resource(program, row.both);
    const TaskId reload =
        add_task(program, {.weight = row.h2d_weight}, {{h2d, row.up}, {both, row.up}});
    const TaskId offload =
        add_task(program, {.weight = row.d2h_weight}, {{d2h, row.down}, {both, row.down}});
    add_start(program, reload, add_stream(program), add_slot(program));
    add_start(program, offload, add_stream(program), add_slot(program));
    const EngineResult result = run_to_end(program);
    for (const StepStats& step : result.steps)
      CHECK(to_seconds(step.busy).value() == doctest::Approx(1).epsilon(1e-3));
  }
}

/// The example of docs/engine.md#sharing.
TEST_CASE("a kernel and copies both ways: the link first, then the HBM") {
  Toy toy;
  toy.start(toy.offload(12), toy.down);
  toy.start(toy.reload(12), toy.up);
  toy.run(toy.kernel({}, 32 * 13));
  const EngineResult result = run_to_end(toy.program);
  CHECK(result.steps[StepId(0)].busy.value() == seconds(4).value());
  CHECK(result.steps[StepId(1)].busy.value() == seconds(4).value());
  // 4 s at 13/16, then 9.75 s alone.
  CHECK(result.makespan.value() == milliseconds(13'750).value());
}

struct Spans : Listener {
  std::vector<TaskFinished> tasks;
  std::vector<Waited> waits;
  void on_task_finished(const TaskFinished& e) override { tasks.push_back(e); }
  void on_waited(const Waited& e) override { waits.push_back(e); }
};

TEST_CASE("a stream is first in, first out") {
  Toy toy;
  for (const std::int64_t bytes : {12, 4, 8}) toy.start(toy.reload(bytes), toy.up);
  toy.start(toy.kernel(seconds(1)), toy.down);
  Spans spans;
  const EngineResult result = run_to_end(toy.program, {}, &spans);
  REQUIRE(spans.tasks.size() == 4);
  CHECK(spans.tasks[0].step == StepId(3));  // the other stream does not wait
  const SimTime started[] = {seconds(0), seconds(3), seconds(4)};
  const SimTime finished[] = {seconds(3), seconds(4), seconds(6)};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(spans.tasks[i + 1].step == StepId(i));
    CHECK(spans.tasks[i + 1].started == started[i]);
    CHECK(spans.tasks[i + 1].at == finished[i]);
    CHECK(result.steps[StepId(i)].queued == started[i]);
  }
}

TEST_CASE("a start waits for what the main stream has been given before it, and for no more") {
  Toy toy;
  toy.run(toy.kernel(seconds(5)));
  toy.start(toy.reload(4), toy.up);
  toy.run(toy.kernel(seconds(7)));
  Spans spans;
  run_to_end(toy.program, {}, &spans);
  REQUIRE(spans.tasks.size() == 3);
  CHECK(spans.tasks[1].step == StepId(1));
  CHECK(spans.tasks[1].started == seconds(5));
  CHECK(spans.tasks[1].at == seconds(6));
}

TEST_CASE("a done passes on the tick at which the copy ends, and not one before") {
  for (std::int64_t late = -1; late <= 1; ++late) {
    CAPTURE(late);
    Toy toy;
    const SlotId slot = toy.start(toy.kernel(SimTime(10 + late)), toy.up);
    toy.run(toy.kernel(SimTime(10)));
    const StepId wait = toy.wait(slot);
    toy.run(toy.kernel(SimTime(5)));
    Spans spans;
    const EngineResult result = run_to_end(toy.program, {}, &spans);
    CHECK(result.steps[wait].count == 1);
    CHECK(result.makespan.value() == 15 + std::max<std::int64_t>(late, 0));
    CHECK(result.steps[wait].stalled.value() == std::max<std::int64_t>(late, 0));
    REQUIRE(spans.waits.size() == (late > 0 ? 1 : 0));
    if (late <= 0) continue;
    CHECK(spans.waits[0].step == wait);
    CHECK(spans.waits[0].from == SimTime(10));
    CHECK(spans.waits[0].to == SimTime(11));
  }
}

TEST_CASE("a done that is placed early stalls, though nobody needs the copy yet") {
  Toy late, early;
  const SlotId a = late.start(late.reload(12), late.up);
  late.run(late.kernel(seconds(5)));
  late.wait(a);
  const SlotId b = early.start(early.reload(12), early.up);
  early.wait(b);
  early.run(early.kernel(seconds(5)));
  CHECK(run_to_end(late.program).makespan == seconds(5));
  CHECK(run_to_end(early.program).makespan == seconds(8));
}

TEST_CASE("the accounts of a step") {
  Toy toy;
  const SlotId slot = toy.start(toy.reload(40), toy.up);  // step 0: alone 10 s, 4 of 32 B/s
  add_run(toy.program, add_task(toy.program, {.latency = seconds(1)},
                                {{toy.hbm, 256}}));  // step 1: alone 1 + 8 s
  const StepId wait = toy.wait(slot);
  const EngineResult result = run_to_end(toy.program);
  // 1 s alone, 9 s at 8/9 together, 1 s alone.
  const StepStats& copy = result.steps[StepId(0)];
  const StepStats& kernel = result.steps[StepId(1)];
  CHECK(copy.busy == seconds(11));
  CHECK(copy.alone == seconds(10));
  CHECK(copy.contended == seconds(9));
  CHECK(kernel.busy == seconds(10));
  CHECK(kernel.alone == seconds(9));
  CHECK(kernel.contended == seconds(9));
  CHECK(result.steps[wait].stalled == seconds(1));
  CHECK(result.main_end == seconds(11));
  CHECK(result.streams[kMainStream].busy == seconds(10));
  CHECK(result.streams[kMainStream].latency == seconds(1));
  CHECK(result.streams[kMainStream].tasks == 1);
  CHECK(result.streams[toy.up].busy == seconds(11));
  CHECK(result.resources[toy.hbm].moved == 296);
  CHECK(result.resources[toy.hbm].busy == seconds(11));
  CHECK(result.resources[toy.hbm].contended == seconds(9));
  CHECK(result.resources[toy.h2d].contended == seconds(0));
  CHECK(result.resources[toy.d2h].busy == seconds(0));
}

TEST_CASE("rates are told when they change") {
  Toy toy;
  toy.start(toy.reload(40), toy.up);
  toy.run(toy.kernel(seconds(8), 256));
  struct Rates : Listener {
    std::vector<SimTime> at;
    std::vector<std::vector<RunningTask>> running;
    void on_rates_changed(SimTime when, std::span<const RunningTask> tasks) override {
      at.push_back(when);
      running.emplace_back(tasks.begin(), tasks.end());
    }
  } rates;
  run_to_end(toy.program, {}, &rates);
  CHECK(rates.at == std::vector<SimTime>{seconds(0), seconds(9), seconds(11)});
  REQUIRE(rates.running[0].size() == 2);
  CHECK(rates.running[0][0].stream == toy.up);
  CHECK(rates.running[0][0].speed == doctest::Approx(8.0 / 9));
  CHECK(rates.running[0][0].limit == toy.hbm);
  REQUIRE(rates.running[1].size() == 1);
  CHECK(rates.running[1][0].speed == 1);
  CHECK_FALSE(rates.running[1][0].limit.has_value());
  CHECK(rates.running[2].empty());
}

}  // namespace
}  // namespace spillway::engine
