// Custom calls: which library kernel one is, and what that computes. cuBLAS and cuDNN are known by
// their targets; their dimensions come from backend_config and the shapes of the operands. Whatever
// else is called stays unknown, by name.
#pragma once

#include <string_view>

#include "model/cost/op_count.h"

namespace spillway {

enum class LibraryKernel {
  kNothing,  ///< names a buffer and runs nothing: AllocateBuffer
  kGemm,     ///< cuBLAS, cuBLASLt, block-scaled dots of cuDNN
  kConvolution,
  kAttentionForward,
  kAttentionBackward,
  kUnknown,
};

/// Holds for instructions with opcode custom-call.
LibraryKernel library_kernel(const Computation& computation, InstructionIndex i);

/// The target without quotes: "__cublas$lt$matmul".
std::string_view call_target(const Computation& computation, InstructionIndex i);

/// Matrix products: flops = 2 x elements of the result x contracted sizes.
/// Fused attention, for (q, k, v) with head sizes d (of q and k) and e (of v), and p pairs of a
/// query and a key that the mask lets through:
///   forward   2 p (d + e)           q k', and its softmax times v
///   backward  2 p (3 d + 2 e)       q k' once more, then the gradients of v, of the softmax, q and
///   k
/// p = queries x keys without a mask; queries^2 / 2 with a causal one, less (queries - window)^2 /
/// 2 with a sliding window. Padding is not known before the step runs and counts as work.
OpCount count_library_call(const Computation& computation, InstructionIndex i);

/// The part of the result that is scratch space of the library, which the kernel need not touch.
Bytes workspace_bytes(const Computation& computation, InstructionIndex i);

}  // namespace spillway
