// What holds for every program, on a thousand small random ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/task_table.h"
#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/reference.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway::engine {
namespace {

using testing::Dice;
using testing::milliseconds;
using testing::random_program;
using testing::reference_run;
using testing::seconds;
using testing::Toy;
using testing::unrolled;

constexpr std::uint64_t kPrograms = 1000;

std::int64_t scale_of(std::uint64_t seed) {
  constexpr std::int64_t kScales[] = {1, 1000, 1'000'000'000};
  return kScales[seed % 3];
}

/// When everything would be over if tasks never slowed each other down.
SimTime critical_path(const EngineProgram& program) {
  const TaskTable tasks(program);
  IdVector<StreamId, SimTime> free(program.stream_count);
  IdVector<SlotId, std::vector<SimTime>> finished(program.slot_count);
  SimTime& main = free[kMainStream];
  for (const Step& step : program.steps) {
    if (const auto* run = std::get_if<RunStep>(&step)) {
      main += tasks[run->task].latency + tasks[run->task].alone;
    } else if (const auto* start = std::get_if<StartStep>(&step)) {
      free[start->stream] = std::max(free[start->stream], main) + tasks[start->task].latency +
                            tasks[start->task].alone;
      finished[start->slot].push_back(free[start->stream]);
    } else if (const auto* wait = std::get_if<WaitStep>(&step)) {
      const auto& instances = finished[wait->slot];
      main = std::max(main, instances[instances.size() - 1 - wait->back]);
    }
  }
  return *std::max_element(free.begin(), free.end());
}

TEST_CASE("makespan lies between the critical path and the serial sum") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program = random_program(seed, {.scale = scale_of(seed)});
    const EngineResult result = run_to_end(program, {.extend_loops = false});
    SimTime serial;
    for (const StepStats& step : result.steps) serial += step.alone;
    CHECK(result.makespan >= critical_path(unrolled(program)));
    // Rounding may cost each running task half a picosecond of work at each event.
    const std::int64_t rounding =
        result.effort.events * static_cast<std::int64_t>(program.stream_count);
    CHECK(result.makespan <= serial + SimTime(rounding));
  }
}

TEST_CASE("the accounts add up") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program =
        random_program(seed, {.scale = scale_of(seed), .two_sided = seed % 2 == 0});
    const EngineResult result = run_to_end(program);
    SimTime main_busy, stalled, charged;
    for (const StepId id : ids(program.steps)) {
      const StepStats& stats = result.steps[id];
      const Step& step = program.steps[id];
      if (std::holds_alternative<RunStep>(step)) main_busy += stats.busy;
      stalled += stats.stalled;
      if (!std::holds_alternative<LoopStep>(step)) CHECK(stats.busy >= stats.alone);
      CHECK(stats.contended <= stats.busy);
      SimTime of_this;
      for (const StallShare& share : result.stalls_at(id)) of_this += share.time;
      CHECK(of_this == stats.stalled);
    }
    for (const StallShare& share : result.stalls) charged += share.time;
    CHECK(charged == stalled);
    CHECK(result.main_end == main_busy + stalled);
    CHECK(result.streams[kMainStream].busy == main_busy);
    CHECK(result.main_end <= result.makespan);
    for (const StreamStats& stream : result.streams) CHECK(stream.busy <= result.makespan);
    for (const ResourceStats& resource : result.resources) {
      CHECK(resource.busy <= result.makespan);
      CHECK(resource.contended <= resource.busy);
    }
  }
}

/// Integrates what the reported rates use: another way to the units moved, up to rounding.
class UseIntegral : public Listener {
 public:
  explicit UseIntegral(const EngineProgram& program)
      : moved(program.resources.size()),
        program_(program),
        tasks_(program),
        rates_(program.resources.size()) {}

  IdVector<ResourceId, double> moved;
  double largest_use = 0;  ///< of a resource's capacity, at any time

  void on_rates_changed(SimTime at, std::span<const RunningTask> running) override {
    IdVector<ResourceId, double> use(rates_.size());
    for (const ResourceId id : ids(moved)) {
      moved[id] += rates_[id] * static_cast<double>((at - since_).value());
      rates_[id] = 0;
    }
    for (const RunningTask& task : running) {
      const Task& demanding = program_.tasks[task.task];
      for (std::uint32_t i = demanding.first_demand; i < demanding.end_demand; ++i) {
        const Demand& demand = program_.demands[i];
        rates_[demand.resource] += static_cast<double>(demand.amount) * task.speed /
                                   static_cast<double>(tasks_[task.task].alone.value());
      }
      for (const Load& load : tasks_.loads(task.task)) {
        use[load.resource] += ratio(load.use, kWhole) * task.speed;
        largest_use = std::max(largest_use, use[load.resource]);
      }
    }
    since_ = at;
  }

 private:
  const EngineProgram& program_;
  TaskTable tasks_;
  IdVector<ResourceId, double> rates_;  // units per picosecond
  SimTime since_;
};

