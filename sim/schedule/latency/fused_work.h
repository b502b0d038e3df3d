// What happens inside a fusion, counted as XLA's GpuHloCostAnalysis counts.
#pragma once

#include <vector>

#include "model/program/program.h"

namespace spillway {

struct FusedWork {
  double operations = 0;  ///< cycles of one lane, two to a fused multiply-add
  /// Of each operand, the bytes read; more than the operand has where it is read again.
  std::vector<double> bytes_read;
  double bytes_written = 0;
};

/// Of a fusion, or of an instruction that runs alone. From the result upwards: elementwise
/// operations are run once for each element that is wanted, what stands above anything else as
/// often as that reads it (a broadcast reads its operand once for each element it makes, a slice
/// only its part). An in-place update writes the update alone.
FusedWork fused_work(const Program& program, InstructionId id);

}  // namespace spillway
