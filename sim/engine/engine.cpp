#include "sim/engine/engine.h"

#include <algorithm>
#include <utility>

#include "sim/engine/cycle_finder.h"
#include "sim/engine/ledger.h"
#include "sim/engine/slots.h"
#include "sim/engine/streams.h"
#include "sim/engine/task_table.h"

namespace spillway::engine {
namespace {

/// A loop that the main stream is in. While it searches, it compares the state at the head of each
/// iteration with earlier ones. Once a state repeats, what happened in one period is added as often
/// as it fits. The last iteration is always at hand for that; a longer period is recorded first.
///
///   iteration     0     1     2     3     4     5                    trips
///   state         a     b     c     d     c
///                                         |-- recorded --| repeated … |
struct OpenLoop {
  enum class Mode : std::uint8_t { kSearching, kRecording, kSimulating };

  StepId loop;
  StepId end;
  std::int64_t trips = 0;
  std::int64_t iteration = 0;
  SimTime entered;
  Mode mode = Mode::kSimulating;
  std::int64_t period = 0;               // iterations, once found
  std::optional<std::int64_t> marked{};  // the iteration at whose head the ledger was marked
  SimTime marked_at{};
};

/// The memory that an open loop needs to extend itself; kept for the next loop of the same depth.
struct LoopMemory {
  CycleFinder cycles;
  LedgerMark mark;
  std::vector<std::int64_t> state;  // at the mark
};

class Simulation {
 public:
  Simulation(const EngineProgram& program, const EngineOptions& options, Listener* listener)
      : program_(program),
        options_(options),
        listener_(listener),
        tasks_(program),
        slots_(program),
        ledger_(program),
        streams_(program, tasks_, slots_, ledger_, listener) {}

  /// Nothing when it takes too long.
  std::optional<EngineResult> run();

 private:
  void end_due();
  void move_to(SimTime next);
  void run_main();
  void leave_or_repeat_loops();
  void enter(StepId id, const LoopStep& step);
  bool pass(StepId id, const WaitStep& step);
  void at_head(OpenLoop& loop, LoopMemory& memory);
  void search_period(OpenLoop& loop, LoopMemory& memory);
  void mark(OpenLoop& loop, LoopMemory& memory);
  void repeat_period(OpenLoop& loop, LoopMemory& memory);

  const EngineProgram& program_;
  const EngineOptions& options_;
  Listener* listener_;
  TaskTable tasks_;
  Slots slots_;
  Ledger ledger_;
  Streams streams_;