TEST_CASE("what is moved is what was demanded, and never faster than the resource allows") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program = random_program(seed, {.scale = 1'000'000'000});
    UseIntegral integral(program);
    const EngineResult result = run_to_end(program, {.extend_loops = false}, &integral);
    IdVector<ResourceId, std::int64_t> demanded(program.resources.size());
    const EngineProgram flat = unrolled(program);
    for (const Step& step : flat.steps) {
      const auto* run_step = std::get_if<RunStep>(&step);
      const auto* start = std::get_if<StartStep>(&step);
      if (!run_step && !start) continue;
      const Task& task = program.tasks[run_step ? run_step->task : start->task];
      for (std::uint32_t i = task.first_demand; i < task.end_demand; ++i)
        demanded[program.demands[i].resource] += program.demands[i].amount;
    }
    for (const ResourceId id : ids(program.resources)) {
      const auto moved = static_cast<double>(result.resources[id].moved);
      CHECK(result.resources[id].moved == demanded[id]);
      CHECK(integral.moved[id] == doctest::Approx(moved).epsilon(1e-6));
    }
    CHECK(integral.largest_use <= 1 + 1e-9);
  }
}

/// Some programs amplify a picosecond from iteration to iteration, so that two sound engines part
/// in the end (docs/engine.md#extension). Without loops there is no time for that.
TEST_CASE("a slow and obvious engine finds the same") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program = random_program(
        seed, {.scale = 1'000'000'000, .most_trips = 4, .deepest = 1, .two_sided = seed % 2 == 0});
    const EngineResult result = run_to_end(program, {.extend_loops = false});
    const double slow = reference_run(unrolled(program)).makespan;
    const auto fast = static_cast<double>(result.makespan.value());
    CHECK(std::abs(fast - slow) <= 100 * static_cast<double>(result.effort.events));
  }
}

TEST_CASE("same input, same output") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    const EngineProgram program = random_program(seed);
    const EngineResult once = run_to_end(program), again = run_to_end(program);
    CHECK(once.makespan == again.makespan);
    CHECK(std::ranges::equal(once.steps, again.steps));
    CHECK(once.stalls == again.stalls);
    CHECK(once.effort.events == again.effort.events);
  }
}

TEST_CASE("the order of the resources does not matter") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program =
        random_program(seed, {.scale = scale_of(seed), .two_sided = seed % 2 == 0});
    const std::size_t n = program.resources.size();
    std::vector<std::size_t> to(n);  // the new id of each resource
    for (std::size_t i = 0; i < n; ++i) to[i] = i;
    Dice dice(seed);
    for (std::size_t i = n; i > 1; --i)
      std::swap(to[i - 1],
                to[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(i) - 1))]);
    EngineProgram permuted = program;
    for (std::size_t i = 0; i < n; ++i)
      permuted.resources[ResourceId(to[i])] = program.resources[ResourceId(i)];
    for (Demand& demand : permuted.demands) demand.resource = ResourceId(to[demand.resource.index]);

    EngineResult a = run_to_end(program);
    const EngineResult b = run_to_end(permuted);
    for (StallShare& share : a.stalls)
      if (share.resource) share.resource = ResourceId(to[share.resource->index]);
    CHECK(a.makespan == b.makespan);
    CHECK(std::ranges::equal(a.steps, b.steps));
    CHECK(a.stalls == b.stalls);
    for (std::size_t i = 0; i < n; ++i)
      CHECK(a.resources[ResourceId(i)] == b.resources[ResourceId(to[i])]);
  }
}

/// A theorem where no resource is used on two streams: then every task runs at full speed, and all
/// moments are sums and maxima of durations, none of which grows.
TEST_CASE("a faster resource is never slower where streams share nothing") {
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    CAPTURE(seed);
    const EngineProgram program =
        random_program(seed, {.scale = scale_of(seed), .private_resources = true});
    Dice dice(seed);
    EngineProgram faster = program;
    for (Resource& resource : faster.resources)
      if (dice.chance(50)) resource.capacity += dice.roll(1, resource.capacity);
    const EngineResult a = run_to_end(program), b = run_to_end(faster);
    CHECK(b.makespan <= a.makespan);
    CHECK(b.main_end <= a.main_end);
    for (const ResourceStats& resource : a.resources) CHECK(resource.contended == SimTime(0));
  }
}

/// And not a theorem elsewhere. The copy is needed late. A slow link spreads it thinly over both
/// kernels; a fast one squeezes it into the one that needs the HBM, which everyone waits for.
///
///   link   memory-bound kernel           compute-bound kernel
///   8 B/s  2 s / 0.8 = 2.5 s             4 s: the rest of the copy runs in its shadow
///   16     2 s / (2/3) = 3 s             4 s
TEST_CASE("a faster link can be slower where it takes from what others need") {
  for (const std::int64_t link : {8, 16}) {
    CAPTURE(link);
    Toy toy;
    toy.program.resources[toy.h2d].capacity = link;
    toy.program.resources[toy.both].capacity = link;
    const SlotId slot = toy.start(toy.reload(32), toy.up);
    toy.run(toy.kernel(seconds(2), 64));
    toy.run(toy.kernel(seconds(4)));
    toy.wait(slot);
    CHECK(run_to_end(toy.program).makespan == (link == 8 ? milliseconds(6500) : seconds(7)));
  }
}

}  // namespace
}  // namespace spillway::engine
