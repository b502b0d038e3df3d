// Each picosecond that the main stream is blocked has one cause.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::milliseconds;
using testing::seconds;
using testing::Toy;

/// "queued 2: 3000, full speed: 1500": the shares of all waits, in milliseconds.
std::string shares(const EngineResult& result) {
  constexpr const char* kNames[] = {"queued", "latency", "contended", "full speed"};
  std::string text;
  for (const StallShare& share : result.stalls) {
    if (!text.empty()) text += ", ";
    text += kNames[static_cast<std::size_t>(share.cause)];
    if (share.behind) text += " " + std::to_string(share.behind->index);
    if (share.resource) text += " " + std::to_string(share.resource->index);
    text += ": " + std::to_string(share.time.value() / milliseconds(1).value());
  }
  return text;
}

TEST_CASE("stalls by cause") {
  struct Row {
    std::string name;
    void (*build)(Toy&);
    std::string shares;
  };
  const Row rows[] = {
      {"no stall",
       [](Toy& toy) {
         const SlotId slot = toy.start(toy.reload(4), toy.up);
         toy.run(toy.kernel(seconds(2)));
         toy.wait(slot);
       },
       ""},
      {"alone at full speed", [](Toy& toy) { toy.wait(toy.start(toy.reload(12), toy.up)); },
       "full speed: 3000"},
      {"first its latency, then its work",
       [](Toy& toy) {
         toy.wait(toy.start(add_task(toy.program, {.latency = seconds(2), .duration = seconds(1)}),
                            toy.up));
       },
       "latency: 2000, full speed: 1000"},
      {"part of the latency is hidden",
       [](Toy& toy) {
         const SlotId slot = toy.start(
             add_task(toy.program, {.latency = seconds(2), .duration = seconds(1)}), toy.up);
         toy.run(toy.kernel(milliseconds(1500)));
         toy.wait(slot);
       },
       "latency: 500, full speed: 1000"},
      {"behind two others, each by its step",
       [](Toy& toy) {
         toy.start(toy.reload(4), toy.up);
         toy.start(toy.reload(8), toy.up);
         toy.wait(toy.start(toy.reload(12), toy.up));
       },
       "queued 0: 1000, queued 1: 2000, full speed: 3000"},
      {"the link both ways (resource 3) holds it down until the other way is done",
       [](Toy& toy) {
         toy.start(toy.offload(6), toy.down);
         toy.wait(toy.start(toy.reload(12), toy.up));
       },
       "contended 3: 2000, full speed: 1500"},
      {"the HBM (resource 0) does: three fifths of the copy in 4.5 s, behind it the rest",
       [](Toy& toy) {
         toy.start(toy.kernel(seconds(4), 128), toy.down);
         toy.wait(toy.start(toy.reload(20), toy.up));
       },
       "contended 0: 4500, full speed: 1000"},
      {"two waits, each with its own account",
       [](Toy& toy) {
         toy.wait(toy.start(toy.reload(4), toy.up));
         toy.wait(toy.start(toy.reload(8), toy.up));
       },
       "full speed: 1000, full speed: 2000"},
      {"a loop adds up: the second copy queues behind the first in each iteration",
       [](Toy& toy) {
         const SlotId first = add_slot(toy.program), second = add_slot(toy.program);
         add_loop(toy.program, 100, [&] {
           add_start(toy.program, toy.reload(4), toy.up, first);
           add_start(toy.program, toy.reload(8), toy.up, second);
           toy.wait(second);
         });
       },
       "queued 1: 100000, full speed: 200000"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Toy toy;
    row.build(toy);
    CHECK(shares(run_to_end(toy.program)) == row.shares);
    CHECK(shares(run_to_end(toy.program, {.extend_loops = false})) == row.shares);
  }
}

TEST_CASE("the shares of one wait can be asked for") {
  Toy toy;
  const StepId first = toy.wait(toy.start(toy.reload(4), toy.up));
  toy.start(toy.reload(4), toy.up);
  const StepId second = toy.wait(toy.start(toy.reload(8), toy.up));
  const EngineResult result = run_to_end(toy.program);
  CHECK(result.stalls_at(first).size() == 1);
  REQUIRE(result.stalls_at(second).size() == 2);
  CHECK(result.stalls_at(second)[0].cause == StallCause::kQueued);
  CHECK(result.stalls_at(second)[0].behind == StepId(2));
  CHECK(result.stalls_at(second)[1].time == seconds(2));
  CHECK(result.stalls_at(StepId(0)).empty());
}

}  // namespace
}  // namespace spillway::engine
