#include "tests/model/memory/heap_trace.h"

#include <doctest/doctest.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <tuple>

#include "model/base/read_file.h"
#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_values.h"
#include "model/memory/heap_replay.h"

namespace spillway::testing {
namespace {

// The readers of Spillway skip the traces, so that the messages are taken apart here:
//   HloProto            3: buffer assignment
//   BufferAssignment    4: traces
//   HeapSimulatorTrace  1: events
//   Event               1: kind, 2: buffer, 5: buffer it shares with
constexpr std::uint32_t kAssignment = 3, kTraces = 4, kEvents = 1;

/// Calls `number(field, value)` and `bytes(field, text)` for each field of a message.
template <typename OnNumber, typename OnBytes>
void for_each_field(const std::string& message, OnNumber number, OnBytes bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  while (const std::uint32_t tag = in.ReadTag()) {
    const bool is_bytes = (tag & 7) == 2;
    REQUIRE((is_bytes || (tag & 7) == 0));
    std::uint64_t value = 0;
    REQUIRE(in.ReadVarint64(&value));
    if (!is_bytes) {
      number(tag >> 3, static_cast<std::int64_t>(value));
      continue;
    }
    std::string text;
    REQUIRE(in.ReadString(&text, static_cast<int>(value)));
    bytes(tag >> 3, text);
  }
}

constexpr auto kNoNumber = [](std::uint32_t, std::int64_t) {};

std::string event_text(std::int64_t kind, const std::string& value, const std::string& shared) {
  REQUIRE(kind <= 2);
  if (kind == 2) return "share " + value + " with " + shared;
  return (kind == 0 ? "alloc " : "free ") + value;
}

/// Names of the proto's buffers by id: "while.3{2}", "x". Those without bytes are left out: they
/// are traced, but need no place.
std::map<std::int64_t, std::string> buffer_names(const pb::HloFile& file) {
  std::map<std::int64_t, std::string> instructions;
  for (const auto& computation : file.module().computations())
    for (const auto& in : computation.instructions()) instructions[in.id()] = in.name();
  std::map<std::int64_t, std::string> names;
  for (const auto& buffer : file.buffer_assignment().buffers()) {
    if (buffer.size() == 0) continue;
    const auto& at = buffer.defined_at();
    std::string& name = names[buffer.id()];
    name = at.instruction_id() ? instructions[at.instruction_id()] : at.instruction_name();
    if (at.path().empty()) continue;
    name += '{';
    hlo::append_numbers(name, at.path());
    name += '}';
  }
  return names;
}

struct Event {
  std::int64_t kind = 0, buffer = 0, shared = 0;
};

Event read_event(const std::string& message) {
  Event event;
  const auto number = [&](std::uint32_t field, std::int64_t value) {
    if (field == 1) event.kind = value;
    if (field == 2) event.buffer = value;
    if (field == 5) event.shared = value;
  };
  for_each_field(message, number, [](std::uint32_t, const std::string&) {});
  return event;
}

/// The memory space each buffer lies in. A trace names an allocation too, but before July 2026 by
/// its number from before temporaries were combined.
std::map<std::int64_t, MemorySpace> buffer_spaces(const pb::HloFile& file) {
  std::map<std::int64_t, MemorySpace> spaces;
  for (const auto& allocation : file.buffer_assignment().allocations())
    for (const auto& assigned : allocation.assigned())
      spaces[assigned.buffer()] = static_cast<MemorySpace>(allocation.color());
  return spaces;
}

}  // namespace

HeapEvents read_heap_events(const std::string& path) {
  const auto content = read_file(path);
  if (!content.ok()) FAIL(to_text(content.error()));
  pb::HloFile file;
  REQUIRE(file.ParseFromString(**content));
  const auto names = buffer_names(file);
  const auto spaces = buffer_spaces(file);
  HeapEvents events;
  const auto read_trace = [&](const std::string& trace) {
    for_each_field(trace, kNoNumber, [&](std::uint32_t field, const std::string& text) {
      if (field != kEvents) return;
      const Event event = read_event(text);
      if (!names.contains(event.buffer)) return;
      events[spaces.at(event.buffer)].push_back(event_text(
          event.kind, names.at(event.buffer), event.kind == 2 ? names.at(event.shared) : ""));
    });
  };
  for_each_field(**content, kNoNumber, [&](std::uint32_t field, const std::string& assignment) {
    if (field != kAssignment) return;
    for_each_field(assignment, kNoNumber, [&](std::uint32_t inner, const std::string& trace) {
      if (inner == kTraces) read_trace(trace);
    });
  });
  return events;
}

/// The same of our replay. Its clock counts events, so that the uses of its items are the trace.
HeapEvents replayed_events(const LoadedDump& dump) {
  const MemoryAssignment& memory = dump.memory;
  const auto name = [&](ValueId id) {
    const Position& at = memory.values[id].defined_at;
    const Instruction& in = dump.program[at.instruction];
    return std::string(in.name) + (at.node ? path_to_string(in.shape, at.node) : "");
  };
  std::map<MemorySpace, std::vector<BufferId>> heaps;
  for (const BufferId id : ids(memory.liveness.buffers)) {
    const std::vector<ValueId>& values = memory.liveness.buffers[id].values;
    const bool table =
        std::ranges::any_of(values, [&](ValueId v) { return memory.values[v].shape.is_tuple(); });
    const auto cell = memory.cell_of[values[0]];
    if (!table && cell && memory.allocations[memory.cells[*cell].allocation].is_temp())
      heaps[memory.liveness.buffers[id].space].push_back(id);
  }
  const InPlacePairs in_place(dump.program);
  OperandSharing sharing(dump.program, in_place);
  HeapEvents traces;
  for (const auto& [space, buffers] : heaps) {
    const HeapPlan plan =
        replay_heap(dump.program, memory.values, memory.liveness, buffers, sharing);
    std::vector<ValueId> by_start;
    for (const BufferId id : buffers)
      for (const ValueId value : memory.liveness.buffers[id].values)
        if (plan.item_of[value]) by_start.push_back(value);
    std::ranges::sort(by_start, {}, [&](ValueId v) {
      return std::tuple(memory.liveness.ranges[v].start, memory.liveness.ranges[v].end, v);
    });
    std::vector<std::vector<ValueId>> in_item(plan.items.size());
    auto& events = traces[space];
    events.resize(2 * by_start.size());
    for (const ValueId value : by_start) {
      auto& before = in_item[*plan.item_of[value]];
      const HeapItem::Use& use = plan.items[*plan.item_of[value]].uses[before.size()];
      // A buffer of several values shares with its first, one of a single value with an operand.
      const std::vector<ValueId>& buffer =
          memory.liveness.buffers[memory.liveness.buffer_of[value]].values;
      std::string shared;
      if (!before.empty()) shared = name(buffer.size() > 1 ? before.front() : before.back());
      events[static_cast<std::size_t>(use.start)] =
          event_text(before.empty() ? 0 : 2, name(value), shared);
      events[static_cast<std::size_t>(use.end)] = event_text(1, name(value), "");
      before.push_back(value);
    }
  }
  return traces;
}

}  // namespace spillway::testing
