// What must run before an instruction though it makes nothing that the instruction reads.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/program/computation.h"

namespace spillway {

/// What control-predecessors={%a, %b} says. Names only, looked up once a computation has some.
class ControlPredecessors {
 public:
  /// The computation must outlive it.
  explicit ControlPredecessors(const Computation& computation) : computation_(computation) {}

  std::vector<InstructionIndex> of(InstructionIndex i);

 private:
  const Computation& computation_;
  std::unordered_map<std::string_view, InstructionIndex> by_name_;
};

}  // namespace spillway
