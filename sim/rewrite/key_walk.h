// Goes through a computation in its order and finds the keys of its values. Only for
// value_keys.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "model/program/loop_scalar.h"
#include "sim/rewrite/key_maker.h"

namespace spillway {

/// Columns of a product, which are a product with a matrix of their own.
struct Piece {
  std::int64_t columns = 0;  ///< of the whole product
  std::int64_t start = 0, limit = 0;
  ValueKey key;
};

struct KeyForms {
  std::map<ValueKey, std::vector<Piece>> pieces;  ///< of products with several matrices at once
  std::map<ValueKey, ValueKey> spread;            ///< the scalar that an array is full of
  std::set<ValueKey> counts;                      ///< arrays 0, 1, 2, …
};

using Keys = std::vector<ValueKey>;  ///< of the nodes of one instruction's shape

class KeyWalk {
 public:
  /// Without a loop scalars count as any other value.
  KeyWalk(const Program& program, std::optional<InstructionId> loop, KeyForms& forms)
      : program_(program), loop_(loop), forms_(forms) {
    if (!loop) return;
    counter_ = find_counter(program, *loop);
    trips_ = known_trip_count(program[loop->computation], loop->instruction).value_or(2);
  }

  /// Keys of all instructions of a computation whose parameters have these.
  std::vector<Keys> walk(const CallFrame& frame, const std::vector<Keys>& parameters);
  /// The key of what `writer` writes into its operand number `stack`; empty where it is no update.
  std::optional<ValueKey> update_key(const CallFrame& frame, InstructionIndex writer,
                                     std::uint32_t stack, const std::vector<Keys>& known);

  /// The key of a value of a computation whose keys are `known`.
  static ValueKey key_of(Operand value, const std::vector<Keys>& known) {
    return known[value.instruction.index][value.node];
  }

  /// Keys of an operand and what lies below it in its tuple.
  static Keys below(const Computation& computation, Operand operand,
                    const std::vector<Keys>& known) {
    const auto from = known[operand.instruction.index].begin() + operand.node;
    return {from, from + computation.shape_of(operand).node_count()};
  }

  /// A key for each node of a shape, from what all of them have in common.
  static Keys derived(const KeyMaker& maker, Shape shape) {
    Keys keys;
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
      KeyMaker one = maker;
      one.add(std::uint64_t{node});
      keys.push_back(one.key());
    }
    return keys;
  }

 private:
  Keys keys_of(const CallFrame& frame, InstructionIndex i, const std::vector<Keys>& parameters,
               const std::vector<Keys>& known);
  template <typename Skip>
  void add_what_it_does(const Computation& computation, InstructionIndex i, const Skip& skip,
                        KeyMaker& maker);
  KeyMaker start_of(const Computation& computation, InstructionIndex i, Shape shape);
  ValueKey elementwise_key(const Computation& computation, InstructionIndex i,
                           std::int64_t elements, Keys read);
  Keys combined_keys(const Computation& computation, InstructionIndex i,
                     const std::vector<Keys>& known);
  Keys called_keys(const CallFrame& frame, InstructionIndex i, const std::vector<Keys>& known);
  std::optional<ValueKey> counted(const CallFrame& frame, InstructionIndex i, Shape shape);
  std::optional<ValueKey> product_key(const Computation& computation, InstructionIndex i,
                                      const std::vector<Keys>& known);
  std::optional<ValueKey> piece_key(const Computation& computation, InstructionIndex i,
                                    const std::vector<Keys>& known) const;
  std::optional<ValueKey> count_key(const Computation& computation, InstructionIndex i,
                                    const std::vector<Keys>& known);
  ValueKey spread_key(Shape shape, ValueKey scalar);
  std::optional<ValueKey> spread_result(const Computation& computation, InstructionIndex i,
                                        const std::vector<Keys>& known);
  ValueKey content_key(ComputationId id);

  const Program& program_;
  const std::optional<InstructionId> loop_;
  std::optional<LoopCounter> counter_;  ///< of the loop
  std::int64_t trips_ = 0;
  std::map<ComputationId, ValueKey> contents_;
  KeyForms& forms_;
};

}  // namespace spillway
