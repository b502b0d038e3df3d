// The order that XLA's GPU compiler makes before it hides anything, and with latency hiding off the
// order that programs run in: by the best of three memory schedulers, then asynchronous starts
// early and dones late.
//
// Unlike the orders of memory_scheduler.h, which ask how little memory a program could need, this
// is what XLA does, however much that needs.
#pragma once

#include <array>

#include "model/memory/assignment.h"

namespace spillway {

/// XLA's memory schedulers, the first of equals first.
enum class DefaultScheduler : std::uint8_t { kList, kDepthFirst, kPostOrder };
std::string_view name_of(DefaultScheduler scheduler);

struct DefaultOrder {
  Schedule schedule;
  /// The same with get-tuple-elements: elements {x, node} of what makes the tuple.
  IdVector<ComputationId, std::vector<Operand>> places;
  DefaultScheduler scheduler = DefaultScheduler::kList;  ///< whose it is
  /// The most that is live at once in the order of each, by which XLA chooses.
  std::array<Bytes, 3> most_live;
};

/// XLA's DefaultMemoryScheduler with PostProcessSchedule. `given` is the program's memory in an
/// order that is right: a program that XLA has finished no longer shows everything that must come
/// before something else (values that others take the place of), and where an order here breaks
/// that, it is made again with what it broke.
DefaultOrder find_default_order(const Program& program, const Lifetimes& given);

/// The most that is live at once in an order, as XLA counts to choose: without gaps, the whole
/// program, host memory and constants left out. Its MinimumMemoryForModule.
Bytes most_live_in(const Program& program, const Lifetimes& given, const Schedule& schedule);

/// The order of one of the three, whichever needs least.
Schedule order_by(const Program& program, const Lifetimes& given, DefaultScheduler scheduler);

}  // namespace spillway
