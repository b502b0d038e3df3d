// Values: what instructions produce, one a (instruction, shape node), and where each one appears.
//
// A tuple passes its elements through, a bitcast its operand, a done what its start produced; none
// of these makes a new array. A loop makes one value for each carried element that its body
// replaces (a phi) and none for those it passes through.
#pragma once

#include <optional>
#include <vector>

#include "model/memory/flat_schedule.h"
#include "model/program/program.h"

namespace spillway {

using ValueId = Id<struct ValueTag>;

/// An element of an instruction's result.
struct Position {
  InstructionId instruction;
  ShapeNodeIndex node = 0;
};

struct Value {
  Position defined_at;
  bool is_phi = false;  ///< made by a loop (or conditional) out of several others
  Shape shape;          ///< of the element alone
};

class ValueTable {
 public:
  const IdVector<ValueId, Value>& values() const { return values_; }
  const Value& operator[](ValueId id) const { return values_[id]; }

  /// The value at an element of an instruction that control flow reaches.
  ValueId at(InstructionId id, ShapeNodeIndex node) const {
    const auto& base = base_[id.computation];
    check(id.instruction.index < base.size(), "a value is asked for where control flow never goes");
    const std::size_t position = std::size_t{base[id.instruction.index]} + node;
    check(position < value_at_.size(), "a value is asked for outside its shape");
    return value_at_[position];
  }
  ValueId at(ComputationId id, Operand operand) const {
    return at({id, operand.instruction}, operand.node);
  }

 private:
  friend class ValueTableBuilder;

  IdVector<ValueId, Value> values_;
  IdVector<ComputationId, std::vector<std::uint32_t>>
      base_;  ///< first position of each instruction
  std::vector<ValueId> value_at_;
};

/// Values of every computation that control flow reaches. Value numbers follow XLA's: computations
/// and instructions in post order, phis last; they break ties between equal buffers.
ValueTable make_values(const Program& program, const FlatSchedule& schedule);

}  // namespace spillway
