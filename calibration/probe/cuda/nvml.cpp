#include "calibration/probe/cuda/nvml.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace spillway::probe {
namespace {

// The toolkit does not come with nvml.h; what of NVML's stable interface is used is declared here.
using Return = int;  // 0: success
using Handle = void*;
constexpr int kSmClock = 1;
constexpr unsigned kC2cLinkCount = 170, kC2cLinkBandwidth = 172;  // field values; MB/s a link
constexpr unsigned long long kPowerCap = 0x4, kHardwareSlowdown = 0x8, kThermal = 0x20,
                             kHardwareThermal = 0x40, kPowerBrake = 0x80;

struct FieldValue {
  unsigned id = 0, scope = 0;
  long long timestamp = 0, latency = 0;
  unsigned type = 0;
  Return result = 1;
  union {
    double real;
    unsigned whole;
    unsigned long long large;
  } value{};
};

/// FNV-1a, so that a file can be told from another machine's without naming this one.
std::string hash_of(const char* text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  std::array<char, 17> hex;
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(hash));
  return hex.data();
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*by_bus_id)(const char*, Handle*) = nullptr;
  Return (*clock)(Handle, int, unsigned*) = nullptr;
  Return (*most_clock)(Handle, int, unsigned*) = nullptr;
  Return (*reasons)(Handle, unsigned long long*) = nullptr;
  Return (*generation)(Handle, unsigned*) = nullptr;
  Return (*width)(Handle, unsigned*) = nullptr;
  Return (*most_generation)(Handle, unsigned*) = nullptr;
  Return (*most_width)(Handle, unsigned*) = nullptr;
  Return (*power_limit)(Handle, unsigned*) = nullptr;
  Return (*ecc)(Handle, unsigned*, unsigned*) = nullptr;
  Return (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  Return (*uuid)(Handle, char*, unsigned) = nullptr;
  Return (*fields)(Handle, int, FieldValue*) = nullptr;

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
  }
  Handle device(const std::string& bus_id) const {
    Handle found = nullptr;
    return by_bus_id != nullptr && by_bus_id(bus_id.c_str(), &found) == 0 ? found : nullptr;
  }
  /// 0 where the driver does not say.
  template <typename Function, typename... Args>
  static unsigned ask(Function function, Args... args) {
    unsigned value = 0;
    return function != nullptr && function(args..., &value) == 0 ? value : 0;
  }
  static bool is_on(Return (*function)(Handle, unsigned*, unsigned*), Handle device) {
    unsigned now = 0, later = 0;
    return function != nullptr && function(device, &now, &later) == 0 && now == 1;
  }
  unsigned field(Handle device, unsigned id) const {
    FieldValue value;
    value.id = id;
    if (fields == nullptr || fields(device, 1, &value) != 0 || value.result != 0) return 0;
    return value.value.whole;
  }
};

Nvml::Nvml() {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (handle == nullptr) return;
  library_ = std::make_unique<Library>();
  Library& l = *library_;
  l.handle = handle;
  l.find(l.init, "nvmlInit_v2");
  l.find(l.shutdown, "nvmlShutdown");
  l.find(l.driver_version, "nvmlSystemGetDriverVersion");
  l.find(l.by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  l.find(l.clock, "nvmlDeviceGetClockInfo");
  l.find(l.most_clock, "nvmlDeviceGetMaxClockInfo");
  l.find(l.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  l.find(l.generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  l.find(l.width, "nvmlDeviceGetCurrPcieLinkWidth");
  l.find(l.most_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  l.find(l.most_width, "nvmlDeviceGetMaxPcieLinkWidth");
  l.find(l.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  l.find(l.ecc, "nvmlDeviceGetEccMode");
  l.find(l.mig, "nvmlDeviceGetMigMode");
  l.find(l.uuid, "nvmlDeviceGetUUID");
  l.find(l.fields, "nvmlDeviceGetFieldValues");
  if (l.init == nullptr || l.init() != 0) library_.reset();
}

Nvml::~Nvml() {
  if (library_ && library_->shutdown != nullptr) library_->shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!library_ || library_->driver_version == nullptr ||
      library_->driver_version(text.data(), static_cast<unsigned>(text.size())) != 0)
    return "";
  return text.data();
}

void Nvml::describe(Gpu& gpu) const {
  if (!library_) return;
  const Library& l = *library_;
  Handle device = l.device(gpu.bus_id);
  if (device == nullptr) return;
  gpu.pcie_generation_most = static_cast<int>(Library::ask(l.most_generation, device));
  gpu.pcie_width_most = static_cast<int>(Library::ask(l.most_width, device));
  gpu.power_limit_watts = Library::ask(l.power_limit, device) / 1000.0;
  gpu.ecc = Library::is_on(l.ecc, device);
  gpu.mig = Library::is_on(l.mig, device);
  gpu.c2c_links = static_cast<int>(l.field(device, kC2cLinkCount));
  gpu.c2c_bytes_per_second = gpu.c2c_links * (l.field(device, kC2cLinkBandwidth) * 1e6);
  std::array<char, 96> uuid{};
  if (l.uuid != nullptr && l.uuid(device, uuid.data(), static_cast<unsigned>(uuid.size())) == 0)
    gpu.uuid_hash = hash_of(uuid.data());
}

GpuState Nvml::state(const std::string& bus_id) const {
  GpuState state;
  if (!library_) return state;
  const Library& l = *library_;
  Handle device = l.device(bus_id);
  if (device == nullptr) return state;
  state.sm_hertz = Library::ask(l.clock, device, kSmClock) * 1e6;
  state.most_hertz = Library::ask(l.most_clock, device, kSmClock) * 1e6;
  state.pcie_generation = static_cast<int>(Library::ask(l.generation, device));
  state.pcie_width = static_cast<int>(Library::ask(l.width, device));
  unsigned long long reasons = 0;
  if (l.reasons == nullptr || l.reasons(device, &reasons) != 0) return state;
  state.throttled =
      (reasons & (kHardwareSlowdown | kThermal | kHardwareThermal | kPowerBrake)) != 0;
  if ((reasons & kPowerCap) != 0) state.reasons = "power cap";
  if (state.throttled) state.reasons = "heat or power brake";
  return state;
}

}  // namespace spillway::probe
