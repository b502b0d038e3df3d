#include "sim/engine/slots.h"

#include <doctest/doctest.h>

namespace spillway::engine {
namespace {

TEST_CASE("a wait asks for instances by how far back they were started") {
  EngineProgram program;
  const StreamId stream = add_stream(program);
  const SlotId slot = add_slot(program), other = add_slot(program);
  add_wait(program, slot, 1);
  add_wait(program, slot);
  const WaitStep latest{slot, 0}, before{slot, 1};

  Slots slots(program);
  const Handle first = slots.start(slot, stream);
  CHECK(slots.age(first) == 0);
  CHECK_FALSE(slots.awaited(latest).finished);
  CHECK(slots.awaited(before).finished);  // none: counts as finished

  const Handle second = slots.start(slot, stream);
  CHECK(slots.age(first) == 1);
  CHECK(slots.awaited(latest).handle == second);
  CHECK(slots.awaited(before).handle == first);
  CHECK(slots.awaited(before).stream == stream);

  slots.finish(second);  // on another stream, before the first
  CHECK(slots.awaited(latest).finished);
  CHECK_FALSE(slots.awaited(before).finished);

  slots.start(slot, stream);
  slots.start(slot, stream);
  CHECK(slots.age(first) == slots.age(second));  // no wait can tell them apart
  slots.finish(first);                           // and none hears of it
  CHECK_FALSE(slots.awaited(before).finished);

  const Handle unheard = slots.start(other, stream);  // nobody waits for this slot
  slots.finish(unheard);
  CHECK(slots.age(unheard) == 0);
}

}  // namespace
}  // namespace spillway::engine
