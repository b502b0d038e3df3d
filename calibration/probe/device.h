// What the probe asks of a machine with GPUs: run these loads at once and say how long each took.
// How trials are chosen, repeated and judged is probe.h, against this interface; the one with CUDA
// behind it is cuda/cuda_device.h. Nothing in this folder needs more than the standard library, so
// that a machine with a compiler and the CUDA toolkit alone can build the probe.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spillway::probe {

enum class Direction { kHostToDevice, kDeviceToHost };
enum class Pages { kPinned, kRegistered, kPageable };

/// Copies that follow each other on one stream, over memory that no cache holds.
struct CopyLoad {
  int gpu = 0;
  Direction direction = Direction::kHostToDevice;
  std::int64_t bytes = 0;  ///< of one copy
  int copies = 1;
  Pages pages = Pages::kPinned;
  int numa_node = -1;            ///< of the host memory; -1: the GPU's own
  std::int64_t row_bytes = 0;    ///< 0: contiguous
  std::int64_t pitch_bytes = 0;  ///< from one row's start to the next, on the device
  bool by_kernel = false;        ///< loads and stores across the link, no copy engine
};

enum class Kernel {
  kSpin,   ///< `cycles` of one thread, 0: nothing at all
  kRead,   ///< sums
  kWrite,  ///< fills
  kCopy,   ///< device to device
  kTriad,  ///< a = b + s c
  kGemm,
};
enum class GemmType { kBf16, kF8 };

/// Launches of one kernel that follow each other on one stream.
struct KernelLoad {
  int gpu = 0;
  Kernel kernel = Kernel::kSpin;
  int launches = 1;
  std::int64_t cycles = 0;
  std::int64_t bytes = 0;  ///< of HBM, read and written, by one launch
  GemmType type = GemmType::kBf16;
  std::int64_t m = 0, n = 0, k = 0;
  bool zeros = false;  ///< operands; random otherwise
};

using Load = std::variant<CopyLoad, KernelLoad>;

/// All loads wait until everything is queued, then start at once, each on a stream of its own.
struct Trial {
  std::vector<Load> loads;
  /// The host asks for the one load and waits for it; its clock is the time. For pageable copies,
  /// too, which the driver does not queue.
  bool host_waits = false;
};

struct TrialResult {
  std::string failure;          ///< empty when it ran
  std::vector<double> seconds;  ///< start to end, for each load
  double enqueue_seconds = 0;   ///< the host's, for all of them
};

/// What may change while measuring.
struct GpuState {
  double sm_hertz = 0;     ///< 0: not known
  double most_hertz = 0;   ///< what the device may reach
  bool throttled = false;  ///< for heat or a power brake; a power cap is the normal state
  std::string reasons;     ///< "power cap", for people
  int pcie_generation = 0, pcie_width = 0;  ///< now; 0: not known, or no PCIe
};

struct Gpu {
  int index = 0;
  std::string name, uuid_hash, compute_capability, bus_id;
  std::int64_t hbm_bytes = 0, l2_bytes = 0;
  int multiprocessors = 0, copy_engines = 0;
  int numa_node = -1;  ///< of the CPU it hangs on; -1: not known
  int pcie_generation_most = 0, pcie_width_most = 0;
  int c2c_links = 0;
  double c2c_bytes_per_second = 0;  ///< of all links, per direction
  double power_limit_watts = 0;
  bool ecc = false, mig = false;
};

struct NumaNode {
  int node = 0;
  std::string cpus;  ///< "0-15,32-47"; empty for memory without CPUs (HBM of Grace machines)
  std::int64_t memory_bytes = 0;
};

struct Machine {
  std::string driver, cuda, kernel, cpu, governor, iommu;
  std::int64_t page_bytes = 0;
  std::vector<Gpu> gpus;
  std::vector<NumaNode> nodes;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual Machine machine() = 0;
  virtual GpuState state(int gpu) = 0;
  virtual TrialResult run(const Trial& trial) = 0;
  /// Makes one copy into memory of another pattern and compares; empty when every byte that was
  /// looked at is right.
  virtual std::string verify(const CopyLoad& copy) = 0;
  /// Seconds on a clock that does not jump.
  virtual double now() = 0;
};

}  // namespace spillway::probe
