// What XLA's backend noted on an instruction, searched as text: the fields differ by opcode and
// version, and nobody needs more of them than whether one is there.
#pragma once

#include <string_view>

#include "model/program/computation.h"

namespace spillway {

inline bool config_contains(const Computation& computation, InstructionIndex i,
                            std::string_view text) {
  const auto config = computation.attribute(i, "backend_config");
  return config && config->find(text) != std::string_view::npos;
}

/// Of a start: XLA's scheduler found nothing to run beside it, so that it runs where it starts.
inline bool is_synchronous(const Computation& computation, InstructionIndex i) {
  return config_contains(computation, i, "\"is_sync\":true");
}

}  // namespace spillway
