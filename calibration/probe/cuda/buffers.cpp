#include "calibration/probe/cuda/buffers.h"

#include <cuda_runtime.h>

#include <cstdlib>

#include "calibration/probe/cuda/host_memory.h"
#include "calibration/probe/cuda/kernels.h"

namespace spillway::probe {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::string text_of(cudaError_t error) {
  return std::string("CUDA says: ") + cudaGetErrorString(error);
}

void fill_pattern(Arena& arena) {
  auto* words = reinterpret_cast<std::uint64_t*>(arena.memory);
  for (std::int64_t i = 0; i < arena.bytes / 8; ++i)
    words[i] = pattern_word(static_cast<std::uint64_t>(i));
}

}  // namespace

Buffers::~Buffers() {
  for (auto& [key, arena] : host_) {
    const Pages pages = std::get<Pages>(key);
    if (pages == Pages::kPinned) cudaFreeHost(arena.memory);
    if (pages == Pages::kRegistered) cudaHostUnregister(arena.memory);
    if (pages != Pages::kPinned) std::free(arena.memory);
  }
  for (auto& [key, arena] : device_) cudaFree(arena.memory);
  for (auto& [key, arena] : scratch_) cudaFree(arena.memory);
}

/// Pinned memory comes from the driver, as XLA's pool does it, on the node of the asking thread.
std::string Buffers::make_host(const CopyLoad& copy, int own_node, Arena& arena) {
  const int node = copy.numa_node >= 0 ? copy.numa_node : own_node;
  const OnNode here(node, nodes_);
  const auto size = static_cast<std::size_t>(bytes_);
  void* memory = nullptr;
  if (copy.pages == Pages::kPinned) {
    const cudaError_t error = cudaHostAlloc(&memory, size, cudaHostAllocPortable);
    if (error != cudaSuccess) return text_of(error);
  } else {
    memory = std::aligned_alloc(kHugePage, (size + kHugePage - 1) / kHugePage * kHugePage);
    if (memory == nullptr) return "no host memory";
  }
  arena = {static_cast<char*>(memory), bytes_, 0};
  fill_pattern(arena);
  if (copy.pages == Pages::kRegistered)
    if (const cudaError_t error = cudaHostRegister(memory, size, cudaHostRegisterPortable);
        error != cudaSuccess)
      return text_of(error);
  const int landed = node_of_page(arena.memory + bytes_ / 2);
  if (node >= 0 && landed >= 0 && landed != node)
    return "host memory landed on node " + std::to_string(landed) + " instead of " +
           std::to_string(node);
  return "";
}

std::string Buffers::prepare(const CopyLoad& copy, int own_node) {
  cudaSetDevice(copy.gpu);
  Arena& host = host_[host_key(copy)];
  if (host.memory == nullptr)
    if (std::string why = make_host(copy, own_node, host); !why.empty()) return why;
  const bool pitched = copy.row_bytes > 0;
  Arena& device = device_[{copy.gpu, copy.direction, pitched}];
  const std::int64_t wanted = pitched ? copy.bytes / copy.row_bytes * copy.pitch_bytes : bytes_;
  if (device.bytes >= wanted) return "";
  cudaFree(device.memory);
  device = {};
  void* memory = nullptr;
  if (const cudaError_t error = cudaMalloc(&memory, static_cast<std::size_t>(wanted));
      error != cudaSuccess)
    return text_of(error);
  device = {static_cast<char*>(memory), wanted, 0};
  launch_fill_pattern(memory, wanted, nullptr);
  const cudaError_t error = cudaDeviceSynchronize();
  return error == cudaSuccess ? "" : text_of(error);
}

Arena& Buffers::host(const CopyLoad& copy) { return host_.at(host_key(copy)); }

Arena& Buffers::device(const CopyLoad& copy) {
  return device_.at({copy.gpu, copy.direction, copy.row_bytes > 0});
}

void* Buffers::scratch(int gpu, std::int64_t bytes) {
  Arena& arena = scratch_[gpu];
  if (arena.bytes >= bytes) return arena.memory;
  cudaSetDevice(gpu);
  cudaFree(arena.memory);
  arena = {};
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) return nullptr;
  arena = {static_cast<char*>(memory), bytes, 0};
  launch_fill_pattern(memory, bytes, nullptr);
  return cudaDeviceSynchronize() == cudaSuccess ? memory : nullptr;
}

}  // namespace spillway::probe
