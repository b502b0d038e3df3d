// Handles of asynchronous tasks. A slot has instances, one for each start; it remembers as many of
// the latest as its waits can ask for. Those in front of the first count as finished, because a
// loop that was extended has started more than were ever made here: what is in flight is the same,
// and all the rest has finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/engine/program.h"

namespace spillway::engine {

/// Names one instance of a slot; instances are numbered by their starts.
struct Handle {
  SlotId slot;
  std::int64_t number = 0;

  friend bool operator==(const Handle&, const Handle&) = default;
};

struct Instance {
  Handle handle;
  StreamId stream;
  bool finished = true;
};

class Slots {
 public:
  explicit Slots(const EngineProgram& program) : slots_(program.slot_count) {
    for (const Step& step : program.steps)
      if (const auto* wait = std::get_if<WaitStep>(&step))
        slots_[wait->slot].kept = std::max(slots_[wait->slot].kept, wait->back + 1);
    std::size_t total = 0;
    for (Slot& slot : slots_) {
      slot.started = slot.kept;
      slot.first = total;
      total += slot.kept;
    }
    instances_.resize(total);
  }

  /// Makes a new instance.
  Handle start(SlotId id, StreamId stream) {
    Slot& slot = slots_[id];
    const Handle handle{id, slot.started++};
    if (slot.kept > 0) at(slot, handle.number) = {handle, stream, false};
    return handle;
  }

  void finish(const Handle& handle) {
    const Slot& slot = slots_[handle.slot];
    if (age(handle) < slot.kept) at(slot, handle.number).finished = true;
  }

  /// The instance that a wait asks for. It exists: the program is without a fault.
  const Instance& awaited(const WaitStep& wait) {
    const Slot& slot = slots_[wait.slot];
    return at(slot, slot.started - 1 - std::int64_t{wait.back});
  }

  /// How many instances came after this one; all that no wait can ask for are of the same age.
  std::int64_t age(const Handle& handle) const {
    const Slot& slot = slots_[handle.slot];
    return std::min(slot.started - 1 - handle.number, std::int64_t{slot.kept});
  }

 private:
  struct Slot {
    std::int64_t started = 0;  // the number of the next instance; numbers begin at `kept`
    std::size_t first = 0;     // instances [first, first + kept), by number modulo kept
    std::uint32_t kept = 0;
  };

  Instance& at(const Slot& slot, std::int64_t number) {
    return instances_[slot.first + static_cast<std::size_t>(number % std::int64_t{slot.kept})];
  }

  IdVector<SlotId, Slot> slots_;
  std::vector<Instance> instances_;
};

}  // namespace spillway::engine
