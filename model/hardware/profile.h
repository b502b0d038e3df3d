// A machine: one GPU, its link to the host, the host's memory, and the fabric between GPUs.
// Plain data as read from hw_profiles/*.yaml; each figure keeps where it comes from. Left out: what
// a kernel or a copy costs (model/cost, sim/engine use these figures) and anything of a program.
// What each field means to a user: docs/hardware-profiles.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/check.h"
#include "model/base/units.h"
#include "model/hardware/units_text.h"

namespace spillway {

enum class OriginKind {
  kSpecification,  ///< a vendor or project says so
  kMeasured,       ///< somebody measured it on this very device
  kInferred,       ///< carried over from another device, computed or argued
};

inline constexpr OriginKind kOriginKinds[] = {OriginKind::kSpecification, OriginKind::kMeasured,
                                              OriginKind::kInferred};
/// "specification", "measured", "inferred".
constexpr std::string_view name_of(OriginKind kind) {
  if (kind == OriginKind::kSpecification) return "specification";
  return kind == OriginKind::kMeasured ? "measured" : "inferred";
}

struct Origin {
  OriginKind kind = OriginKind::kInferred;
  std::string source;  ///< a short citation, or what it was inferred from
  friend bool operator==(const Origin&, const Origin&) = default;
};

template <typename Q>
struct Figure {
  Q value{};
  Origin origin;
  friend bool operator==(const Figure&, const Figure&) = default;
};

/// Figures by number type: bf16 f16 f64 f32 s8 as XLA names them, `tf32` for an f32 matrix product
/// on tensor cores, and `f8` `f4` for each of XLA's eight- and four-bit floats.
template <typename Q>
using FigureTable = std::map<std::string, Figure<Q>, std::less<>>;

/// The entry for a type that XLA names ("f8e4m3fn" finds `f8`, "u8" finds `s8`); null if none.
template <typename Entry>
const Entry* find_figure(const std::map<std::string, Entry, std::less<>>& table,
                         std::string_view xla_type) {
  const bool is_float = xla_type.starts_with("f8") || xla_type.starts_with("f4");
  if (is_float) xla_type = xla_type.substr(0, 2);
  const auto found = table.find(xla_type == "u8" ? std::string_view("s8") : xla_type);
  return found == table.end() ? nullptr : &found->second;
}

/// One GPU.
struct Device {
  std::string xla_name;            ///< as the driver and XLA call it: "NVIDIA GB200"
  std::string compute_capability;  ///< "10.0"
  Figure<Count> sm_count;
  Figure<Hertz> clock;
  Figure<Hertz> matrix_clock;  ///< under tensor-core load
  Figure<Bytes> l2_capacity;
  Figure<Bytes> hbm_capacity;  ///< what XLA reports as device_memory_size
  Figure<BytesPerSecond> hbm_bandwidth;
  /// HBM that context, communication buffers and library workspaces take beside the pool of JAX.
  Figure<Bytes> reserve;
  FigureTable<FlopsPerSecond> matrix_peak;  ///< dense matrix products
  FigureTable<FlopsPerSecond> vector_peak;  ///< everything else
  friend bool operator==(const Device&, const Device&) = default;
};

/// What the sizes of a matrix product cost beside its arithmetic; the formula is in
/// model/cost/gemm_time.h.
struct GemmShape {
  Seconds overhead;  ///< of every product, however small
  Seconds depth;     ///< one thread block's way along 1024 elements of the contracted dimension
  Factor operands;   ///< of bytes / hbm_bandwidth, for what L2 holds: repeated reads, warm caches
  Factor result;     ///< of written bytes / hbm_bandwidth, which the arithmetic does not hide
  Origin origin;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};
using GemmShapeTable = std::map<std::string, GemmShape, std::less<>>;

/// How far kernels stay behind the roofline of `Device`: time = launch_floor + factor x roofline,
/// then `gap` until the next; model/cost/roofline.h has the formula. Matrix products:
/// model/cost/gemm_time.h for types with a gemm_shape, else gemm_overhead + factor x roofline.
struct KernelCosts {
  Figure<Seconds> launch_floor;
  Figure<Seconds> gap;
  Figure<Seconds> gemm_overhead;
  FigureTable<Factor> gemm;  ///< by the type of the operands, at the clocks of short runs
  FigureTable<Factor>
      gemm_power;             ///< times that under lasting load with real operands; may be empty
  GemmShapeTable gemm_shape;  ///< may be empty
  Figure<Factor> gemm_beside_collective;
  Figure<Factor> attention_forward;  ///< fused attention, of the matrix peak
  Figure<Factor> attention_backward;
  Figure<Factor> elementwise;
  Figure<Factor> row_reduce;
  Figure<Factor> column_reduce;
  Figure<Factor> transpose;  ///< any fusion with a transpose inside
  Figure<Factor> copy;
  /// Operations on elements, of the time they take at vector_peak: with index arithmetic, loads and
  /// stores around them, and no multiply-adds.
  Figure<Factor> vector;
  friend bool operator==(const KernelCosts&, const KernelCosts&) = default;
};

/// A type without a factor of its own takes that of bf16, which every profile has.
inline const Figure<Factor>& gemm_factor(const KernelCosts& kernels, std::string_view xla_type) {
  const Figure<Factor>* own = find_figure(kernels.gemm, xla_type);
  const Figure<Factor>* bf16 = find_figure(kernels.gemm, "bf16");
  check(own != nullptr || bf16 != nullptr, "a profile has no GEMM factor for bf16");
  return own != nullptr ? *own : *bf16;
}

enum class LinkKind { kNvlinkC2c, kPcie };
inline constexpr LinkKind kLinkKinds[] = {LinkKind::kNvlinkC2c, LinkKind::kPcie};
constexpr std::string_view name_of(LinkKind kind) {
  return kind == LinkKind::kNvlinkC2c ? "nvlink-c2c" : "pcie";
}

/// Between one GPU and the memory of its CPU; rates of large pinned copies by the copy engines.
///   host_to_device <= H,  device_to_host <= D,  both together <= both_directions
struct HostLink {
  LinkKind kind = LinkKind::kPcie;
  Figure<BytesPerSecond> cap_per_direction;  ///< what the wires carry
  Figure<BytesPerSecond> host_to_device;     ///< sustained, the GPU alone
  Figure<BytesPerSecond> device_to_host;
  Figure<BytesPerSecond> both_directions;  ///< the sum when the GPU copies both ways at once
  Figure<Seconds> copy_latency;            ///< of a copy that was queued behind another
  friend bool operator==(const HostLink&, const HostLink&) = default;
};

/// The CPUs of one host. The GPUs of a CPU share its memory: the sum of their rates is capped.
struct Host {
  Figure<Count> gpus_per_cpu;
  Figure<Count> cpus_per_host;
  Figure<BytesPerSecond> memory_bandwidth;                       ///< copies in both directions
  std::optional<Figure<BytesPerSecond>> memory_bandwidth_read;   ///< all copies host to device
  std::optional<Figure<BytesPerSecond>> memory_bandwidth_write;  ///< all copies device to host
  Figure<Bytes> memory_per_cpu;
  friend bool operator==(const Host&, const Host&) = default;
};

inline Count gpus_per_host(const Host& host) {
  return Count(host.gpus_per_cpu.value.value() * host.cpus_per_host.value.value());
}
/// An equal share for each GPU of the CPU.
inline Bytes memory_per_gpu(const Host& host) {
  return host.memory_per_cpu.value / host.gpus_per_cpu.value.value();
}

/// A collective that uses few channels until the message is large.
struct FewChannels {
  BytesPerSecond bandwidth;
  Bytes up_to;
  friend bool operator==(const FewChannels&, const FewChannels&) = default;
};

/// With t = bus bytes / bus_bandwidth, in a group of n = `gpus`:
///   time = latency + max(t + 2 sqrt(pipeline t), min(bus bytes, up_to) / bandwidth of few
///   channels)
/// Bus bytes are those of the full tensor x 2 (n-1)/n for all-reduce, x 1 for permute, x (n-1)/n
/// for the others. The square root is what chunks of the best size cost that wait for each other.
struct CollectiveFit {
  Count gpus;
  Seconds latency;
  BytesPerSecond bus_bandwidth;
  Seconds pipeline{};  ///< start-up of a chunk, times the steps it fills
  std::optional<FewChannels> few_channels{};
  friend bool operator==(const CollectiveFit&, const CollectiveFit&) = default;
};

/// Group sizes in ascending order, at least one.
struct CollectiveCosts {
  Origin origin;
  std::vector<CollectiveFit> fits;
  friend bool operator==(const CollectiveCosts&, const CollectiveCosts&) = default;
};

enum class FabricKind { kNvlink, kPcie };
inline constexpr FabricKind kFabricKinds[] = {FabricKind::kNvlink, FabricKind::kPcie};
constexpr std::string_view name_of(FabricKind kind) {
  return kind == FabricKind::kNvlink ? "nvlink" : "pcie";
}

/// The GPUs that reach each other without a network.
struct ScaleUp {
  FabricKind kind = FabricKind::kNvlink;
  Figure<Count> domain_gpus;
  Figure<BytesPerSecond> bandwidth;  ///< of one GPU, per direction
  Figure<Seconds> per_tensor;        ///< for each tensor beyond the first of a combined collective
  CollectiveCosts all_gather;
  CollectiveCosts reduce_scatter;
  CollectiveCosts all_reduce;
  CollectiveCosts all_to_all;
  CollectiveCosts collective_permute;
  friend bool operator==(const ScaleUp&, const ScaleUp&) = default;
};

/// The network between domains.
struct ScaleOut {
  Figure<BytesPerSecond> nic_cap;  ///< line rate for one GPU, per direction
  Figure<BytesPerSecond> nic_bandwidth;
  Figure<Seconds> latency;  ///< of one step of a collective
  friend bool operator==(const ScaleOut&, const ScaleOut&) = default;
};

struct HardwareProfile {
  std::string id;
  std::string name;
  Device device;
  KernelCosts kernels;
  HostLink link;
  Host host;
  ScaleUp scale_up;
  ScaleOut scale_out;
  friend bool operator==(const HardwareProfile&, const HardwareProfile&) = default;
};

}  // namespace spillway
