// What one instruction of a scheduled computation has to do, before any machine is named:
// arithmetic, bytes, and the kind of kernel. What that costs on a machine is roofline.h and
// collective.h.
#pragma once

#include <string_view>

#include "model/cost/kernel_class.h"
#include "model/cost/op_count.h"
#include "model/cost/traffic.h"

namespace spillway {

/// An instruction that runs nothing has no work; loops, calls and conditionals have none of their
/// own. An async start has the work of what it wraps (which the wrapped computation has as well).
struct Work {
  KernelClass kernel = KernelClass::kFree;
  bool is_memcpy = false;  ///< a copy engine does it, no SM
  int launches = 1;        ///< copies or kernels that follow each other
  OpCount ops{};
  Flops element_ops{};  ///< as threads execute them (element_ops.h); none beside a product
  Traffic traffic{};
  /// Not empty when it is not known what runs: the target of a custom call, or an opcode. `traffic`
  /// is then what its operands and results add up to, and the real work may be anything above.
  std::string_view unknown{};
};

Work work_of(const Program& program, InstructionId id);

}  // namespace spillway
