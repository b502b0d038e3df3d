// The order in which a program's instructions run, flattened: where a loop stands, first its
// condition, then its body, then the loop itself; where an async start stands, first what it wraps.
//
//   entry       a  while  b        body  p  x  root      condition  q  lt
//   position    0    6    7              3  4  5                    1  2
#pragma once

#include <optional>
#include <vector>

#include "model/base/result.h"
#include "model/program/program.h"

namespace spillway {

/// Order of execution of each computation. An empty order is the order of the text.
struct Schedule {
  IdVector<ComputationId, std::vector<InstructionIndex>> order;
};

/// The order of the text everywhere. Refused, with advice, for a module that is not scheduled.
Result<Schedule> text_schedule(const Program& program);

struct FlatSchedule {
  /// Half-open in `order`; a computation that no control flow reaches has start == end.
  struct Span {
    LogicalTime start, end;
  };

  std::vector<InstructionId> order;  ///< by position
  IdVector<ComputationId, std::vector<LogicalTime>>
      position;  ///< of each instruction; empty when not reached
  IdVector<ComputationId, Span> span;
  IdVector<ComputationId, std::optional<InstructionId>>
      caller;  ///< who runs it: a while, call, …, start
  /// For computations that an async start wraps, directly or further out: the positions of the
  /// start and of its done. The done is empty where it is in another computation.
  IdVector<ComputationId, std::optional<LogicalTime>> async_start, async_done;

  bool reaches(ComputationId id) const { return !position[id].empty(); }
  LogicalTime end() const { return LogicalTime(static_cast<std::int32_t>(order.size())); }
};

/// Flattens from the entry. A computation that several instructions call appears once, where it is
/// first reached.
FlatSchedule flatten(const Program& program, const Schedule& schedule);

/// The innermost while around a computation; a while does not surround its own instruction. Empty
/// where there is none.
std::optional<InstructionId> loop_around(const Program& program, const FlatSchedule& schedule,
                                         ComputationId id);

/// The done that ends what `start` began, following updates; empty when it is in another
/// computation (a copy that is still under way when a loop's iteration ends).
std::optional<InstructionIndex> find_done(const Computation& computation, InstructionIndex start);

}  // namespace spillway
