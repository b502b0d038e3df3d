// Buffers for copies: one for each GPU, direction, kind of host memory and node, made when first
// asked for and kept. Copies walk through them, so that none finds its bytes in a cache.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "calibration/probe/device.h"

namespace spillway::probe {

/// A stretch of host or device memory and where the next copy begins.
struct Arena {
  char* memory = nullptr;
  std::int64_t bytes = 0;
  std::int64_t next = 0;

  /// The next place for that many bytes; starts over at the end.
  char* take(std::int64_t wanted) {
    if (next + wanted > bytes) next = 0;
    char* place = memory + next;
    next += wanted;
    return place;
  }
};

class Buffers {
 public:
  Buffers(std::int64_t bytes, std::vector<NumaNode> nodes)
      : bytes_(bytes), nodes_(std::move(nodes)) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  /// Makes sure that both ends of a copy are there; "" when they are. `own_node` is the GPU's.
  std::string prepare(const CopyLoad& copy, int own_node);
  Arena& host(const CopyLoad& copy);
  Arena& device(const CopyLoad& copy);
  /// Device memory for kernels that move bytes; null when there is not enough.
  void* scratch(int gpu, std::int64_t bytes);

 private:
  using HostKey = std::tuple<int, Direction, Pages, int>;
  static HostKey host_key(const CopyLoad& copy) {
    return {copy.gpu, copy.direction, copy.pages, copy.numa_node};
  }
  std::string make_host(const CopyLoad& copy, int own_node, Arena& arena);

  std::int64_t bytes_;
  std::vector<NumaNode> nodes_;
  std::map<HostKey, Arena> host_;
  std::map<std::tuple<int, Direction, bool>, Arena> device_;  // the last: rows with a pitch
  std::map<int, Arena> scratch_;
};

}  // namespace spillway::probe
