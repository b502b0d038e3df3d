#include "tests/sim/engine/random_program.h"

#include <algorithm>
#include <vector>

namespace spillway::engine::testing {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomProgramOptions& options)
      : dice_(seed), options_(options) {}

  EngineProgram make() {
    for (std::int64_t n = dice_.roll(1, 5); n > 0; --n) {
      const std::int64_t capacity = dice_.roll(1, 40) * 100'000'000'000;
      options_.two_sided&& dice_.chance(50) ? add_two_sided(program_, capacity)
                                            : add_resource(program_, capacity);
    }
    for (std::int64_t n = dice_.roll(1, 4); n > 0; --n) add_stream(program_);
    for (std::int64_t n = dice_.roll(1, 4); n > 0; --n) {
      add_slot(program_);
      started_.push_back(0);
      streams_.push_back(StreamId(static_cast<std::size_t>(
          dice_.roll(1, static_cast<std::int64_t>(program_.stream_count) - 1))));
    }
    budget_ = dice_.roll(3, 40);
    trips_left_ = 150;
    body(0);
    return std::move(program_);
  }

 private:
  void body(int depth) {
    for (std::int64_t n = dice_.roll(1, 12); n > 0 && budget_ > 0; --n) {
      --budget_;
      const std::int64_t kind = dice_.roll(1, 10);
      if (kind <= 3) {
        add_run(program_, task(kMainStream));
      } else if (kind <= 6) {
        start();
      } else if (kind <= 8) {
        wait();
      } else if (depth < options_.deepest) {
        loop(depth);
      }
    }
  }

  void loop(int depth) {
    const std::int64_t outer = trips_left_;
    const std::int64_t trips =
        std::min(outer, dice_.chance(5) ? std::int64_t{1} : dice_.roll(1, options_.most_trips));
    trips_left_ = std::max<std::int64_t>(1, outer / trips);
    if (dice_.chance(40)) start();  // software pipelining: a start in front, more inside
    const std::vector<std::int64_t> before = started_;
    add_loop(program_, trips, [&] { body(depth + 1); });
    for (std::size_t i = 0; i < started_.size(); ++i)
      started_[i] += (started_[i] - before[i]) * (trips - 1);
    trips_left_ = outer;
    if (dice_.chance(30)) wait();
  }

  std::size_t any_slot() {
    return static_cast<std::size_t>(
        dice_.roll(0, static_cast<std::int64_t>(program_.slot_count) - 1));
  }

  void start() {
    const std::size_t slot = any_slot();
    if (!options_.private_resources && dice_.chance(10))  // instances of one slot on two streams
      streams_[slot] = StreamId(static_cast<std::size_t>(
          dice_.roll(1, static_cast<std::int64_t>(program_.stream_count) - 1)));
    add_start(program_, task(streams_[slot]), streams_[slot], SlotId(slot));
    ++started_[slot];
  }

  /// Only for instances that were started further up, so that the program has no fault.
  void wait() {
    const std::size_t slot = any_slot();
    if (started_[slot] == 0) return;
    const std::int64_t furthest = std::min<std::int64_t>(started_[slot], dice_.chance(20) ? 60 : 4);
    const std::int64_t back = dice_.chance(60) ? 0 : dice_.roll(0, furthest - 1);
    add_wait(program_, SlotId(slot), static_cast<std::uint32_t>(back));
  }

  TaskId task(StreamId stream) {
    Task task;
    if (dice_.chance(30)) task.latency = SimTime(dice_.roll(0, 9) * options_.scale);
    if (dice_.chance(60)) task.duration = SimTime(dice_.roll(0, 29) * options_.scale);
    if (dice_.chance(20)) task.weight = static_cast<std::int32_t>(dice_.roll(1, 9));
    std::vector<Demand> demands;
    for (const ResourceId resource : ids(program_.resources)) {
      const bool mine = resource.index % program_.stream_count == stream.index;
      if ((mine || !options_.private_resources) && dice_.chance(50))
        demands.push_back({resource, dice_.roll(0, 29) * options_.scale, side()});
    }
    return add_task(program_, task, demands);
  }

  Side side() {
    if (!options_.two_sided) return Side::kBoth;
    constexpr Side kSides[] = {Side::kOne, Side::kOther, Side::kOne, Side::kOther, Side::kBoth};
    return kSides[dice_.roll(0, 4)];
  }

  Dice dice_;
  RandomProgramOptions options_;
  EngineProgram program_;
  std::vector<std::int64_t> started_;  // by slot, in the first iteration of the loops around
  std::vector<StreamId> streams_;      // by slot
  std::int64_t budget_ = 0;
  std::int64_t trips_left_ = 0;
};

void unroll(const EngineProgram& program, StepId first, StepId end, EngineProgram& out) {
  for (StepId id = first; id < end; id = StepId(id.index + 1)) {
    const auto* loop = std::get_if<LoopStep>(&program.steps[id]);
    if (!loop) {
      out.steps.push(program.steps[id]);
      continue;
    }
    for (std::int64_t i = 0; i < loop->trips; ++i)
      unroll(program, StepId(id.index + 1), loop->end, out);
    id = StepId(loop->end.index - 1);
  }
}

}  // namespace

EngineProgram random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return Generator(seed, options).make();
}

EngineProgram unrolled(const EngineProgram& program) {
  EngineProgram out = program;
  out.steps = {};
  unroll(program, StepId(0), StepId(program.steps.size()), out);
  return out;
}

}  // namespace spillway::engine::testing
