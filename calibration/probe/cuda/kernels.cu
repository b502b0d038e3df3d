#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "calibration/probe/cuda/kernels.h"

namespace spillway::probe {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerMultiprocessor = 4;  // 2048 threads: all that one holds

__global__ void gate(const volatile int* open, int* given_up) {
  constexpr long long kMost = 20'000'000'000;  // cycles
  const long long start = clock64();
  while (*open == 0)
    if (clock64() - start > kMost) {
      *given_up = 1;
      return;
    }
}

__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

__device__ std::int64_t first_item() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ std::int64_t stride() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// Reads all and writes only what no sum of random words is, so that the loads stay.
__global__ void read_all(const uint4* from, std::int64_t count) {
  unsigned sum = 0;
#pragma unroll 4
  for (std::int64_t i = first_item(); i < count; i += stride()) {
    const uint4 v = from[i];
    sum |= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345679u) const_cast<uint4*>(from)[0].x = sum;
}

__global__ void write_all(uint4* to, std::int64_t count) {
#pragma unroll 4
  for (std::int64_t i = first_item(); i < count; i += stride()) to[i] = make_uint4(1, 2, 3, 4);
}

__global__ void copy_all(uint4* to, const uint4* from, std::int64_t count) {
#pragma unroll 4
  for (std::int64_t i = first_item(); i < count; i += stride()) to[i] = from[i];
}

__global__ void triad(float4* a, const float4* b, const float4* c, std::int64_t count) {
#pragma unroll 4
  for (std::int64_t i = first_item(); i < count; i += stride()) {
    const float4 x = b[i], y = c[i];
    a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
  }
}

__global__ void fill_pattern(std::uint64_t* to, std::int64_t count) {
  for (std::int64_t i = first_item(); i < count; i += stride())
    to[i] = pattern_word(static_cast<std::uint64_t>(i));
}

template <typename T>
__global__ void fill_operands(T* to, std::int64_t count, bool zeros) {
  for (std::int64_t i = first_item(); i < count; i += stride()) {
    const std::uint64_t word = pattern_word(static_cast<std::uint64_t>(i));
    const float value = static_cast<float>(word >> 40) * (2.0f / (1 << 24)) - 1.0f;
    to[i] = T(zeros ? 0.0f : value);
  }
}

unsigned blocks_of(int multiprocessors) {
  return static_cast<unsigned>(multiprocessors * kBlocksPerMultiprocessor);
}

}  // namespace

void launch_gate(const int* open, int* given_up, cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(open, given_up);
}

void launch_spin(std::int64_t cycles, cudaStream_t stream) { spin<<<1, 1, 0, stream>>>(cycles); }

void launch_traffic(Kernel kernel, void* memory, std::int64_t bytes, int multiprocessors,
                    cudaStream_t stream) {
  const unsigned blocks = blocks_of(multiprocessors);
  const std::int64_t items = bytes / 16;
  auto* words = static_cast<uint4*>(memory);
  if (kernel == Kernel::kRead) read_all<<<blocks, kThreads, 0, stream>>>(words, items);
  if (kernel == Kernel::kWrite) write_all<<<blocks, kThreads, 0, stream>>>(words, items);
  if (kernel == Kernel::kCopy)
    copy_all<<<blocks, kThreads, 0, stream>>>(words, words + items / 2, items / 2);
  if (kernel == Kernel::kTriad) {
    auto* floats = static_cast<float4*>(memory);
    const std::int64_t third = items / 3;
    triad<<<blocks, kThreads, 0, stream>>>(floats, floats + third, floats + 2 * third, third);
  }
}

void launch_copy(void* to, const void* from, std::int64_t bytes, int multiprocessors,
                 cudaStream_t stream) {
  copy_all<<<blocks_of(multiprocessors), kThreads, 0, stream>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / 16);
}

void launch_fill_pattern(void* memory, std::int64_t bytes, cudaStream_t stream) {
  fill_pattern<<<1024, kThreads, 0, stream>>>(static_cast<std::uint64_t*>(memory), bytes / 8);
}

void launch_fill_operands(void* memory, std::int64_t count, GemmType type, bool zeros,
                          cudaStream_t stream) {
  if (type == GemmType::kBf16)
    fill_operands<<<1024, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(memory), count, zeros);
  else
    fill_operands<<<1024, kThreads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(memory), count, zeros);
}

}  // namespace spillway::probe
