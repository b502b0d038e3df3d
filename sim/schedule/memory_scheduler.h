// Orders of execution made for memory alone: what they save is what the order a program has costs,
// to hide copies and collectives or by accident. XLA's three memory schedulers, and a fourth of
// ours.
//
// The least that any order needs is NP-hard to find, and this is not it: these are orders that the
// program could run in, found without search. What they need is an upper bound on the least.
#pragma once

#include <optional>
#include <string_view>

#include "model/memory/assignment.h"

namespace spillway {

enum class MemoryScheduler : std::uint8_t {
  kList,        ///< next, what frees most memory
  kDepthFirst,  ///< operands before their users, those first whose making fans out most
  kPostOrder,   ///< operands before their users, first operand first
  kRelaxed,     ///< not XLA's: the given order, without what hides copies (relaxed_order.h)
};
std::string_view name_of(MemoryScheduler scheduler);

/// The order of every computation that control flow reaches; async starts stand right before their
/// dones. `given` is the program's memory in an order that is right: whoever reads what is written
/// over in place does so first in this order too.
Schedule schedule_for_memory(const Program& program, const MemoryAssignment& given,
                             MemoryScheduler scheduler);

/// Programs of more instructions should not be asked about: it takes as long as all the rest.
inline constexpr std::size_t kMostReordered = 300'000;

struct MinimalOrder {
  /// Whose order it is; empty when it needs no less than the given one.
  std::optional<MemoryScheduler> scheduler;
  Bytes total_device;  ///< never more than that of the given order
};

/// Of the schedulers' orders the one in which least is live at once, by which XLA chooses too; or
/// the given order, if no less is live in that one or the allocator must provide no less for it.
MinimalOrder find_minimal_order(const Program& program, const MemoryAssignment& given);

}  // namespace spillway
