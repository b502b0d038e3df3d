// How far a long command has come, on stderr; nothing for one that is soon done.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace spillway {

class Progress {
 public:
  /// `what` is counted: "cases".
  Progress(std::size_t total, std::string what) : total_(total), what_(std::move(what)) {}
  /// Nobody knows how many there will be.
  explicit Progress(std::string what) : Progress(0, std::move(what)) {}

  /// One more is done. Threads may call it at the same time.
  void advance();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kEvery{3};

  const std::size_t total_;
  const std::string what_;
  const Clock::time_point begun_ = Clock::now();
  std::atomic<std::size_t> done_{0};
  std::atomic<std::int64_t> lines_{0};  ///< written so far
};

}  // namespace spillway
