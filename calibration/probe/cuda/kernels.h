// The probe's kernels, as functions that launch them; what they are for says device.h. Sizes are
// whole numbers of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "calibration/probe/device.h"

namespace spillway::probe {

/// Holds its stream until *open is not 0, or some ten seconds are over: then *given_up becomes 1.
void launch_gate(const int* open, int* given_up, cudaStream_t stream);
void launch_spin(std::int64_t cycles, cudaStream_t stream);

/// One launch of kRead, kWrite, kCopy or kTriad over `bytes` of HBM traffic; `memory` holds as
/// much.
void launch_traffic(Kernel kernel, void* memory, std::int64_t bytes, int multiprocessors,
                    cudaStream_t stream);
/// Loads and stores across the link, where one of the addresses is the host's.
void launch_copy(void* to, const void* from, std::int64_t bytes, int multiprocessors,
                 cudaStream_t stream);

/// The word at `index` of every pattern, on host and device.
__host__ __device__ inline std::uint64_t pattern_word(std::uint64_t index) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}
void launch_fill_pattern(void* memory, std::int64_t bytes, cudaStream_t stream);

/// Random numbers between -1 and 1, or zeros.
void launch_fill_operands(void* memory, std::int64_t count, GemmType type, bool zeros,
                          cudaStream_t stream);

}  // namespace spillway::probe
