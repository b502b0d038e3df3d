#include "sim/trace/chronicle.h"

#include <algorithm>

#include "sim/engine/task_table.h"

namespace spillway {

using engine::Demand;
using engine::StepId;
using engine::TaskId;

ChronicleWriter::ChronicleWriter(const engine::EngineProgram& program,
                                 const RateResources& resources, std::size_t most)
    : full_speed_(program.tasks.size()),
      next_iteration_(program.steps.size()),
      program_(program),
      most_(most) {
  const engine::TaskTable table(program);
  for (const TaskId id : ids(program.tasks)) {
    const Seconds alone = to_seconds(table[id].alone);
    if (alone == Seconds(0)) continue;
    for (std::uint32_t k = program.tasks[id].first_demand; k < program.tasks[id].end_demand; ++k) {
      const Demand& demand = program.demands[k];
      const BytesPerSecond rate(static_cast<double>(demand.amount) / alone.value());
      if (demand.resource == resources.device_to_host) full_speed_[id].device_to_host += rate;
      if (demand.resource == resources.host_to_device) full_speed_[id].host_to_device += rate;
      if (demand.resource == resources.hbm) full_speed_[id].hbm += rate;
    }
  }
}

void ChronicleWriter::on_task_finished(const engine::TaskFinished& finished) {
  chronicle_.happenings.push_back(
      {Happening::Kind::kFinished, finished.step, finished.started, finished.at});
}

void ChronicleWriter::on_waited(const engine::Waited& waited) {
  chronicle_.happenings.push_back({Happening::Kind::kWaited, waited.step, waited.from, waited.to});
}

void ChronicleWriter::on_step_taken(StepId step, SimTime at) {
  chronicle_.happenings.push_back({Happening::Kind::kTaken, step, at, at});
}

void ChronicleWriter::on_rates_changed(SimTime at, std::span<const engine::RunningTask> running) {
  Rates now;
  for (const engine::RunningTask& task : running) {
    const Rates& full = full_speed_[task.task];
    now.device_to_host += full.device_to_host * task.speed;
    now.host_to_device += full.host_to_device * task.speed;
    now.hbm += full.hbm * task.speed;
  }
  const auto number = static_cast<std::int64_t>(chronicle_.rates.size());
  chronicle_.rates.push_back(now);
  chronicle_.happenings.push_back({Happening::Kind::kRates, StepId(), at, at, number});
}

void ChronicleWriter::on_iteration_began(StepId loop, SimTime at) {
  std::int64_t& next = next_iteration_[loop];
  chronicle_.happenings.push_back({Happening::Kind::kIteration, loop, at, at, next});
  if (++next == std::get<engine::LoopStep>(program_.steps[loop]).trips) next = 0;
}

void ChronicleWriter::on_repeated(const engine::Repeated& repeated) {
  std::vector<Happening>& all = chronicle_.happenings;
  std::size_t first = all.size();
  for (std::int64_t left = repeated.iterations; left > 0;) {
    const Happening& earlier = all.at(--first);
    if (earlier.kind == Happening::Kind::kIteration && earlier.step == repeated.loop) --left;
  }
  const std::int64_t more = repeated.iterations * repeated.times;
  std::int64_t& next = next_iteration_[repeated.loop];
  next += more;
  if (next == std::get<engine::LoopStep>(program_.steps[repeated.loop]).trips) next = 0;

  const std::size_t end = all.size();
  const auto add_period = [&](std::int64_t i) {
    for (std::size_t k = first; k < end; ++k) {
      Happening again = all[k];
      again.from += repeated.period * i;
      again.at += repeated.period * i;
      if (again.kind == Happening::Kind::kIteration && again.step == repeated.loop)
        again.number += repeated.iterations * i;
      all.push_back(again);
    }
  };
  const std::size_t room = most_ - std::min(most_, end);
  const bool all_fit = static_cast<std::size_t>(repeated.times) <= room / (end - first);
  if (!all_fit && repeated.times > 1) {
    const SimTime from = repeated.start + repeated.period;
    const std::int64_t left_out = repeated.times - 1;
    all.push_back({Happening::Kind::kLeftOut, repeated.loop, from,
                   from + repeated.period * left_out, repeated.iterations * left_out});
    add_period(repeated.times);
    return;
  }
  for (std::int64_t i = 1; i <= repeated.times; ++i) add_period(i);
}

}  // namespace spillway
