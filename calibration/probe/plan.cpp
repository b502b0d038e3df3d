#include "calibration/probe/plan.h"

#include <algorithm>
#include <array>
#include <set>

namespace spillway::probe {
namespace {

constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
constexpr Direction kDirections[] = {Direction::kHostToDevice, Direction::kDeviceToHost};

Direction other(Direction direction) {
  return direction == Direction::kHostToDevice ? Direction::kDeviceToHost
                                               : Direction::kHostToDevice;
}

/// Builds the plan, group by group.
class Planner {
 public:
  Planner(const Machine& machine, const PlanOptions& options)
      : machine_(machine), options_(options) {}

  MeasurementPlan plan() {
    plan_sweeps();
    plan_both_ways();
    plan_all_gpus();
    plan_rows();
    plan_other_pages();
    plan_far_memory();
    plan_kernels();
    plan_gemms();
    plan_interference();
    return std::move(plan_);
  }

 private:
  std::int64_t large() const { return std::min(options_.largest_copy, 256 * kMiB); }
  CopyLoad copy(Direction direction, std::int64_t bytes) const {
    CopyLoad load;
    load.gpu = machine_.gpus.front().index;
    load.direction = direction;
    load.bytes = bytes;
    return load;
  }
  void add_copy(const CopyLoad& load, bool host_waits = false, std::vector<CopyLoad> beside = {}) {
    plan_.points.push_back({PointKind::kCopy, load, std::move(beside), host_waits, false});
  }

  /// Each size queued and isolated, each direction, one GPU.
  void plan_sweeps() {
    for (const std::int64_t bytes : copy_sizes(options_.largest_copy, options_.quick))
      for (const Direction direction : kDirections)
        for (const bool host_waits : {false, true}) add_copy(copy(direction, bytes), host_waits);
  }

  void plan_both_ways() {
    for (const std::int64_t bytes : {large() / 8, large()})
      for (const Direction direction : kDirections)
        add_copy(copy(direction, bytes), false, {copy(other(direction), bytes)});
  }

  /// One GPU measured while every other of the host copies the same, one way and both.
  void plan_all_gpus() {
    if (machine_.gpus.size() < 2) {
      plan_.not_planned.push_back({"copies of all GPUs at once",
                                   "there is one GPU: what its CPU's memory gives several "
                                   "cannot be seen"});
      return;
    }
    for (const Gpu& gpu : machine_.gpus)
      for (const Direction direction : kDirections)
        for (const bool both_ways : {false, true}) {
          CopyLoad measured = copy(direction, large());
          measured.gpu = gpu.index;
          std::vector<CopyLoad> beside;
          for (const Gpu& else_where : machine_.gpus)
            for (const Direction way : kDirections) {
              const bool itself = else_where.index == gpu.index && way == direction;
              if (itself || (!both_ways && way != direction)) continue;
              CopyLoad cover = copy(way, large());
              cover.gpu = else_where.index;
              beside.push_back(cover);
            }
          add_copy(measured, false, std::move(beside));
        }
  }

  /// As XLA copies a slice along an inner dimension: rows with others' rows between them.
  void plan_rows() {
    for (const std::int64_t row : {std::int64_t{512}, 4 * kKiB, 32 * kKiB, 256 * kKiB})
      for (const Direction direction : kDirections) {
        CopyLoad load = copy(direction, large() / 8);
        load.row_bytes = row;
        load.pitch_bytes = 4 * row;
        add_copy(load);
      }
  }

  void plan_other_pages() {
    for (const Direction direction : kDirections) {
      for (const std::int64_t bytes : {large() / 8, large()}) {
        CopyLoad pageable = copy(direction, bytes);
        pageable.pages = Pages::kPageable;
        add_copy(pageable, true);  // drivers do not queue them
      }
      CopyLoad registered = copy(direction, large());
      registered.pages = Pages::kRegistered;
      add_copy(registered);
      CopyLoad by_kernel = copy(direction, large());
      by_kernel.by_kernel = true;
      add_copy(by_kernel);
    }
  }

  void plan_far_memory() {
    const int own = machine_.gpus.front().numa_node;
    bool found = false;
    for (const NumaNode& node : machine_.nodes) {
      if (node.cpus.empty() || node.node == own || own < 0) continue;
      found = true;
      for (const Direction direction : kDirections) {
        CopyLoad load = copy(direction, large());
        load.numa_node = node.node;
        add_copy(load);
      }
    }
    if (!found)
      plan_.not_planned.push_back(
          {"memory of another CPU",
           own < 0 ? "which node the GPU hangs on is not known" : "there is one node with CPUs"});
  }

