// How an instruction touches an operand: the whole, a slice it reads, or a slice it updates in
// place. A scanned layer reads its weights and its saved activations as slices of stacked arrays.
#pragma once

#include <optional>

#include "model/program/program.h"

namespace spillway {

enum class AccessKind {
  kWhole,        ///< all of it, or in a way that cannot be told
  kSliceRead,    ///< only slices
  kSliceUpdate,  ///< writes a slice into it, in place, and reads at most slices of it
};

struct SliceAccess {
  AccessKind kind = AccessKind::kWhole;
  /// What is read, or for kSliceUpdate what is written: the largest where a fusion takes several;
  /// the whole operand for kWhole.
  Shape slice;
  /// For kSliceUpdate, where that update comes from: an operand of the instruction; empty when a
  /// fusion computes the update itself.
  std::optional<Operand> update;
};

/// How `id` touches its operand `operand_number`. Looks inside fusions, not inside loops or async
/// starts: their bodies are asked instead.
SliceAccess slice_access(const Program& program, InstructionId id, std::uint32_t operand_number);

}  // namespace spillway
