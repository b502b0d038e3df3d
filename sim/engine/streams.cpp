#include "sim/engine/streams.h"

#include <algorithm>

namespace spillway::engine {

Streams::Streams(const EngineProgram& program, const TaskTable& tasks, Slots& slots, Ledger& ledger,
                 Listener* listener)
    : tasks_(tasks),
      slots_(slots),
      ledger_(ledger),
      listener_(listener),
      lanes_(program.stream_count),
      sharing_(program.resources) {}

void Streams::enqueue(StreamId stream, const Job& job, SimTime now) {
  ++in_flight_;
  if (idle(stream)) {
    begin(stream, job, now);
  } else {
    lanes_[stream].queue.push(job);
  }
}

void Streams::begin(StreamId stream, const Job& job, SimTime now) {
  Lane& lane = lanes_[stream];
  active_.push_back(stream);
  lane.job = job;
  lane.started = now;
  ledger_.step(job.step).queued += now - job.ready;
  if (listener_)
    listener_->on_task_started(
        {.step = job.step, .task = job.task, .stream = stream, .ready = job.ready, .at = now});
  const SimTime latency = tasks_[job.task].latency;
  if (latency > SimTime(0)) {
    lane.phase = Phase::kLatency;
    lane.ends = now + latency;
  } else {
    begin_work(lane, now);
  }
}

void Streams::begin_work(Lane& lane, SimTime now) {
  lane.phase = Phase::kWork;
  lane.remaining = tasks_[lane.job.task].alone;
  lane.divided = now;
  lane.limit.reset();
  if (lane.remaining == SimTime(0)) {  // nothing to divide: it ends at once
    lane.speed = kWhole;
    lane.ends = now;
    return;
  }
  lane.speed = Fraction(0);
  lane.ends = kNever;
  const std::span<const Load> loads = tasks_.loads(lane.job.task);
  sharing_.add(loads);
  ledger_.use_began(loads, now);
  speeds_stale_ = true;
}

void Streams::finish(StreamId stream, SimTime now) {
  Lane& lane = lanes_[stream];
  const Job job = lane.job;
  StepStats& stats = ledger_.step(job.step);
  ++stats.count;
  stats.busy += now - lane.started;
  if (lane.speed < kWhole) stats.contended += now - lane.divided;
  if (const TaskCost& cost = tasks_[job.task]; cost.alone > SimTime(0)) {
    const std::span<const Load> loads = tasks_.loads(job.task);
    sharing_.remove(loads);
    ledger_.use_ended(loads, now);
    speeds_stale_ = true;
  }
  if (job.handle) slots_.finish(*job.handle);
  if (listener_)
    listener_->on_task_finished(
        {.step = job.step, .task = job.task, .stream = stream, .started = lane.started, .at = now});
  --in_flight_;
  lane.phase = Phase::kIdle;
  active_.erase(std::ranges::find(active_, stream));
  if (!lane.queue.empty()) begin(stream, lane.queue.pop(), now);
}

void Streams::end_due(SimTime now) {
  for (std::size_t i = 0; i < active_.size();) {
    Lane& lane = lanes_[active_[i]];
    if (lane.ends != now) {
      ++i;
    } else if (lane.phase == Phase::kLatency) {
      begin_work(lane, now);  // looked at again: work of no length ends at once
    } else {
      finish(active_[i], now);  // takes itself out of active_
    }
  }
}

SimTime Streams::next_event() const {
  SimTime next = kNever;
  for (const StreamId stream : active_) next = std::min(next, lanes_[stream].ends);
  return next;
}

void Streams::update_speeds(SimTime now) {
  if (!speeds_stale_) return;
  speeds_stale_ = false;
  const bool contended = sharing_.contended();
  if (contended) {
    contenders_.clear();
    for (const StreamId stream : active_) {
      const Lane& lane = lanes_[stream];
      if (lane.phase != Phase::kWork) continue;
      const TaskId task = lane.job.task;
      contenders_.push_back({.loads = tasks_.loads(task), .weight = tasks_[task].weight});
    }
    sharing_.divide(contenders_);
  }
  if (contended || were_contended_)
    ledger_.limits_changed(
        contended ? std::span<const Contender>(contenders_) : std::span<const Contender>(), now);
  auto contender = contenders_.begin();
  for (const StreamId stream : active_) {
    Lane& lane = lanes_[stream];
    if (lane.phase != Phase::kWork) continue;
    if (!contended) {
      set_speed(lane, kWhole, {}, now);
    } else {
      set_speed(lane, contender->speed, contender->limit, now);
      ++contender;
    }
  }
  were_contended_ = contended;
  if (listener_) report_speeds(now);
}

/// The remaining work is rounded only where the speed changes: the moment at which a task ends does
/// not depend on how often others were looked at.
void Streams::set_speed(Lane& lane, Fraction speed, std::optional<ResourceId> limit, SimTime now) {
  lane.limit = limit;
  if (speed == lane.speed) return;
  const SimTime elapsed = now - lane.divided;
  if (lane.speed > Fraction(0)) {
    lane.remaining = std::max(SimTime(0), lane.remaining - work_done(elapsed, lane.speed));
    if (lane.speed < kWhole) ledger_.step(lane.job.step).contended += elapsed;
  }
  lane.divided = now;
  lane.speed = speed;
  lane.ends = now + time_needed(lane.remaining, speed);
}

void Streams::report_speeds(SimTime now) {
  running_.clear();
  for (const StreamId stream : active_) {
    const Lane& lane = lanes_[stream];
    if (lane.phase != Phase::kWork) continue;
    running_.push_back({.step = lane.job.step,
                        .task = lane.job.task,
                        .stream = stream,
                        .speed = ratio(lane.speed, kWhole),
                        .limit = lane.limit});
  }
  listener_->on_rates_changed(now, running_);
}

void Streams::charge(StepId wait, const Instance& awaited, SimTime time) const {
  const Lane& lane = lanes_[awaited.stream];
  if (lane.job.handle != awaited.handle) {
    ledger_.charge(wait, StallCause::kQueued, lane.job.step.index, time);
  } else if (lane.phase == Phase::kLatency) {
    ledger_.charge(wait, StallCause::kLatency, 0, time);
  } else if (lane.limit) {
    ledger_.charge(wait, StallCause::kContended, lane.limit->index, time);
  } else {
    ledger_.charge(wait, StallCause::kFullSpeed, 0, time);
  }
}

void Streams::append_job(const Job& job, SimTime now, std::vector<std::int64_t>& words) const {
  words.push_back(std::int64_t{job.step.index});
  words.push_back(slots_.age(*job.handle));
  words.push_back((now - job.ready).value());
}

void Streams::append_state(SimTime now, std::vector<std::int64_t>& words) const {
  words.push_back(speeds_stale_);
  words.push_back(were_contended_);
  for (const StreamId stream : active_) {
    const Lane& lane = lanes_[stream];
    check(lane.job.handle.has_value(), "the main stream runs a task at the head of a loop");
    words.push_back(std::int64_t{stream.index});
    words.push_back(static_cast<std::int64_t>(lane.phase));
    append_job(lane.job, now, words);
    words.push_back((now - lane.started).value());
    words.push_back(lane.ends == kNever ? kNever.value() : (lane.ends - now).value());
    if (lane.phase == Phase::kWork) {
      words.push_back(lane.remaining.value());
      words.push_back((now - lane.divided).value());
      words.push_back(lane.speed.value());
      words.push_back(lane.limit ? std::int64_t{lane.limit->index} : -1);
    }
    words.push_back(static_cast<std::int64_t>(lane.queue.size()));
    for (const Job& job : lane.queue) append_job(job, now, words);
  }
}

void Streams::shift(SimTime by) {
  for (const StreamId stream : active_) {
    Lane& lane = lanes_[stream];
    lane.job.ready += by;
    lane.started += by;
    lane.divided += by;
    if (lane.ends != kNever) lane.ends += by;
    for (Job& job : lane.queue) job.ready += by;
  }
}

}  // namespace spillway::engine
