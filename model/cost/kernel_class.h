// Which kind of kernel an instruction becomes, found by looking inside fusions. The class picks the
// factor by which the kernel stays behind its roofline (KernelCosts in model/hardware/profile.h).
#pragma once

#include <string_view>

#include "model/program/program.h"

namespace spillway {

enum class KernelClass : std::uint8_t {
  kFree,              ///< runs nothing: parameters, tuples, bitcasts, dones, loops themselves
  kGemm,              ///< anything with a matrix product inside
  kAttentionForward,  ///< cuDNN's fused attention
  kAttentionBackward,
  kElementwise,     ///< loops over elements: also gathers, scatters, fills, concatenations
  kRowReduce,       ///< over the dimension that is contiguous in memory, or over everything
  kColumnReduce,    ///< over other dimensions
  kTiledTranspose,  ///< XLA's transpose through shared memory: an input fusion without reduction
  kTranspose,       ///< any other fusion that transposes on the way
  kCopy,            ///< a whole array
  kSliceCopy,       ///< a slice into or out of a stacked array, nothing computed
  kSort,
  kCollective,
  kUnknown,  ///< a custom call of which nothing is known but its operands and results
};

/// "gemm", "attention forward", "row reduce", …
std::string_view name_of(KernelClass kernel);

struct KernelKind {
  KernelClass kernel = KernelClass::kFree;
  /// Issued as a memory copy: the copy engines do it, no SM takes part.
  bool is_memcpy = false;
  int launches = 1;  ///< a fusion that copies several arrays is one memory copy each
};

/// The class of one instruction. An async start has the class of what it wraps.
KernelKind kernel_kind(const Program& program, InstructionId id);

}  // namespace spillway
