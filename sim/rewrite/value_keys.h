// Which values of a loop body, or of the entry, are the same: a key for each, equal where two are
// computed alike from the same things, however XLA has fused, renamed or wrapped the computation.
//
// What a key sees through: renamings (bitcast, reshape), copies that keep the layout or change the
// memory space, fusions, asynchronous wrappers, that a collective is combined with others, that
// several products with one matrix are made as one and sliced, and where a constant or a count is
// spread over an array. A scalar that hangs on the loop's counter alone counts by what it comes to,
// so that two ways of writing "the layer of this iteration" agree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// 128 bits, so that two different values are never taken for one.
struct ValueKey {
  std::uint64_t high = 0, low = 0;
  friend auto operator<=>(const ValueKey&, const ValueKey&) = default;
};

/// What keys stand for, where that matters for the keys of others (value_keys.cpp).
struct KeyForms;

/// What is not a lookup (`within`, `update_key`) learns forms for all copies of an object: those
/// two are for one thread at a time.
class ValueKeys {
 public:
  /// Keys of the body of `loop`. The program must outlive them.
  ValueKeys(const Program& program, InstructionId loop);
  /// Keys of the entry.
  explicit ValueKeys(const Program& program);

  /// The key of a value of the body, or of the entry.
  ValueKey operator[](Operand value) const { return keys_[value.instruction.index][value.node]; }

  /// The key of a value within a fusion of the body.
  ValueKey within(InstructionIndex fusion, Operand value) const;

  /// The key of what a slice update writes into operand number `stack` of `writer`, which stands in
  /// the body or in what a start there wraps; empty where it is no such update. Of a loop's
  /// keys only.
  std::optional<ValueKey> update_key(InstructionId writer, std::uint32_t stack) const;

 private:
  const Program& program_;
  std::optional<InstructionId> loop_;
  std::shared_ptr<KeyForms> forms_;
  std::vector<std::vector<ValueKey>> keys_;  ///< by instruction and node of its shape
};

}  // namespace spillway
