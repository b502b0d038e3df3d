// What must run before an instruction though it makes nothing that the instruction reads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/program/computation.h"

namespace spillway {

/// The attribute that has them.
inline constexpr std::string_view kControlPredecessors = "control-predecessors";

/// What control-predecessors={%a, %b} says. Names only, looked up once a computation has some.
class ControlPredecessors {
 public:
  /// The computation must outlive it.
  explicit ControlPredecessors(const Computation& computation) : computation_(computation) {}

  std::vector<InstructionIndex> of(InstructionIndex i);

 private:
  void index_names();
  static std::size_t hash(std::string_view name);

  const Computation& computation_;
  /// Numbers of instructions, each behind the place that its name's hash says; a power of two of
  /// places, at least half of them without one.
  std::vector<std::uint32_t> by_name_;
};

}  // namespace spillway