  SimTime now_;
  StepId at_;             // the next step of the main stream
  bool blocked_ = false;  // at a wait, since blocked_since_
  SimTime blocked_since_;
  std::optional<SimTime> main_end_;
  std::vector<OpenLoop> loops_;
  std::vector<LoopMemory> memories_;  // by depth
  std::vector<std::int64_t> state_;   // scratch
  Effort effort_;
  bool too_long_ = false;  // it would go on beyond kLongestRun
};

std::optional<EngineResult> Simulation::run() {
  run_main();
  end_due();
  while (!too_long_) {
    streams_.update_speeds(now_);
    const SimTime next = streams_.next_event();
    if (next == kNever) break;
    too_long_ = next > kLongestRun;
    if (too_long_) break;
    move_to(next);
    end_due();
  }
  if (too_long_) return std::nullopt;
  check(main_end_.has_value(), "the main stream waits for what never ends");
  EngineResult result;
  result.makespan = now_;
  result.main_end = *main_end_;
  result.effort = effort_;
  std::move(ledger_).close(program_, tasks_, result);
  return result;
}

/// Everything that happens at this moment. What starts may take no time and end at once.
void Simulation::end_due() {
  while (!too_long_ && streams_.next_event() == now_) {
    streams_.end_due(now_);
    run_main();
  }
}

/// Between two events nothing changes, so the time in between has one cause.
void Simulation::move_to(SimTime next) {
  ++effort_.events;
  if (blocked_ && next > now_) {
    const auto& wait = std::get<WaitStep>(program_.steps[at_]);
    streams_.charge(at_, slots_.awaited(wait), next - now_);
  }
  now_ = next;
}

/// Takes the steps of the main stream until one takes time.
void Simulation::run_main() {
  while (!too_long_ && streams_.idle(kMainStream)) {
    leave_or_repeat_loops();
    if (at_.index == program_.steps.size()) {
      if (!main_end_) main_end_ = now_;
      return;
    }
    const StepId id = at_;
    const Step& step = program_.steps[id];
    if (const auto* loop = std::get_if<LoopStep>(&step)) {
      enter(id, *loop);
      continue;
    }
    const auto* const wait = std::get_if<WaitStep>(&step);
    if (wait != nullptr && !pass(id, *wait)) return;
    if (listener_ != nullptr) listener_->on_step_taken(id, now_);
    if (const auto* run = std::get_if<RunStep>(&step)) {
      streams_.enqueue(kMainStream, {.step = id, .task = run->task, .ready = now_}, now_);
    } else if (const auto* start = std::get_if<StartStep>(&step)) {
      const Handle handle = slots_.start(start->slot, start->stream);
      streams_.enqueue(start->stream,
                       {.step = id, .task = start->task, .ready = now_, .handle = handle}, now_);
    }
    at_ = StepId(id.index + 1);
  }
}

/// Whether the main stream may go on behind this wait.
bool Simulation::pass(StepId id, const WaitStep& step) {
  if (!slots_.awaited(step).finished) {
    if (!blocked_) blocked_since_ = now_;
    blocked_ = true;
    return false;
  }
  StepStats& stats = ledger_.step(id);
  ++stats.count;
  if (blocked_ && now_ > blocked_since_) {
    stats.stalled += now_ - blocked_since_;
    if (listener_)
      listener_->on_waited({.step = id, .slot = step.slot, .from = blocked_since_, .to = now_});
  }
  blocked_ = false;
  return true;
}

void Simulation::enter(StepId id, const LoopStep& step) {
  if (step.trips == 0) {
    at_ = step.end;
    return;
  }
  using Mode = OpenLoop::Mode;
  loops_.push_back({.loop = id,
                    .end = step.end,
                    .trips = step.trips,
                    .entered = now_,
                    .mode = options_.extend_loops ? Mode::kSearching : Mode::kSimulating});
  if (memories_.size() < loops_.size()) memories_.emplace_back();
  LoopMemory& memory = memories_[loops_.size() - 1];
  memory.cycles.clear();
  at_head(loops_.back(), memory);
  at_ = StepId(id.index + 1);
}

/// At the end of a body: goes back to its head, or on behind it. Several loops may end together.
void Simulation::leave_or_repeat_loops() {
  while (!loops_.empty() && at_ == loops_.back().end) {
    OpenLoop& loop = loops_.back();
    ++loop.iteration;
    ++ledger_.step(loop.loop).count;
    ++effort_.iterations;
    if (loop.iteration < loop.trips) at_head(loop, memories_[loops_.size() - 1]);
    if (loop.iteration < loop.trips) {
      at_ = StepId(loop.loop.index + 1);
      if (at_ != loop.end) return;
    } else {
      ledger_.step(loop.loop).busy += now_ - loop.entered;
      loops_.pop_back();
    }
  }
}

/// In front of an iteration. May move on to a later one, or behind the last.
void Simulation::at_head(OpenLoop& loop, LoopMemory& memory) {
  using Mode = OpenLoop::Mode;
  if (loop.mode == Mode::kSearching) {
    search_period(loop, memory);
  } else if (loop.mode == Mode::kRecording && loop.iteration == *loop.marked + loop.period) {
    state_.clear();
    streams_.append_state(now_, state_);
    check(state_ == memory.state, "a loop in a state it was in before went on differently");
    repeat_period(loop, memory);
  }
  if (listener_ && loop.iteration < loop.trips) listener_->on_iteration_began(loop.loop, now_);
}

/// Looks only at states that are not larger than the body, so that searching costs no more than
/// simulating. A backlog that grows from iteration to iteration is no period anyway.
void Simulation::search_period(OpenLoop& loop, LoopMemory& memory) {
  constexpr std::size_t kSmall = 64;
  if (streams_.in_flight() > kSmall + (loop.end.index - loop.loop.index)) return;
  state_.clear();
  streams_.append_state(now_, state_);
  loop.period = memory.cycles.add(loop.iteration, state_).value_or(0);
  if (loop.period == 0) {
    mark(loop, memory);
  } else if (loop.period == 1 && loop.marked == loop.iteration - 1) {
    repeat_period(loop, memory);
  } else if (loop.trips - loop.iteration >= 2 * loop.period) {
    loop.mode = OpenLoop::Mode::kRecording;
    memory.state = state_;
    mark(loop, memory);
  } else {  // nothing would be left to extend
    loop.mode = OpenLoop::Mode::kSimulating;
  }
}

/// Only steps of this loop need a mark. A job that was started before the loop and is still there
/// has been ready for longer at each head, so no state with it repeats.
void Simulation::mark(OpenLoop& loop, LoopMemory& memory) {
  loop.marked = loop.iteration;
  loop.marked_at = now_;
  ledger_.mark(memory.mark, loop.loop, loop.end, now_);
}

/// Everything since the mark, which is one period, happens again as often as it fits.
void Simulation::repeat_period(OpenLoop& loop, LoopMemory& memory) {
  const std::int64_t times = (loop.trips - loop.iteration) / loop.period;
  const SimTime period = now_ - loop.marked_at;
  if (period.value() > 0 && times > (kLongestRun - now_).value() / period.value()) {
    too_long_ = true;
    return;
  }
  const SimTime by = period * times;

  ledger_.repeat(memory.mark, times, now_, by);
  streams_.shift(by);
  if (listener_)
    listener_->on_repeated({.loop = loop.loop,
                            .start = loop.marked_at,
                            .period = period,
                            .iterations = loop.period,
                            .times = times});
  now_ += by;
  loop.iteration += times * loop.period;
  effort_.repeated_iterations += times * loop.period;
  loop.mode = OpenLoop::Mode::kSimulating;
}

}  // namespace

std::span<const StallShare> EngineResult::stalls_at(StepId wait) const {
  return {std::ranges::lower_bound(stalls, wait, {}, &StallShare::wait),
          std::ranges::upper_bound(stalls, wait, {}, &StallShare::wait)};
}

Result<EngineResult> run(const EngineProgram& program, const EngineOptions& options,
                         Listener* listener) {
  const std::optional<ProgramFault> fault = find_fault(program);
  if (fault) check(false, fault->text);
  std::optional<EngineResult> result = Simulation(program, options, listener).run();
  if (!result) return Error{ErrorKind::kInput, "takes longer than 80 hours", {}, "", ""};
  return *std::move(result);
}

}  // namespace spillway::engine