  void plan_kernels() {
    KernelLoad load;
    load.gpu = machine_.gpus.front().index;
    const std::int64_t l2 = std::max<std::int64_t>(machine_.gpus.front().l2_bytes, 32 * kMiB);
    for (const Kernel kernel : {Kernel::kRead, Kernel::kWrite, Kernel::kCopy, Kernel::kTriad})
      for (const std::int64_t times : {16, 32, 64}) {
        load.kernel = kernel;
        load.bytes = l2 * times / kMiB * kMiB;
        plan_.points.push_back({PointKind::kTraffic, load, {}, false, false});
      }
    load = {};
    load.gpu = machine_.gpus.front().index;
    plan_.points.push_back({PointKind::kLaunch, load, {}, false, false});
  }

  void plan_gemms() {
    const std::string& capability = machine_.gpus.front().compute_capability;
    const bool has_f8 = capability == "8.9" || capability.size() > 3 || capability >= "9.0";
    std::vector<std::array<std::int64_t, 3>> shapes = {
        {1024, 1024, 1024},  {2048, 2048, 2048},   {4096, 4096, 4096},   {8192, 8192, 8192},
        {16384, 8192, 8192}, {4096, 4096, 256},    {4096, 4096, 1024},   {256, 4096, 4096},
        {1024, 4096, 4096},  {256, 256, 16384},    {512, 512, 4096},     {8192, 1024, 4096},
        {8192, 4096, 512},   {16384, 14336, 4096}, {16384, 4096, 14336}, {4096, 14336, 8192}};
    if (options_.quick) shapes.resize(13);
    for (const GemmType type : {GemmType::kBf16, GemmType::kF8}) {
      if (type == GemmType::kF8 && !has_f8) {
        plan_.not_planned.push_back({"products of 8-bit floats", "the device has none"});
        continue;
      }
      for (const auto& [m, n, k] : shapes) add_gemm(type, m, n, k);
    }
  }
  void add_gemm(GemmType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    KernelLoad load;
    load.gpu = machine_.gpus.front().index;
    load.kernel = Kernel::kGemm;
    load.type = type;
    load.m = m, load.n = n, load.k = k;
    plan_.points.push_back({PointKind::kGemm, load, {}, false, false});
    const bool large_enough = m * n * k >= std::int64_t{4096} * 4096 * 4096;
    if (large_enough) plan_.points.push_back({PointKind::kGemm, load, {}, false, true});
    if (m == 8192 && n == 8192) {  // how much too fast zeros are: a warning in the making
      load.zeros = true;
      plan_.points.push_back({PointKind::kGemm, load, {}, false, false});
    }
  }

  void plan_interference() {
    KernelLoad triad, gemm;
    triad.gpu = gemm.gpu = machine_.gpus.front().index;
    triad.kernel = Kernel::kTriad;
    triad.bytes = 3 * kGiB / 2;
    gemm.kernel = Kernel::kGemm;
    gemm.m = gemm.n = gemm.k = 4096;
    const CopyLoad in = copy(Direction::kHostToDevice, large() / 4);
    const CopyLoad out = copy(Direction::kDeviceToHost, large() / 4);
    CopyLoad in_by_kernel = in;
    in_by_kernel.by_kernel = true;
    for (const KernelLoad& kernel : {triad, gemm})
      for (const std::vector<CopyLoad>& copies :
           std::vector<std::vector<CopyLoad>>{{in}, {out}, {in, out}, {in_by_kernel}})
        plan_.points.push_back({PointKind::kInterference, kernel, copies, false, false});
  }

  const Machine& machine_;
  const PlanOptions& options_;
  MeasurementPlan plan_;
};

}  // namespace

std::vector<std::int64_t> copy_sizes(std::int64_t largest, bool quick) {
  std::set<std::int64_t> sizes;
  for (std::int64_t bytes = 4 * kKiB; bytes <= largest; bytes *= quick ? 4 : 2) {
    sizes.insert(bytes);
    if (bytes >= 64 * kKiB && bytes <= 4 * kMiB) sizes.insert(std::min(bytes * 3 / 2, largest));
  }
  sizes.insert(largest);
  return {sizes.begin(), sizes.end()};
}

MeasurementPlan make_plan(const Machine& machine, const PlanOptions& options) {
  if (machine.gpus.empty()) return {};
  return Planner(machine, options).plan();
}

}  // namespace spillway::probe
