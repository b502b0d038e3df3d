#include "calibration/probe/cuda/cuda_device.h"

#include <cuda_runtime.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "calibration/probe/cuda/buffers.h"
#include "calibration/probe/cuda/gemm.h"
#include "calibration/probe/cuda/host_memory.h"
#include "calibration/probe/cuda/kernels.h"
#include "calibration/probe/cuda/nvml.h"

namespace spillway::probe {
namespace {

constexpr std::int64_t kLookedAt = std::int64_t{4} << 20;  // bytes compared at each end of a copy

/// A call of CUDA's that failed ends the trial.
struct CudaFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // so that the next trial does not find it
  throw CudaFailed(std::string(what) + ": " + cudaGetErrorString(error));
}
void must(const std::string& why) {
  if (!why.empty()) throw CudaFailed(why);
}

struct Event {
  cudaEvent_t handle = nullptr;
  explicit Event(unsigned flags = cudaEventDefault) {
    must(cudaEventCreateWithFlags(&handle, flags), "an event");
  }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

/// Two words of pinned memory that host and gates share.
struct GateWords {
  volatile int open = 0;
  volatile int given_up = 0;
};

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(':') + 2, line.size()));
  return "";
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::int64_t largest_copy)
      : nodes_(read_numa_nodes()), buffers_(largest_copy, nodes_), machine_(find_machine()) {
    must(cudaHostAlloc(reinterpret_cast<void**>(&words_), sizeof(GateWords), cudaHostAllocPortable),
         "pinned memory");
    new (words_) GateWords;
  }
  ~CudaDevice() override {
    for (auto& [key, stream] : streams_) cudaStreamDestroy(stream);
    cudaFreeHost(words_);
  }

  Machine machine() override { return machine_; }
  GpuState state(int gpu) override { return nvml_.state(gpu_at(gpu).bus_id); }
  double now() override {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
  }

  TrialResult run(const Trial& trial) override {
    try {
      for (const Load& load : trial.loads) prepare(load);
      return trial.host_waits ? run_waiting(trial.loads.front()) : run_gated(trial.loads);
    } catch (const CudaFailed& failed) {
      return {failed.what(), {}, 0};
    }
  }

  std::string verify(const CopyLoad& copy) override {
    try {
      prepare(copy);
      return compare_after(copy);
    } catch (const CudaFailed& failed) {
      return failed.what();
    }
  }

 private:
  const Gpu& gpu_at(int index) const { return machine_.gpus.at(static_cast<std::size_t>(index)); }

  Machine find_machine() {
    Machine machine;
    int count = 0, runtime = 0;
    must(cudaGetDeviceCount(&count), "devices");
    cudaRuntimeGetVersion(&runtime);
    machine.cuda = version_text(runtime);
    machine.driver = nvml_.driver_version();
    machine.cpu = cpu_name();
    machine.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    machine.iommu = first_line("/sys/class/iommu/dmar0/intel-iommu/version").empty() ? "" : "intel";
    machine.page_bytes = sysconf(_SC_PAGESIZE);
    utsname system{};
    if (uname(&system) == 0) machine.kernel = system.release;
    machine.nodes = nodes_;
    for (int i = 0; i < count; ++i) machine.gpus.push_back(find_gpu(i));
    return machine;
  }
  Gpu find_gpu(int index) {
    cudaDeviceProp properties{};
    must(cudaGetDeviceProperties(&properties, index), "a device's properties");
    std::array<char, 32> bus{};
    must(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index), "a bus id");
    Gpu gpu;
    gpu.index = index;
    gpu.name = properties.name;
    gpu.bus_id = bus.data();
    gpu.compute_capability =
        std::to_string(properties.major) + "." + std::to_string(properties.minor);
    gpu.hbm_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    gpu.l2_bytes = properties.l2CacheSize;
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.copy_engines = properties.asyncEngineCount;
    gpu.numa_node = numa_node_of(gpu.bus_id, nodes_);
    nvml_.describe(gpu);
    return gpu;
  }

  cudaStream_t stream(int gpu, std::size_t which) {
    cudaStream_t& found = streams_[{gpu, which}];
    if (found == nullptr) {
      cudaSetDevice(gpu);
      must(cudaStreamCreateWithFlags(&found, cudaStreamNonBlocking), "a stream");
    }
    return found;
  }

  /// Buffers and operands are made, and code is loaded by one run that no gate holds: loading may
  /// wait for the device, which would wait for the gate.
  void prepare(const Load& load) {
    if (const auto* copy = std::get_if<CopyLoad>(&load)) {
      must(buffers_.prepare(*copy, gpu_at(copy->gpu).numa_node));
      if (copy->by_kernel) warm("copy" + std::to_string(copy->gpu), load);
      return;
    }
    const KernelLoad& kernel = std::get<KernelLoad>(load);
    cudaSetDevice(kernel.gpu);
    std::string key =
        std::to_string(static_cast<int>(kernel.kernel)) + "." + std::to_string(kernel.gpu);
    if (kernel.kernel == Kernel::kGemm) {
      must(gemms(kernel.gpu).prepare(kernel));
      key += "." + std::to_string(static_cast<int>(kernel.type)) + "." + std::to_string(kernel.m) +
             "." + std::to_string(kernel.n) + "." + std::to_string(kernel.k) +
             (kernel.zeros ? "z" : "");
    } else if (kernel.kernel != Kernel::kSpin &&
               buffers_.scratch(kernel.gpu, kernel.bytes) == nullptr) {
      throw CudaFailed("not enough device memory");
    }
    warm(key, load);
  }
  void warm(const std::string& key, Load load) {
    if (!warmed_.insert(key).second) return;
    if (auto* kernel = std::get_if<KernelLoad>(&load)) kernel->launches = 1;
    if (auto* copy = std::get_if<CopyLoad>(&load)) copy->copies = 1;
    const int gpu = std::visit([](const auto& some) { return some.gpu; }, load);
    int* given_up = const_cast<int*>(&words_->given_up);
    cudaSetDevice(gpu);
    words_->open = 1;
    launch_gate(const_cast<int*>(&words_->open), given_up, stream(gpu, 0));
    enqueue(load, stream(gpu, 0));
    must(cudaDeviceSynchronize(), "a first run");
  }
  Gemms& gemms(int gpu) {
    std::unique_ptr<Gemms>& found = gemms_[gpu];
    if (!found) found = std::make_unique<Gemms>(gpu);
    return *found;
  }

  void enqueue(const CopyLoad& copy, cudaStream_t on) {
    const bool in = copy.direction == Direction::kHostToDevice;
    const cudaMemcpyKind kind = in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    Arena& host = buffers_.host(copy);
    Arena& device = buffers_.device(copy);
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    for (int i = 0; i < copy.copies; ++i) {
      char* there = host.take(copy.bytes);
      if (copy.row_bytes > 0) {
        const auto row = static_cast<std::size_t>(copy.row_bytes),
                   pitch = static_cast<std::size_t>(copy.pitch_bytes);
        char* here = device.memory;
        must(in ? cudaMemcpy2DAsync(here, pitch, there, row, row, bytes / row, kind, on)
                : cudaMemcpy2DAsync(there, row, here, pitch, row, bytes / row, kind, on),
             "a copy of rows");
        continue;
      }
      char* here = device.take(copy.bytes);
      void* to = in ? here : there;
      const void* from = in ? there : here;
      if (copy.by_kernel)
        launch_copy(to, from, copy.bytes, gpu_at(copy.gpu).multiprocessors, on);
      else
        must(cudaMemcpyAsync(to, from, bytes, kind, on), "a copy");
    }
  }
  void enqueue(const KernelLoad& kernel, cudaStream_t on) {
    for (int i = 0; i < kernel.launches; ++i) {
      if (kernel.kernel == Kernel::kSpin)
        launch_spin(kernel.cycles, on);
      else if (kernel.kernel == Kernel::kGemm)
        must(gemms(kernel.gpu).enqueue(kernel, on));
      else
        launch_traffic(kernel.kernel, buffers_.scratch(kernel.gpu, kernel.bytes), kernel.bytes,
                       gpu_at(kernel.gpu).multiprocessors, on);
    }
  }
  void enqueue(const Load& load, cudaStream_t on) {
    std::visit([&](const auto& some) { enqueue(some, on); }, load);
    must(cudaGetLastError(), "a launch");
  }

  /// The host asks and waits; near the device, as a process that is bound well would be.
  TrialResult run_waiting(const Load& load) {
    const int gpu = std::visit([](const auto& some) { return some.gpu; }, load);
    const OnNode here(gpu_at(gpu).numa_node, nodes_);
    cudaSetDevice(gpu);
    cudaStream_t on = stream(gpu, 1);
    must(cudaStreamSynchronize(on), "waiting");
    const double start = now();
    enqueue(load, on);
    const double queued = now();
    must(cudaStreamSynchronize(on), "waiting");
    return {"", {now() - start}, queued - start};
  }

  /// One gate a GPU, whose stream all others of that GPU wait for.
  TrialResult run_gated(const std::vector<Load>& loads) {
    const OnNode here(machine_.gpus.front().numa_node, nodes_);
    words_->open = 0;
    words_->given_up = 0;
    std::map<int, std::unique_ptr<Event>> gates;
    std::vector<std::unique_ptr<Event>> starts, ends;
    TrialResult result;
    try {
      for (const Load& load : loads) close_gate(gpu_of(load), gates);
      const double before = now();
      for (std::size_t i = 0; i < loads.size(); ++i) {
        const int gpu = gpu_of(loads[i]);
        cudaSetDevice(gpu);
        cudaStream_t on = stream(gpu, i + 1);
        starts.push_back(std::make_unique<Event>());
        ends.push_back(std::make_unique<Event>());
        must(cudaStreamWaitEvent(on, gates.at(gpu)->handle, 0), "waiting for the gate");
        must(cudaEventRecord(starts.back()->handle, on), "an event");
        enqueue(loads[i], on);
        must(cudaEventRecord(ends.back()->handle, on), "an event");
      }
      result.enqueue_seconds = now() - before;
    } catch (...) {
      words_->open = 1;  // whatever went wrong, nobody may wait for ever
      synchronize(gates);
      throw;
    }
    words_->open = 1;
    must(synchronize(gates), "a trial");
    if (words_->given_up != 0)
      throw CudaFailed("the gate gave up: queueing took longer than ten seconds");
    for (std::size_t i = 0; i < loads.size(); ++i) {
      float milliseconds = 0;
      must(cudaEventElapsedTime(&milliseconds, starts[i]->handle, ends[i]->handle), "a time");
      result.seconds.push_back(milliseconds * 1e-3);
    }
    return result;
  }
  static int gpu_of(const Load& load) {
    return std::visit([](const auto& some) { return some.gpu; }, load);
  }
  void close_gate(int gpu, std::map<int, std::unique_ptr<Event>>& gates) {
    if (gates.contains(gpu)) return;
    cudaSetDevice(gpu);
    gates[gpu] = std::make_unique<Event>(cudaEventDisableTiming);
    launch_gate(const_cast<int*>(&words_->open), const_cast<int*>(&words_->given_up),
                stream(gpu, 0));
    must(cudaGetLastError(), "a gate");
    must(cudaEventRecord(gates[gpu]->handle, stream(gpu, 0)), "an event");
  }
  static cudaError_t synchronize(const std::map<int, std::unique_ptr<Event>>& gates) {
    cudaError_t first = cudaSuccess;
    for (const auto& [gpu, gate] : gates) {
      cudaSetDevice(gpu);
      const cudaError_t error = cudaDeviceSynchronize();
      if (first == cudaSuccess) first = error;
    }
    return first;
  }

  /// Empties the target, copies once from the start of the arenas, and compares both ends.
  std::string compare_after(const CopyLoad& copy) {
    cudaSetDevice(copy.gpu);
    Arena& host = buffers_.host(copy);
    Arena& device = buffers_.device(copy);
    host.next = device.next = 0;
    const bool in = copy.direction == Direction::kHostToDevice;
    const bool pitched = copy.row_bytes > 0;
    const std::int64_t span = pitched ? copy.bytes / copy.row_bytes * copy.pitch_bytes : copy.bytes;
    if (in)
      must(cudaMemset(device.memory, 0, static_cast<std::size_t>(span)), "emptying");
    else
      std::fill_n(host.memory, copy.bytes, char{0});
    must(cudaDeviceSynchronize(), "emptying");  // our streams do not wait for the default one
    CopyLoad once = copy;
    once.copies = 1;
    enqueue(Load{once}, stream(copy.gpu, 1));
    must(cudaStreamSynchronize(stream(copy.gpu, 1)), "a copy");
    const std::int64_t length = std::min(copy.bytes, kLookedAt);
    for (const std::int64_t from : {std::int64_t{0}, (copy.bytes - length) / 8 * 8}) {
      const std::string wrong = compare(copy, from, length);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  /// Bytes `from` up of what was copied: host words hold the pattern by their own place, and so do
  /// device words, rows with gaps between them.
  std::string compare(const CopyLoad& copy, std::int64_t from, std::int64_t length) {
    const bool in = copy.direction == Direction::kHostToDevice;
    const auto device_place = [&](std::int64_t byte) {
      if (copy.row_bytes == 0) return byte;
      return byte / copy.row_bytes * copy.pitch_bytes + byte % copy.row_bytes;
    };
    const std::int64_t first = device_place(from), last = device_place(from + length - 8) + 8;
    std::vector<std::uint64_t> seen(static_cast<std::size_t>(last - first) / 8);
    if (in)
      must(cudaMemcpy(seen.data(), buffers_.device(copy).memory + first,
                      static_cast<std::size_t>(last - first), cudaMemcpyDeviceToHost),
           "looking");
    const auto* host = reinterpret_cast<const std::uint64_t*>(buffers_.host(copy).memory);
    for (std::int64_t byte = from; byte + 8 <= from + length; byte += 8) {
      const std::uint64_t found =
          in ? seen[static_cast<std::size_t>((device_place(byte) - first) / 8)] : host[byte / 8];
      const std::int64_t source = in ? byte : device_place(byte);
      if (found != pattern_word(static_cast<std::uint64_t>(source / 8)))
        return "byte " + std::to_string(byte) + " differs";
    }
    return "";
  }

  std::vector<NumaNode> nodes_;
  Nvml nvml_;
  Buffers buffers_;
  Machine machine_;
  GateWords* words_ = nullptr;
  std::map<std::pair<int, std::size_t>, cudaStream_t> streams_;
  std::map<int, std::unique_ptr<Gemms>> gemms_;
  std::set<std::string> warmed_;
};

}  // namespace

std::string why_no_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver)
    return "there is no NVIDIA driver here, or one that is older than this CUDA";
  if (error != cudaSuccess || count == 0)
    return error == cudaSuccess || error == cudaErrorNoDevice
               ? "there is no NVIDIA GPU here"
               : std::string("CUDA says: ") + cudaGetErrorString(error);
  return "";
}

std::unique_ptr<Device> make_cuda_device(std::int64_t largest_copy) {
  return std::make_unique<CudaDevice>(largest_copy);
}

}  // namespace spillway::probe
