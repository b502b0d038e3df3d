#include "sim/engine/program.h"

#include <doctest/doctest.h>

#include <string>

namespace spillway::engine {
namespace {

TEST_CASE("the builders write the tree down in pre-order") {
  EngineProgram program;
  const SlotId slot = add_slot(program);
  const StreamId side = add_stream(program);
  const TaskId task = add_task(program, {.duration = SimTime(1)});
  add_run(program, task);
  const StepId outer = add_loop(program, 3, [&] {
    add_start(program, task, side, slot);
    add_loop(program, 2, [&] { add_run(program, task); });
  });
  add_wait(program, slot);

  CHECK(side != kMainStream);
  REQUIRE(program.steps.size() == 6);
  CHECK(outer == StepId(1));
  CHECK(std::get<LoopStep>(program.steps[StepId(1)]).end == StepId(5));
  CHECK(std::get<LoopStep>(program.steps[StepId(3)]).end == StepId(5));
  CHECK(std::holds_alternative<WaitStep>(program.steps[StepId(5)]));
  CHECK_FALSE(find_fault(program).has_value());
}

/// A sound program for the rows below to spoil.
struct Parts {
  EngineProgram program;
  ResourceId link = add_resource(program, 4);
  StreamId side = add_stream(program);
  SlotId slot = add_slot(program);
  TaskId copy = add_task(program, {}, {{link, 8}});
};

TEST_CASE("a fault names the step or the task") {
  struct Row {
    std::string name;
    void (*spoil)(Parts&);
    std::string text;
  };
  const Row rows[] = {
      {"nothing", [](Parts&) {}, ""},
      {"no stream", [](Parts& p) { p.program.stream_count = 0; }, "there is no main stream"},
      {"capacity", [](Parts& p) { add_resource(p.program, 0); }, "resource 1 has no capacity"},
      {"latency", [](Parts& p) { add_task(p.program, {.latency = SimTime(-1)}); },
       "task 1 has a latency below zero or above 20 hours"},
      {"duration", [](Parts& p) { add_task(p.program, {.duration = kLongestTask + SimTime(1)}); },
       "task 1 has a duration below zero or above 20 hours"},
      {"weight", [](Parts& p) { add_task(p.program, {.weight = 0}); },
       "task 1 has a weight outside 1 to 32768"},
      {"amount",
       [](Parts& p) {
         add_task(p.program, {}, {{p.link, -1}});
       },
       "task 1 demands less than nothing"},
      {"twice",
       [](Parts& p) {
         add_task(p.program, {}, {{p.link, 1}, {p.link, 1}});
       },
       "task 1 demands a resource twice"},
      {"too much",
       [](Parts& p) {
         add_task(p.program, {}, {{p.link, 1'000'000'000}});
       },
       "task 1 demands what takes above 20 hours"},
      {"unknown resource",
       [](Parts& p) {
         add_task(p.program, {}, {{ResourceId(9), 1}});
       },
       "task 1 demands an unknown resource"},
      {"unknown task", [](Parts& p) { add_run(p.program, TaskId(9)); },
       "step 0 runs an unknown task"},
      {"start on the main stream",
       [](Parts& p) { add_start(p.program, p.copy, kMainStream, p.slot); },
       "step 0 starts a task on the main stream: run it there"},
      {"unknown stream", [](Parts& p) { add_start(p.program, p.copy, StreamId(9), p.slot); },
       "step 0 starts a task on an unknown stream"},
      {"unknown slot", [](Parts& p) { add_wait(p.program, SlotId(9)); },
       "step 0 waits for an unknown slot"},
      {"too far back", [](Parts& p) { add_wait(p.program, p.slot, kFurthestBack + 1); },
       "step 0 waits for an instance too far back"},
      {"trips", [](Parts& p) { add_loop(p.program, -1, [] {}); },
       "step 0 loops less than zero times"},
      {"not nested",
       [](Parts& p) {
         add_loop(p.program, 1, [&] { add_loop(p.program, 1, [] {}); });
         add_run(p.program, p.copy);
         std::get<LoopStep>(p.program.steps[StepId(1)]).end = StepId(3);
       },
       "step 1 loops over steps that are not inside its parent"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Parts parts;
    row.spoil(parts);
    const auto fault = find_fault(parts.program);
    CHECK((fault ? fault->text : "") == row.text);
  }
}

TEST_CASE("a wait needs an instance that was started before it") {
  constexpr const char* kFault = "waits for an instance of its slot that nothing has started";
  struct Row {
    std::string name;
    void (*build)(Parts&);
    bool sound;
  };
  const auto start = [](Parts& p) { add_start(p.program, p.copy, p.side, p.slot); };
  static const auto kStart = start;
  const Row rows[] = {
      {"never started", [](Parts& p) { add_wait(p.program, p.slot); }, false},
      {"started",
       [](Parts& p) {
         kStart(p);
         add_wait(p.program, p.slot);
       },
       true},
      {"started too late",
       [](Parts& p) {
         add_wait(p.program, p.slot);
         kStart(p);
       },
       false},
      {"one back, one start",
       [](Parts& p) {
         kStart(p);
         add_wait(p.program, p.slot, 1);
       },
       false},
      {"one back, two starts",
       [](Parts& p) {
         kStart(p);
         kStart(p);
         add_wait(p.program, p.slot, 1);
       },
       true},
      {"one back in the first iteration",
       [](Parts& p) {
         add_loop(p.program, 9, [&] {
           kStart(p);
           add_wait(p.program, p.slot, 1);
         });
       },
       false},
      {"one back, with a start in front of the loop",
       [](Parts& p) {
         kStart(p);
         add_loop(p.program, 9, [&] {
           kStart(p);
           add_wait(p.program, p.slot, 1);
         });
       },
       true},
      {"eight back, after nine iterations",
       [](Parts& p) {
         add_loop(p.program, 9, [&] { kStart(p); });
         add_wait(p.program, p.slot, 8);
       },
       true},
      {"nine back, after nine iterations",
       [](Parts& p) {
         add_loop(p.program, 9, [&] { kStart(p); });
         add_wait(p.program, p.slot, 9);
       },
       false},
      {"17 back, after three times six",
       [](Parts& p) {
         add_loop(p.program, 3, [&] { add_loop(p.program, 6, [&] { kStart(p); }); });
         add_wait(p.program, p.slot, 17);
       },
       true},
      {"18 back, after three times six",
       [](Parts& p) {
         add_loop(p.program, 3, [&] { add_loop(p.program, 6, [&] { kStart(p); }); });
         add_wait(p.program, p.slot, 18);
       },
       false},
      {"started in a loop that never runs",
       [](Parts& p) {
         add_loop(p.program, 0, [&] { kStart(p); });
         add_wait(p.program, p.slot);
       },
       false},
      {"waited for in a loop that never runs",
       [](Parts& p) { add_loop(p.program, 0, [&] { add_wait(p.program, p.slot); }); }, true},
      {"started ever so often",
       [](Parts& p) {
         const std::int64_t many = std::int64_t{1} << 40;
         add_loop(p.program, many, [&] { add_loop(p.program, many, [&] { kStart(p); }); });
         add_wait(p.program, p.slot, kFurthestBack);
       },
       true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Parts parts;
    row.build(parts);
    const auto fault = find_fault(parts.program);
    CHECK(fault.has_value() != row.sound);
    if (fault) CHECK(fault->text == "step " + std::to_string(fault->step->index) + " " + kFault);
  }
}

}  // namespace
}  // namespace spillway::engine
