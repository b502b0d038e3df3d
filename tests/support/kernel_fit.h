// Fits what a profile says of kernels that are no products to measured times of instructions: five
// figures, because more of them cannot be told apart by the kernels of one program.
//   launch_floor   what kernels of less than 10 us take, the median
//   stream         elementwise, row_reduce and copy: one achieved share of the HBM's bandwidth
//   column_reduce, transpose, vector
// And the way to score such a fit: fitted on half of the kernels, scored on the other half.
#pragma once

#include <string>
#include <vector>

#include "model/cost/work.h"
#include "model/hardware/profile.h"
#include "tests/support/a100_run.h"

namespace spillway::testing {

/// An instruction of the measured step that is no collective and overlaps none.
struct MeasuredKernel {
  InstructionId id;
  Work work;
  Seconds time;
  std::string signature;
};

std::vector<MeasuredKernel> kernels_of(const A100Run& run);

/// `machine` with the figures that make the sum of |log(predicted / measured)| over signatures
/// least, each weighted by the root of the time of all its instructions. Products among the kernels
/// are passed over. Found by changing one figure after the other until no change helps;
/// deterministic.
HardwareProfile fit_kernels(HardwareProfile machine, const std::vector<MeasuredKernel>& kernels);

/// In which half a signature is: bit 32 of FNV-1a over the digits of the seed and the signature.
bool is_in_first_half(const std::string& signature, int seed);

/// For each half the machine that was fitted on the other one.
struct HalfAndHalf {
  int seed;
  HardwareProfile for_first, for_second;

  HalfAndHalf(const HardwareProfile& machine, const std::vector<MeasuredKernel>& kernels,
              int seed_of_split);
  const HardwareProfile& unseen(const std::string& signature) const {
    return is_in_first_half(signature, seed) ? for_first : for_second;
  }
};

}  // namespace spillway::testing
