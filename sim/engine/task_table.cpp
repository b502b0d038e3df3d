#include "sim/engine/task_table.h"

#include <algorithm>
#include <bit>

namespace spillway::engine {
namespace {

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;

/// amount / capacity, rounded up.
SimTime time_alone(std::int64_t amount, std::int64_t capacity) {
  const Wide units = wide(amount) * kPicosecondsPerSecond + wide(capacity - 1);
  return SimTime(static_cast<std::int64_t>(units / wide(capacity)));
}

/// amount / (alone × capacity), rounded down. Where the divisor needs more than 63 bits, both sides
/// lose their low bits, the divisor rounding up, so the result never exceeds the true one; and the
/// division is one machine instruction.
Fraction use_alone(std::int64_t amount, SimTime alone, std::int64_t capacity) {
  const Wide used = wide(amount) * kPicosecondsPerSecond;
  const Wide available = wide(alone.value()) * wide(capacity);
  if (used == available) return kWhole;
  const auto high = static_cast<std::uint64_t>(available >> 63);
  const auto shift = std::bit_width(high);
  const Wide divisor = (available + ((Wide{1} << shift) - 1)) >> shift;
  return Fraction(static_cast<std::int64_t>(((used >> shift) << kFractionBits) / divisor));
}

/// How long a demand takes when nothing else runs.
SimTime time_of(const Demand& demand, const Resource& resource) {
  const SimTime time = time_alone(demand.amount, resource.capacity);
  const bool feels_it = !resource.two_sided || demand.side == Side::kBoth;
  return feels_it ? time : (time + SimTime(kFastestSide - 1)) / kFastestSide;
}

}  // namespace

TaskTable::TaskTable(const EngineProgram& program) {
  tasks_.reserve(program.tasks.size());
  loads_.reserve(program.demands.size());
  for (const Task& task : program.tasks) {
    const std::span<const Demand> demands(program.demands.data() + task.first_demand,
                                          program.demands.data() + task.end_demand);
    SimTime alone = task.duration;
    for (const Demand& demand : demands)
      alone = std::max(alone, time_of(demand, program.resources[demand.resource]));
    const auto first = static_cast<std::uint32_t>(loads_.size());
    for (const Demand& demand : demands) {
      if (demand.amount == 0) continue;
      const std::int64_t capacity = program.resources[demand.resource].capacity;
      const Fraction use = use_alone(demand.amount, alone, capacity);
      if (use > Fraction(0)) loads_.push_back({demand.resource, use, demand.side});
    }
    tasks_.push({.latency = task.latency,
                 .alone = alone,
                 .weight = task.weight,
                 .first_load = first,
                 .end_load = static_cast<std::uint32_t>(loads_.size())});
  }
}

}  // namespace spillway::engine
