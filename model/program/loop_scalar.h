// What a scalar integer of a program comes to at a moment of it: the index of a slice in the third
// iteration of a loop, say.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/program/program.h"

namespace spillway {

/// The counter that a loop carries, where XLA notes it: node `node` of the carry is init + i x step
/// in iteration i.
struct LoopCounter {
  ShapeNodeIndex node = 0;
  std::int64_t init = 0, step = 1;
};
std::optional<LoopCounter> find_counter(const Program& program, InstructionId loop);

/// An iteration of a loop.
struct LoopMoment {
  InstructionId loop;
  std::int64_t iteration = 0;
  std::optional<LoopCounter> counter{};  ///< of the loop, for those who have looked it up already
};

/// A computation that runs, and the instruction that called it there; or the iteration of which it
/// is the body.
struct CallFrame {
  ComputationId computation;
  std::optional<InstructionId> caller{};
  const CallFrame* outer = nullptr;
  std::optional<LoopMoment> loop{};
};

/// What a scalar may hang on: constants and the loop's counter alone; or also what loops carry from
/// one iteration to the next, as pipelined copies do.
enum class Follow { kCounter, kCarried };

/// The value of a scalar integer; empty where it hangs on anything else, or leaves its type.
std::optional<std::int64_t> scalar_value(const Program& program, const CallFrame& frame,
                                         Operand operand, Follow follow);

/// A whole number, and nothing else, in `text`.
std::optional<std::int64_t> to_integer(std::string_view text);
/// Empty where the result does not fit 64 bits.
std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b);

}  // namespace spillway
