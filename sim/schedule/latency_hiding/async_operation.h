// What an instruction is to XLA's latency-hiding scheduler: the start or the done of something that
// runs beside the main stream, and which resource that takes.
#pragma once

#include <array>
#include <optional>

#include "model/program/program.h"

namespace spillway {

/// XLA's GpuResourceType, as far as programs use it.
enum class AsyncResource : std::uint8_t {
  kCollectives,
  kComputes,  ///< copies, asynchronous kernels
  kSlices,    ///< copies of a slice that the loop's index chooses, to or from the host or not
  kSend,
  kReceive,
};
inline constexpr std::size_t kAsyncResources = 5;

/// A number for each resource.
using ResourceCounts = std::array<std::int32_t, kAsyncResources>;

/// A set of resources.
using ResourceSet = std::uint8_t;
constexpr ResourceSet set_of(AsyncResource resource) {
  return static_cast<ResourceSet>(1u << static_cast<unsigned>(resource));
}

struct AsyncOperation {
  enum class Role : std::uint8_t { kStart, kDone } role = Role::kStart;
  AsyncResource resource = AsyncResource::kComputes;
  /// Whether the scheduler moves the two apart. What runs synchronously it does not, nor a kernel
  /// on the main thread, but their resource they take all the same.
  bool is_hidden = true;
};

/// Empty for everything that is neither start nor done.
std::optional<AsyncOperation> async_operation(const Program& program, InstructionId id);

/// Whether a start offloads a slice into a stacked array on the host. XLA lets these wait.
bool is_offload_of_slice(const Program& program, InstructionId start);

}  // namespace spillway
