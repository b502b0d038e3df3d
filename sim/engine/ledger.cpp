#include "sim/engine/ledger.h"

#include <utility>

namespace spillway::engine {
namespace {

template <typename Number>
void extend(Number& now, Number then, std::int64_t times) {
  now += (now - then) * times;
}

void extend_stats(StepStats& now, const StepStats& then, std::int64_t times) {
  extend(now.count, then.count, times);
  extend(now.busy, then.busy, times);
  extend(now.contended, then.contended, times);
  extend(now.queued, then.queued, times);
  extend(now.stalled, then.stalled, times);
}

}  // namespace

void Ledger::charge(StepId wait, StallCause cause, std::uint32_t culprit, SimTime time) {
  std::uint32_t* link = &first_share_[wait];
  while (*link != kNoShare) {
    Share& share = shares_[*link];
    if (share.cause == cause && share.culprit == culprit) {
      share.time += time;
      return;
    }
    link = &share.next;
  }
  *link = static_cast<std::uint32_t>(shares_.size());
  shares_.push_back({.cause = cause, .culprit = culprit, .next = kNoShare, .time = time});
}

void Ledger::use_began(std::span<const Load> loads, SimTime now) {
  for (const Load& load : loads) {
    Meter& meter = meters_[load.resource];
    if (meter.users++ == 0) meter.used_since = now;
  }
}

void Ledger::use_ended(std::span<const Load> loads, SimTime now) {
  for (const Load& load : loads) {
    Meter& meter = meters_[load.resource];
    if (--meter.users == 0) meter.totals.busy += now - meter.used_since;
  }
}

void Ledger::limits_changed(std::span<const Contender> running, SimTime now) {
  for (Meter& meter : meters_) {
    if (meter.limiting) meter.totals.contended += now - meter.limiting_since;
    meter.limiting = false;
  }
  for (const Contender& contender : running) {
    if (!contender.limit) continue;
    meters_[*contender.limit].limiting = true;
    meters_[*contender.limit].limiting_since = now;
  }
}

/// Brings the totals of the resources up to `now`.
void Ledger::settle(SimTime now) {
  for (Meter& meter : meters_) {
    if (meter.users > 0) meter.totals.busy += now - meter.used_since;
    if (meter.limiting) meter.totals.contended += now - meter.limiting_since;
    meter.used_since = meter.limiting_since = now;
  }
}

void Ledger::mark(LedgerMark& mark, StepId first, StepId end, SimTime now) {
  settle(now);
  mark.first = first;
  mark.steps.clear();
  mark.shares.clear();
  mark.resources.clear();
  mark.share_count = shares_.size();
  for (StepId id = first; id < end; id = StepId(id.index + 1)) {
    mark.steps.push_back(steps_[id]);
    for (std::uint32_t i = first_share_[id]; i != kNoShare; i = shares_[i].next)
      mark.shares.push_back(shares_[i].time);
  }
  for (const Meter& meter : meters_) mark.resources.push_back(meter.totals);
}

void Ledger::repeat(const LedgerMark& mark, std::int64_t times, SimTime now, SimTime by) {
  settle(now);
  StepId id = mark.first;
  auto share_then = mark.shares.begin();
  for (const StepStats& then : mark.steps) {
    extend_stats(steps_[id], then, times);
    for (std::uint32_t i = first_share_[id]; i != kNoShare; i = shares_[i].next)
      extend(shares_[i].time, i < mark.share_count ? *share_then++ : SimTime(0), times);
    id = StepId(id.index + 1);
  }
  auto resource_then = mark.resources.begin();
  for (Meter& meter : meters_) {
    const ResourceStats& then = *resource_then++;
    extend(meter.totals.busy, then.busy, times);
    extend(meter.totals.contended, then.contended, times);
    meter.used_since += by;
    meter.limiting_since += by;
  }
}

void Ledger::append_shares(StepId wait, EngineResult& result) const {
  for (std::uint32_t i = first_share_[wait]; i != kNoShare; i = shares_[i].next) {
    const Share& share = shares_[i];
    StallShare out{.wait = wait, .cause = share.cause, .time = share.time};
    if (share.cause == StallCause::kQueued) out.behind = StepId(share.culprit);
    if (share.cause == StallCause::kContended) out.resource = ResourceId(share.culprit);
    result.stalls.push_back(out);
  }
}

void Ledger::close(const EngineProgram& program, const TaskTable& tasks, EngineResult& result) && {
  result.streams = IdVector<StreamId, StreamStats>(program.stream_count);
  result.resources = IdVector<ResourceId, ResourceStats>(program.resources.size());
  for (const ResourceId id : ids(meters_)) result.resources[id] = meters_[id].totals;

  const auto add_tasks = [&](StepId id, TaskId task, StreamId stream) {
    StepStats& stats = steps_[id];
    const TaskCost& cost = tasks[task];
    stats.alone = (cost.latency + cost.alone) * stats.count;
    result.streams[stream].tasks += stats.count;
    result.streams[stream].busy += stats.busy;
    result.streams[stream].latency += cost.latency * stats.count;
    const Task& demanding = program.tasks[task];
    for (std::uint32_t i = demanding.first_demand; i < demanding.end_demand; ++i) {
      const Demand& demand = program.demands[i];
      result.resources[demand.resource].moved += demand.amount * stats.count;
    }
  };
  for (const StepId id : ids(program.steps)) {
    const Step& step = program.steps[id];
    if (const auto* run = std::get_if<RunStep>(&step)) add_tasks(id, run->task, kMainStream);
    if (const auto* start = std::get_if<StartStep>(&step))
      add_tasks(id, start->task, start->stream);
    if (std::holds_alternative<WaitStep>(step)) append_shares(id, result);
  }
  result.steps = std::move(steps_);
}

}  // namespace spillway::engine
