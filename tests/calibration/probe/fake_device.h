// A machine whose truth is known, behind the probe's interface: it spreads, warms up, hiccups and
// throttles as real ones do, and counts what the probe does wrong.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "calibration/probe/device.h"
#include "tests/calibration/synthetic.h"

namespace spillway::testing {

struct FakeTruth {
  double queued = 3e-6, isolated = 11e-6;                             // start-up of a copy, s
  double in = 55e9, out = 52e9, both = 90e9;                          // B/s
  double memory_in = 160e9, memory_out = 150e9, memory_both = 170e9;  // of a CPU, for its GPUs
  double pageable = 9e9, far = 20e9, row = 15e-9;                     // B/s, B/s, s a row
  double floor = 1.8e-6, gap = 0.8e-6, enqueue = 2.2e-6, clock = 1.9e9;
  double hbm = 4e12;                  // B/s that kernels reach
  double gemm = 700e12, power = 1.1;  // FLOP/s, times as long when lasting
  int gpus = 1, gpus_per_cpu = 1;
};

class FakeDevice : public probe::Device {
 public:
  explicit FakeDevice(FakeTruth truth, std::uint64_t seed = 1, double spread = 0.004)
      : truth_(truth), noise_(seed, spread, 0.02) {}

  int not_covered = 0;      ///< loads beside that ended before the measured one
  int overfull = 0;         ///< queues with more operations than hardware holds
  int queued_pageable = 0;  ///< would wait for the gate for ever
  bool wrong_data = false;
  bool no_gemm = false;
  int throttle_from = -1, throttle_for = 0;  ///< trials

  probe::Machine machine() override {
    probe::Machine machine;
    machine.driver = "580.1", machine.cuda = "13.0", machine.page_bytes = 4096;
    for (int i = 0; i < truth_.gpus; ++i) {
      probe::Gpu gpu;
      gpu.index = i;
      gpu.name = "NVIDIA H200", gpu.compute_capability = "9.0";
      gpu.hbm_bytes = 150754820096, gpu.l2_bytes = 50 << 20;
      gpu.multiprocessors = 132;
      gpu.numa_node = i / truth_.gpus_per_cpu;
      gpu.pcie_generation_most = 5, gpu.pcie_width_most = 16;
      machine.gpus.push_back(gpu);
    }
    machine.nodes = {{0, "0-15", 1 << 30}, {1, "16-31", 1 << 30}};
    return machine;
  }
  probe::GpuState state(int) override {
    probe::GpuState state;
    state.sm_hertz = slow() ? 1e9 : 1.98e9;
    state.most_hertz = 1.98e9;
    state.pcie_generation = 5, state.pcie_width = 16;
    return state;
  }
  std::string verify(const probe::CopyLoad&) override {
    return wrong_data ? "byte 17 differs" : "";
  }
  double now() override { return now_; }

  probe::TrialResult run(const probe::Trial& trial) override {
    probe::TrialResult result;
    ++trials_;
    for (const probe::Load& load : trial.loads) {
      result.seconds.push_back(noise_.measured(Seconds(time_of(load, trial))).value());
      result.enqueue_seconds += truth_.enqueue * count_of(load);
      if (count_of(load) > 1000) ++overfull;
      const auto* copy = std::get_if<probe::CopyLoad>(&load);
      if (copy && copy->pages == probe::Pages::kPageable && !trial.host_waits) ++queued_pageable;
    }
    if (no_gemm && is_gemm(trial.loads.front())) return {"cuBLASLt is not there", {}, 0};
    if (trials_ < 5) result.seconds.front() *= 3;  // the machine warms up
    if (slow()) result.seconds.front() *= 1.9;
    // By the truth: a hiccup of the measured load outlasts any cover.
    for (std::size_t i = 1; i < trial.loads.size(); ++i)
      not_covered += time_of(trial.loads[i], trial) < time_of(trial.loads[0], trial);
    lasting_ = is_gemm(trial.loads.front()) ? lasting_ + result.seconds.front() : 0;
    now_ += *std::max_element(result.seconds.begin(), result.seconds.end()) + 1e-4;
    return result;
  }

