#include "calibration/import/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calibration/import/text_scan.h"
#include "model/base/utf8.h"

namespace spillway::calibration {
namespace {

/// "16x" or "16".
std::optional<int> lanes_in(std::string_view text) {
  if (text.ends_with('x')) text.remove_suffix(1);
  const auto lanes = to_whole(text);
  return lanes && *lanes > 0 && *lanes <= 32 ? std::optional(static_cast<int>(*lanes))
                                             : std::nullopt;
}

std::optional<double> leading_number(std::string_view text) {
  const auto words = words_of(text);
  return words.empty() ? std::nullopt : to_number(words[0]);
}

/// What `nvidia-smi -q` says of one GPU.
struct GpuState {
  std::string name;
  std::optional<int> generation, generation_max, lanes, lanes_max;
  std::string performance_state;
  std::uint32_t line = 0;
};

class SmiReader {
 public:
  SmiReader(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  Result<Measurements> run() {
    each_line(text_, [&](std::string_view line, std::uint32_t number) {
      line_ = number;
      read(line);
    });
    finish_c2c();
    finish_topology();
    finish_links();
    if (formats_.empty())
      return error_in_file(path_, "nothing of nvidia-smi that is of use",
                           "give the output of nvidia-smi -q, nvidia-smi c2c -s or nvidia-smi "
                           "topo -m");
    std::string formats;
    for (const std::string& format : formats_) formats += (formats.empty() ? "" : ", ") + format;
    result_.sources.push_back({path_, formats,
                               fmt::format("{} rates of links, {} GPUs", result_.link_caps.size(),
                                           gpus_.size() + c2c_.size() + numa_.size())});
    return std::move(result_);
  }

 private:
  void read(std::string_view line) {
    const std::string_view bare = trimmed(line);
    if (bare.empty()) return;
    if (read_c2c(bare) || read_nccl(bare) || read_topology(bare)) return;
    read_query(line, bare);
  }

  // --- nvidia-smi c2c -s -----------------------------------------------------------------------

  /// "GPU 0: NVIDIA GH200 480GB (UUID: …)", then "C2C Link 0: 44.712 GB/s".
  bool read_c2c(std::string_view line) {
    if (line.starts_with("GPU ") && line.find("(UUID:") != std::string_view::npos) {
      const std::size_t colon = line.find(": ");
      c2c_.emplace_back();
      c2c_.back().line = line_;
      if (result_.machine.device.empty() && colon != std::string_view::npos)
        result_.machine.device =
            printable_line(line.substr(colon + 2, line.find(" (UUID:") - colon - 2));
      return true;
    }
    if (!line.starts_with("C2C Link ")) return false;
    const std::size_t colon = line.find(": ");
    const auto rate =
        colon == std::string_view::npos ? std::nullopt : leading_number(line.substr(colon + 2));
    if (c2c_.empty()) c2c_.emplace_back();
    if (rate)
      c2c_.back().rates.push_back(*rate);
    else
      ++c2c_.back().inactive;
    return true;
  }

  /// NCCL: <c2c bw="44712" count="5"/>, MB/s of one link and how many.
  bool read_nccl(std::string_view line) {
    const std::size_t at = line.find("<c2c ");
    if (at == std::string_view::npos) return false;
    const auto attribute = [&](std::string_view key) -> std::optional<double> {
      const std::size_t begin = line.find(key, at);
      if (begin == std::string_view::npos) return std::nullopt;
      const std::string_view rest = line.substr(begin + key.size());
      return to_number(rest.substr(0, rest.find('"')));
    };
    const auto rate = attribute("bw=\""), count = attribute("count=\"");
    if (rate && count && *rate > 0 && *count > 0)
      add_cap(BytesPerSecond(*rate * *count * 1e6),
              fmt::format("{} C2C links of {} GB/s", *count, *rate / 1000), true);
    formats_.insert("NCCL topology");
    return true;
  }

  void finish_c2c() {
    for (const C2c& gpu : c2c_) {
      double sum = 0;
      for (const double rate : gpu.rates) sum += rate;
      if (gpu.inactive > 0)
        warn("lanes",
             fmt::format("{} of {} C2C links are not active", gpu.inactive,
                         gpu.rates.size() + static_cast<std::size_t>(gpu.inactive)),
             gpu.line);
      if (sum <= 0) continue;
      formats_.insert("nvidia-smi c2c");
      add_cap(BytesPerSecond(sum * 1e9),
              fmt::format("{} C2C links of {} GB/s", gpu.rates.size(), gpu.rates.front()), true,
              gpu.line);
    }
    if (!c2c_.empty()) set_gpus(static_cast<std::int64_t>(c2c_.size()));
  }

  // --- nvidia-smi topo -m ----------------------------------------------------------------------

  /// The head names the columns, the last of which are "CPU Affinity", "NUMA Affinity" and "GPU
  /// NUMA ID"; GPU rows begin with GPUk.
  bool read_topology(std::string_view line) {
    if (line.find("CPU Affinity") != std::string_view::npos &&
        line.find("GPU0") != std::string_view::npos) {
      topology_ = true;
      formats_.insert("nvidia-smi topo");
      columns_ = 0;
      for (const std::string_view word : words_of(line.substr(0, line.find("CPU Affinity"))))
        if (word.starts_with("GPU") || word.starts_with("NIC") || word.starts_with("mlx"))
          ++columns_;
      return true;
    }
    if (!topology_ || !line.starts_with("GPU")) return false;
    const auto words = words_of(line);
    if (!to_whole(words[0].substr(3)) || words.size() < columns_ + 1) return false;
    // Behind the connections: "0-47,96-143  0  N/A".
    std::string numa = "?";
    if (words.size() > columns_ + 2 && to_whole(words[columns_ + 2])) numa = words[columns_ + 2];
    numa_.push_back(numa);
    return true;
  }

  void finish_topology() {
    if (numa_.empty()) return;
    set_gpus(static_cast<std::int64_t>(numa_.size()));
    std::map<std::string, std::int64_t> of_node;
    for (const std::string& node : numa_) ++of_node[node];
    if (of_node.contains("?")) {
      warn("numa-unknown",
           "topo -m names no NUMA node for some GPUs: which memory is near them is "
           "not known",
           0);
      return;
    }
    const auto most = std::ranges::max_element(of_node, {}, [](const auto& e) { return e.second; });
    result_.machine.gpus_per_cpu = Count(most->second);
    result_.machine.cpus = Count(static_cast<std::int64_t>(of_node.size()));
  }

  // --- nvidia-smi -q ---------------------------------------------------------------------------

  /// Indented "Key : value" lines below headings. Links: "GPU Link Info", "PCIe Generation" with
  /// Max and Current, "Link Width" with Max and Current.
  void read_query(std::string_view line, std::string_view bare) {
    if (bare.find("NVSMI LOG") != std::string_view::npos) formats_.insert("nvidia-smi -q");
    if (!formats_.contains("nvidia-smi -q")) return;
    if (line.starts_with("GPU ") && bare.find(':') != std::string_view::npos) {
      gpus_.emplace_back();
      gpus_.back().line = line_;
      heading_.clear();
      return;
    }
    if (bare.find(" : ") == std::string_view::npos && !bare.ends_with(" :")) {
      heading_ = bare;
      return;
    }
    read_machine(bare);
    if (!gpus_.empty()) read_gpu(bare, gpus_.back());
  }

  void read_machine(std::string_view line) {
    MachineFacts& machine = result_.machine;
    if (const auto v = value_of(line, "Driver Version"); !v.empty()) machine.driver = v;
    if (const auto v = value_of(line, "CUDA Version"); !v.empty()) machine.cuda = v;
    if (const auto v = value_of(line, "Timestamp"); !v.empty()) machine.date = v;
    if (const auto v = to_whole(value_of(line, "Attached GPUs")); v && *v > 0) set_gpus(*v);
  }

  void read_gpu(std::string_view line, GpuState& gpu) {
    MachineFacts& machine = result_.machine;
    if (const auto v = value_of(line, "Product Name"); !v.empty()) {
      gpu.name = printable_line(v);
      if (machine.device.empty()) machine.device = gpu.name;
    }
    if (const auto v = value_of(line, "Performance State"); !v.empty()) gpu.performance_state = v;
    const bool generation = heading_ == "PCIe Generation", width = heading_ == "Link Width";
    for (const char* key : {"Max", "Host Max", "Device Max"}) {
      const auto value = value_of(line, key);
      if (value.empty()) continue;
      if (generation)
        if (const auto n = to_whole(value))
          gpu.generation_max =
              std::min(gpu.generation_max.value_or(static_cast<int>(*n)), static_cast<int>(*n));
      if (width && std::string_view(key) == "Max") gpu.lanes_max = lanes_in(value);
    }
    if (const auto value = value_of(line, "Current"); !value.empty()) {
      if (generation)
        if (const auto n = to_whole(value)) gpu.generation = static_cast<int>(*n);
      if (width) gpu.lanes = lanes_in(value);
      if (heading_ == "MIG Mode") read_mig(value);
    }
    if (heading_ == "FB Memory Usage")
      if (const auto total = leading_number(value_of(line, "Total")))
        machine.hbm_capacity = Bytes(static_cast<std::int64_t>(*total * 1048576));
    for (const char* key : {"SW Power Cap", "HW Thermal Slowdown", "SW Thermal Slowdown",
                            "HW Power Brake Slowdown", "HW Slowdown"})
      if (value_of(line, key) == "Active")
        warn("throttled", fmt::format("{} is active: kernels run below their clocks", key), line_);
  }

  void read_mig(std::string_view value) {
    if (value == "Disabled" || value == "N/A") {
      if (!result_.machine.mig) result_.machine.mig = false;
      return;
    }
    if (result_.machine.mig != std::optional(true))
      warn("mig",
           "MIG is on: a slice has its part of the SMs and of HBM, and shares the link with "
           "the others",
           line_);
    result_.machine.mig = true;
  }

  void finish_links() {
    std::set<std::string> told;
    for (const GpuState& gpu : gpus_) {
      if (!gpu.generation_max || !gpu.lanes) continue;
      const int lanes = *gpu.lanes;
      const bool idle = gpu.generation && *gpu.generation < *gpu.generation_max;
      const auto rate = pcie_rate(*gpu.generation_max, lanes);
      if (rate)
        add_cap(*rate, fmt::format("PCIe gen {} x{}", *gpu.generation_max, lanes), !idle, gpu.line);
      if (idle && told.insert("idle").second)
        warn("idle-link",
             fmt::format("the link is shown at gen {} of {}{}: links slow down when idle, ask "
                         "again while copies run",
                         *gpu.generation, *gpu.generation_max,
                         gpu.performance_state.empty() ? "" : " in state " + gpu.performance_state),
             gpu.line);
      if (gpu.lanes_max && lanes < *gpu.lanes_max && told.insert("lanes").second)
        warn("lanes",
             fmt::format("{} of {} lanes are in use: the slot, a riser or a switch has no more, or "
                         "the card sits badly",
                         lanes, *gpu.lanes_max),
             gpu.line);
    }
    if (!gpus_.empty()) set_gpus(static_cast<std::int64_t>(gpus_.size()));
  }

  // ---------------------------------------------------------------------------------------------

  void add_cap(BytesPerSecond cap, std::string text, bool under_load, std::uint32_t line = 0) {
    result_.link_caps.push_back(
        {cap, std::move(text), under_load, {path_, line > 0 ? line : line_, {}}});
  }
  void warn(std::string code, std::string text, std::uint32_t line) {
    SourceRef where{path_, {}, {}};
    if (line > 0) where.line = line;
    result_.warnings.push_back({std::move(code), std::move(text), std::move(where)});
  }
  void set_gpus(std::int64_t gpus) {
    if (!result_.machine.gpus) result_.machine.gpus = Count(gpus);
  }

  struct C2c {
    std::vector<double> rates;
    int inactive = 0;
    std::uint32_t line = 0;
  };

  std::string_view text_;
  std::string path_;
  std::uint32_t line_ = 0;
  Measurements result_;
  std::set<std::string> formats_;
  std::vector<C2c> c2c_;
  std::vector<GpuState> gpus_;
  std::vector<std::string> numa_;
  std::string heading_;
  std::size_t columns_ = 0;
  bool topology_ = false;
};

}  // namespace

bool is_nvidia_smi(std::string_view text) {
  for (const char* sign : {"NVSMI LOG", "C2C Link ", "CPU Affinity", "<c2c "})
    if (text.find(sign) != std::string_view::npos) return true;
  return false;
}

Result<Measurements> read_nvidia_smi(std::string_view text, const std::string& path) {
  return SmiReader(text, path).run();
}

std::optional<BytesPerSecond> pcie_rate(int generation, int lanes) {
  // Gigatransfers a second and lane, a bit each.
  constexpr double kRates[] = {2.5, 5, 8, 16, 32, 64};
  if (generation < 1 || generation > 6 || lanes < 1) return std::nullopt;
  const double coding = generation <= 2 ? 8.0 / 10 : generation <= 5 ? 128.0 / 130 : 242.0 / 256;
  return BytesPerSecond(kRates[generation - 1] * 1e9 / 8 * coding * lanes);
}

}  // namespace spillway::calibration
