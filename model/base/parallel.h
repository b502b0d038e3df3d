// Work that falls into equal pieces, shared among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace spillway {

/// Threads worth using on this machine, at least one.
inline std::size_t useful_threads() {
  return std::max(std::size_t{1}, std::size_t{std::thread::hardware_concurrency()});
}

/// Calls work(k) for every k below `count`, each once. Threads take pieces in turn, so pieces write
/// to places of their own, and then the result does not depend on the threads. What one throws is
/// thrown here.
template <typename Work>
void for_each_piece(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t k = next++; k < count; k = next++) work(k);
  };
  std::vector<std::future<void>> helpers;
  for (std::size_t t = 1; t < std::min(threads, count); ++t)
    helpers.push_back(std::async(std::launch::async, take));
  take();
  for (std::future<void>& helper : helpers) helper.get();
}

}  // namespace spillway
