// What is known of a machine before a fit: samples of copies, kernels and collectives, whoever
// took them, each with the place it was read from. Every reader of runs (the probe's own,
// nvbandwidth, Nsight, XPlane) fills the same lists and says what it could not use; the fit sees
// nothing else. Rates are bytes a second in one direction. Left out: what the samples mean for a
// profile (fit/).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/hardware/units_text.h"

namespace spillway::calibration {

enum class CopyDirection { kHostToDevice, kDeviceToHost };
constexpr std::string_view name_of(CopyDirection direction) {
  return direction == CopyDirection::kHostToDevice ? "host_to_device" : "device_to_host";
}

/// XLA copies with the copy engines; kernels that load and store across the link are another thing.
enum class CopiedBy { kCopyEngine, kKernel };

enum class HostPages {
  kPinned,
  kPageable,    ///< staged by the driver: two to three times slower, and the host waits
  kRegistered,  ///< allocated first, pinned afterwards
  kManaged,
  kUnknown,
};
constexpr std::string_view name_of(HostPages pages) {
  constexpr std::string_view kNames[] = {"pinned", "pageable", "registered", "managed", "unknown"};
  return kNames[static_cast<int>(pages)];
}

/// What of a copy's start-up is in its time.
enum class CopyRegime {
  kQueued,    ///< one of many that wait on one stream: only the gap between copies shows
  kIsolated,  ///< the host enqueues one and waits for it
  kOwn,       ///< first to last byte, as a profiler records it: no start-up at all
  kUnknown,
};

enum class HostMemory { kNear, kFar, kUnknown };

/// What runs on the same GPU meanwhile.
enum class Beside { kNothing, kComputeBoundKernel, kMemoryBoundKernel, kUnknownWork };

/// A copy of rows that do not follow each other, as XLA makes of a slice along an inner dimension.
struct Rows {
  Bytes row;      ///< contiguous
  Bytes pitch;    ///< from one row's start to the next
  Count count{};  ///< how many
  friend bool operator==(const Rows&, const Rows&) = default;
};

/// One measured rate, or the median of repetitions that a source reports as one.
struct CopySample {
  CopyDirection direction = CopyDirection::kHostToDevice;
  CopiedBy by = CopiedBy::kCopyEngine;
  HostPages pages = HostPages::kPinned;
  CopyRegime regime = CopyRegime::kUnknown;
  HostMemory memory = HostMemory::kUnknown;
  Beside beside = Beside::kNothing;
  bool both_ways = false;  ///< the same GPU copies the other way, too; `rate` is this direction's
  int gpus_at_once = 1;    ///< of the host that copy the same; 0: all of them, number not said
  std::optional<Bytes> bytes{};  ///< of one copy; empty where the source does not say
  BytesPerSecond rate{};         ///< bytes / time of one copy
  BytesPerSecond resolution{};   ///< the last digit printed, for example 0.1 GB/s; 0 is exact
  std::optional<Rows> rows{};
  std::optional<int> gpu{};        ///< its index
  std::optional<int> numa_node{};  ///< of the host memory
  SourceRef where;
};
inline Seconds time_of(const CopySample& sample) { return *sample.bytes / sample.rate; }

enum class Operands { kRandom, kZeros, kUnknown };

/// C[m, n] = A[m, k] B[k, n], `batch` times in one call.
struct GemmSample {
  std::string type;  ///< of the operands as profiles name it: bf16, f16, tf32, f8, ...
  Count m{}, n{}, k{};
  Count batch{1};
  Seconds time;  ///< of one call
  Operands operands = Operands::kUnknown;
  bool lasting = false;  ///< after half a second of the same: clocks follow power
  SourceRef where;
};
inline Flops flops_of(const GemmSample& gemm) {
  return Flops(2.0 * static_cast<double>(gemm.m.value()) * static_cast<double>(gemm.n.value()) *
               static_cast<double>(gemm.k.value()) * static_cast<double>(gemm.batch.value()));
}

/// A kernel that memory bounds: the classes of KernelCosts, and three that only move bytes.
enum class TrafficKernel {
  kRead,
  kWrite,
  kCopy,         ///< device to device
  kElementwise,  ///< such as triad: a = b + s c
  kRowReduce,
  kColumnReduce,
  kTranspose,
};
struct TrafficSample {
  TrafficKernel kernel = TrafficKernel::kElementwise;
  Bytes traffic;  ///< read and written, together
  Seconds time;
  SourceRef where;
};

/// What a kernel costs beside its work.
enum class LaunchCost {
  kFloor,    ///< start to end of a kernel that does nothing
  kGap,      ///< end of one to the start of the next on a stream
  kEnqueue,  ///< what the host spends on a launch
};
struct LaunchSample {
  LaunchCost cost = LaunchCost::kFloor;
  Seconds time;
  SourceRef where;
};

/// A kernel and copies at once, against each alone: times as long.
struct InterferenceSample {
  Beside kernel = Beside::kMemoryBoundKernel;
  bool host_to_device = false;  ///< which copies run; both may
  bool device_to_host = false;
  CopiedBy by = CopiedBy::kCopyEngine;
  Factor kernel_slowdown{1};
  Factor copy_slowdown{1};
  BytesPerSecond copy_rate{};       ///< all copies together, meanwhile
  BytesPerSecond kernel_traffic{};  ///< of the kernel alone
  SourceRef where;
};

enum class Collective { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kPermute };
struct CollectiveSample {
  Collective collective = Collective::kAllGather;
  Count gpus{};
  Bytes bytes;  ///< of the full tensor
  Seconds time;
  SourceRef where;
};

/// Link speed as the driver states it, per direction and GPU.
struct LinkCapSample {
  BytesPerSecond cap;
  std::string text;  ///< "5 C2C links of 44.712 GB/s", "PCIe gen 5 x16 under load"
  bool under_load = true;
  SourceRef where;
};

/// What the sources say of the machine; empty where none does.
struct MachineFacts {
  std::string device;  ///< "NVIDIA H200"
  std::string compute_capability;
  std::string driver;
  std::string cuda;
  std::string date;
  std::optional<Count> gpus{}, gpus_per_cpu{}, cpus{};
  std::optional<Count> sm_count{};
  std::optional<Bytes> hbm_capacity{}, l2_capacity{};
  std::optional<bool> mig{};
};

/// Something a reader met that changes what a figure means: pageable rows, an idle link's state.
/// `code` is short and fixed ("pageable", "idle-link", "lanes", "far-numa", "mig", "zeros",
/// "throttled", ...).
struct Warning {
  std::string code;
  std::string text;  ///< starts in lower case, has no full stop
  SourceRef where;
};

/// What a source holds and a fit cannot use.
struct Skipped {
  std::string what;
  std::string why;
  SourceRef where;
  bool needs_gpus = false;  ///< it is a sum over GPUs, and how many is not known
};

/// One file read: "nvbandwidth v0.8, text", and what came of it in a sentence.
struct SourceSummary {
  std::string path;
  std::string format;
  std::string read;
};

struct Measurements {
  std::vector<SourceSummary> sources;
  MachineFacts machine;
  std::vector<CopySample> copies;
  std::vector<GemmSample> gemms;
  std::vector<TrafficSample> traffic;
  std::vector<LaunchSample> launches;
  std::vector<InterferenceSample> interference;
  std::vector<CollectiveSample> collectives;
  std::vector<LinkCapSample> link_caps;
  std::vector<Warning> warnings;
  std::vector<Skipped> skipped;
};

/// Whether the driver's name of a device is XLA's, one with more words than the other: "NVIDIA
/// H200" is "NVIDIA H200 141GB HBM3e". "NVIDIA A10" is no "NVIDIA A100", and "NVIDIA" is no device.
bool is_device(std::string_view driver_name, std::string_view xla_name);

/// Adds what another source says; of the machine what is not yet known, with a warning
/// ("other-machine") where the two name different devices.
void append(Measurements& to, Measurements more);

}  // namespace spillway::calibration