 private:
  bool slow() const {
    return throttle_from >= 0 && trials_ >= throttle_from && trials_ < throttle_from + throttle_for;
  }
  static int count_of(const probe::Load& load) {
    const auto* copy = std::get_if<probe::CopyLoad>(&load);
    return copy ? copy->copies : std::get<probe::KernelLoad>(load).launches;
  }
  static bool is_gemm(const probe::Load& load) {
    const auto* kernel = std::get_if<probe::KernelLoad>(&load);
    return kernel && kernel->kernel == probe::Kernel::kGemm;
  }
  static bool is_in(const probe::CopyLoad& copy) {
    return copy.direction == probe::Direction::kHostToDevice;
  }

  /// The rate of a copy among those of the trial: equal shares of what binds.
  double rate_of(const probe::CopyLoad& copy, const probe::Trial& trial) const {
    if (copy.pages == probe::Pages::kPageable) return truth_.pageable;
    double rate = is_in(copy) ? truth_.in : truth_.out;
    if (copy.numa_node >= 0 && copy.numa_node != copy.gpu / truth_.gpus_per_cpu) rate = truth_.far;
    int on_cpu = 0;
    bool own_both = false, any_both = false;
    for (const probe::Load& load : trial.loads)
      if (const auto* other = std::get_if<probe::CopyLoad>(&load)) {
        const bool same_cpu = other->gpu / truth_.gpus_per_cpu == copy.gpu / truth_.gpus_per_cpu;
        on_cpu += same_cpu;
        any_both = any_both || (same_cpu && is_in(*other) != is_in(copy));
        own_both = own_both || (other->gpu == copy.gpu && is_in(*other) != is_in(copy));
      }
    if (own_both) rate = std::min(rate, truth_.both / 2);
    const double memory = any_both      ? truth_.memory_both
                          : is_in(copy) ? truth_.memory_in
                                        : truth_.memory_out;
    return std::min(rate, memory / std::max(on_cpu, 1));
  }

  double time_of(const probe::CopyLoad& copy, const probe::Trial& trial) const {
    const auto bytes = static_cast<double>(copy.bytes);
    const double start = trial.host_waits ? truth_.isolated : truth_.queued;
    const double rows = copy.row_bytes > 0 ? bytes / static_cast<double>(copy.row_bytes) : 0;
    return copy.copies * (start + bytes / rate_of(copy, trial) + rows * truth_.row);
  }

  /// A copy beside takes its own bytes of the memory.
  double time_of(const probe::KernelLoad& kernel, const probe::Trial& trial) const {
    double copied = 0;
    for (const probe::Load& load : trial.loads)
      if (const auto* copy = std::get_if<probe::CopyLoad>(&load)) copied += rate_of(*copy, trial);
    double one = truth_.floor;
    if (kernel.kernel == probe::Kernel::kSpin) {
      if (kernel.cycles > 0) one = static_cast<double>(kernel.cycles) / truth_.clock;
    } else if (kernel.kernel == probe::Kernel::kGemm) {
      const double flops = 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                           static_cast<double>(kernel.k);
      const double rate = truth_.gemm * (kernel.type == probe::GemmType::kF8 ? 2 : 1);
      one = 5e-6 + flops / rate * (lasting_ >= 0.4 ? truth_.power : 1) * (kernel.zeros ? 0.85 : 1);
    } else {
      one += static_cast<double>(kernel.bytes) / (truth_.hbm - copied);
    }
    return kernel.launches * (one + truth_.gap);
  }

  double time_of(const probe::Load& load, const probe::Trial& trial) const {
    return std::visit([&](const auto& some) { return time_of(some, trial); }, load);
  }

  FakeTruth truth_;
  Noise noise_;
  int trials_ = 0;
  double now_ = 0, lasting_ = 0;
};

}  // namespace spillway::testing
