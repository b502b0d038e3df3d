#include "sim/engine/sharing.h"

#include <algorithm>

namespace spillway::engine {
namespace {

constexpr int kLevelBits = 64;
constexpr Wide kFullLevel = Wide{1}
                            << kLevelBits;  // weight × level at which a task is at full speed
constexpr Wide kAll = Wide{1} << (2 * kFractionBits);

Wide weighed(const Load& load, std::int32_t weight) {
  return wide(load.use.value()) * wide(weight);
}

}  // namespace

Sharing::Sharing(const IdVector<ResourceId, Resource>& resources) : meters_(resources.size()) {
  for (const ResourceId id : ids(resources)) meters_[id].two_sided = resources[id].two_sided;
}

void Sharing::add(std::span<const Load> loads) {
  for (const Load& load : loads) {
    Meter& meter = meters_[load.resource];
    overloaded_ -= overloaded(meter);
    meter.asked += wide(load.use.value());
    ++meter.users[static_cast<std::size_t>(load.side)];
    overloaded_ += overloaded(meter);
  }
}

void Sharing::remove(std::span<const Load> loads) {
  for (const Load& load : loads) {
    Meter& meter = meters_[load.resource];
    overloaded_ -= overloaded(meter);
    meter.asked -= wide(load.use.value());
    --meter.users[static_cast<std::size_t>(load.side)];
    overloaded_ += overloaded(meter);
  }
}

void Sharing::divide(std::span<Contender> running) {
  open_contenders(running);
  while (!open_.empty()) {
    const Wide level = next_level();
    std::erase_if(open_, [&](Contender* contender) { return fix(*contender, level); });
  }
}

/// Everyone at full speed, but for those who touch an overloaded resource. The others never run
/// out: slowing someone down only leaves them more.
void Sharing::open_contenders(std::span<Contender> running) {
  scarce_.clear();
  open_.clear();
  for (const ResourceId id : ids(meters_)) {
    if (!overloaded(meters_[id])) continue;
    scarce_.push_back(id);
    meters_[id].room = kAll;
    meters_[id].open = 0;
  }
  for (Contender& contender : running) {
    contender.speed = kWhole;
    contender.limit.reset();
    bool open = false;
    for (const Load& load : contender.loads) {
      Meter& meter = meters_[load.resource];
      if (!overloaded(meter)) continue;
      meter.open += weighed(load, contender.weight);
      open = true;
    }
    if (open) open_.push_back(&contender);
  }
}

/// The lowest level at which a resource runs out or a task reaches full speed.
Wide Sharing::next_level() {
  std::int32_t heaviest = 1;
  for (const Contender* contender : open_) heaviest = std::max(heaviest, contender->weight);
  Wide lowest = heaviest == 1 ? kFullLevel : (kFullLevel + wide(heaviest - 1)) / wide(heaviest);
  for (const ResourceId id : scarce_) {
    Meter& meter = meters_[id];
    if (meter.open == 0) continue;
    meter.level = (meter.room << (kLevelBits - kFractionBits)) / meter.open;
    lowest = std::min(lowest, meter.level);
  }
  return lowest;
}

bool Sharing::fix(Contender& contender, Wide level) {
  const Wide reached = wide(contender.weight) * level;
  if (reached < kFullLevel) {
    const auto limit = std::ranges::find_if(contender.loads, [&](const Load& load) {
      return overloaded(meters_[load.resource]) && meters_[load.resource].level == level;
    });
    if (limit == contender.loads.end()) return false;
    contender.limit = limit->resource;
    contender.speed = Fraction(static_cast<std::int64_t>(reached >> (kLevelBits - kFractionBits)));
  }
  close(contender);
  return true;
}

/// Takes what a fixed task uses out of what is left for the others. `level` of a resource stays as
/// it was found for this round.
void Sharing::close(const Contender& contender) {
  for (const Load& load : contender.loads) {
    Meter& meter = meters_[load.resource];
    if (!overloaded(meter)) continue;
    meter.open -= weighed(load, contender.weight);
    meter.room -= wide(load.use.value()) * wide(contender.speed.value());
  }
}

}  // namespace spillway::engine
