#include "calibration/read_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "calibration/fit/robust.h"
#include "model/base/format.h"

namespace spillway::calibration {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "spillway.probe/1";

/// A file that is no probe's, or was changed by hand.
struct Malformed {
  std::string what;
};

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Malformed{fmt::format("'{}' is missing", key)};
  return *found;
}
std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_string()) throw Malformed{fmt::format("'{}' must be a text", key)};
  return value.get<std::string>();
}
double number_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_number()) throw Malformed{fmt::format("'{}' must be a number", key)};
  return value.get<double>();
}
std::int64_t count_of(const Json& object, const char* key) {
  const double value = number_of(object, key);
  if (!(value >= 0 && value < 0x1p53))
    throw Malformed{fmt::format("'{}' must be a whole number from 0 up", key)};
  return static_cast<std::int64_t>(value);
}
bool flag_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}
const Json& list_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_array()) throw Malformed{fmt::format("'{}' must be a list", key)};
  return value;
}
/// What a word stands for: another word is no other of them.
template <typename T>
T one_of(const Json& object, const char* key,
         std::initializer_list<std::pair<std::string_view, T>> words) {
  const std::string text = text_of(object, key);
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (word == text) return meaning;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw Malformed{
      fmt::format("'{}' is {}, and must be one of {}", key, spillway::quoted(text), known)};
}
/// Positive times; of one that is left out, none.
std::vector<Seconds> times_of(const Json& object, const char* key) {
  std::vector<Seconds> times;
  if (!object.contains(key)) return times;
  for (const Json& value : list_of(object, key)) {
    if (!value.is_number()) throw Malformed{fmt::format("'{}' must be a list of numbers", key)};
    if (const Seconds time(value.get<double>()); time > Seconds(0)) times.push_back(time);
  }
  return times;
}
double median_of(const std::vector<Seconds>& times) {
  std::vector<double> values;
  for (const Seconds time : times) values.push_back(time.value());
  return median(std::move(values));
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Measurements read(const Json& root) {
    read_machine(member(root, "machine"));
    found_.machine.date = text_of(root, "date");
    for (const Json& item : list_of(root, "measured")) read_point(item);
    for (const char* key : {"failed", "not_measured"})
      for (const Json& item : list_of(root, key))
        found_.skipped.push_back({text_of(item, "what"), text_of(item, "why"), where_});
    warn();
    found_.sources.push_back(
        {path_, "spillway-probe",
         fmt::format("{} copies, {} products, {} memory-bound kernels, {} launches, {} pairs of "
                     "kernels and copies",
                     found_.copies.size(), found_.gemms.size(), found_.traffic.size(),
                     found_.launches.size(), found_.interference.size())});
    return std::move(found_);
  }

 private:
  void read_machine(const Json& machine) {
    MachineFacts& facts = found_.machine;
    facts.driver = text_of(machine, "driver");
    facts.cuda = text_of(machine, "cuda");
    const Json& gpus = list_of(machine, "gpus");
    if (gpus.empty()) throw Malformed{"'gpus' is empty"};
    const Json& first = gpus.front();
    facts.device = text_of(first, "name");
    facts.compute_capability = text_of(first, "compute_capability");
    facts.sm_count = Count(count_of(first, "multiprocessors"));
    facts.hbm_capacity = Bytes(count_of(first, "hbm_bytes"));
    facts.l2_capacity = Bytes(count_of(first, "l2_bytes"));
    facts.mig = flag_of(first, "mig");
    facts.gpus = Count(static_cast<std::int64_t>(gpus.size()));
    own_node_ = static_cast<int>(number_of(first, "numa_node"));
    count_cpus(machine, gpus);
    if (const double cap = number_of(first, "c2c_bytes_per_second"); cap > 0)
      found_.link_caps.push_back(
          {BytesPerSecond(cap),
           fmt::format("{} C2C links, by the driver", count_of(first, "c2c_links")), true, where_});
    most_generation_ = count_of(first, "pcie_generation_most");
    most_width_ = count_of(first, "pcie_width_most");
  }

  /// Nodes with CPUs, and how many GPUs hang on one.
  void count_cpus(const Json& machine, const Json& gpus) {
    std::int64_t cpus = 0;
    for (const Json& node : list_of(machine, "numa_nodes")) cpus += !text_of(node, "cpus").empty();
    std::set<double> used;
    for (const Json& gpu : gpus) used.insert(number_of(gpu, "numa_node"));
    if (cpus == 0 || used.contains(-1) || gpus.size() % used.size() != 0) return;
    found_.machine.cpus = Count(cpus);
    found_.machine.gpus_per_cpu = Count(static_cast<std::int64_t>(gpus.size() / used.size()));
  }

  void read_point(const Json& item) {
    where_ = {path_, {}, {}};
    note_pcie(item);
    unstable_ += !flag_of(item, "stable");
    if (item.contains("slow_clock_samples")) slow_ += count_of(item, "slow_clock_samples");
    const std::string kind = text_of(item, "kind");
    if (kind == "copy") return read_copy(item);
    if (kind == "traffic") return read_traffic(item);
    if (kind == "gemm") return read_gemm(item);
    if (kind == "launch") return read_launch(item);
    if (kind == "interference") return read_interference(item);
    found_.skipped.push_back(
        {spillway::quoted(kind), "this version does not know such points", where_});
  }

  CopySample copy_from(const Json& item) const {
    CopySample sample;
    sample.direction = one_of<CopyDirection>(item, "direction",
                                             {{"host_to_device", CopyDirection::kHostToDevice},
                                              {"device_to_host", CopyDirection::kDeviceToHost}});
    sample.pages = one_of<HostPages>(item, "pages",
                                     {{"pinned", HostPages::kPinned},
                                      {"pageable", HostPages::kPageable},
                                      {"registered", HostPages::kRegistered}});
    sample.by = one_of<CopiedBy>(
        item, "by", {{"copy_engine", CopiedBy::kCopyEngine}, {"kernel", CopiedBy::kKernel}});
    sample.gpu = static_cast<int>(count_of(item, "gpu"));
    sample.bytes = Bytes(count_of(item, "bytes"));
    sample.memory = HostMemory::kNear;
    if (item.contains("numa_node")) {
      sample.numa_node = static_cast<int>(count_of(item, "numa_node"));
      if (*sample.numa_node != own_node_) sample.memory = HostMemory::kFar;
    }
    if (item.contains("row_bytes")) {
      const Bytes row(count_of(item, "row_bytes"));
      if (row <= Bytes(0)) throw Malformed{"'row_bytes' must be positive"};
      sample.rows = Rows{row, Bytes(count_of(item, "pitch_bytes")),
                         Count(sample.bytes->value() / row.value())};
    }
    sample.where = where_;
    return sample;
  }

  void read_copy(const Json& item) {
    CopySample sample = copy_from(item);
    sample.regime = one_of<CopyRegime>(
        item, "regime", {{"queued", CopyRegime::kQueued}, {"isolated", CopyRegime::kIsolated}});
    if (item.contains("beside")) {
      std::set<int> gpus = {*sample.gpu};
      for (const Json& other : list_of(item, "beside")) {
        const CopySample beside = copy_from(other);
        gpus.insert(*beside.gpu);
        sample.both_ways =
            sample.both_ways || (beside.gpu == sample.gpu && beside.direction != sample.direction);
      }
      sample.gpus_at_once = static_cast<int>(gpus.size());
    }
    const std::string verified = text_of(item, "verified");
    if (verified != "yes" && verified != "not looked at") {
      found_.skipped.push_back({"copies of " + format_bytes(*sample.bytes),
                                "the data that arrived was wrong: " + verified, where_});
      return;
    }
    for (const Seconds time : times_of(item, "seconds")) {
      sample.rate = BytesPerSecond(static_cast<double>(sample.bytes->value()) / time.value());
      found_.copies.push_back(sample);
    }
  }

  void read_traffic(const Json& item) {
    TrafficSample sample;
    sample.kernel = one_of<TrafficKernel>(item, "kernel",
                                          {{"read", TrafficKernel::kRead},
                                           {"write", TrafficKernel::kWrite},
                                           {"copy", TrafficKernel::kCopy},
                                           {"triad", TrafficKernel::kElementwise}});
    sample.traffic = Bytes(count_of(item, "bytes"));
    sample.where = where_;
    for (const Seconds time : times_of(item, "seconds")) {
      sample.time = time;
      found_.traffic.push_back(sample);
    }
  }

  void read_gemm(const Json& item) {
    GemmSample sample;
    sample.type = text_of(item, "type");
    sample.m = Count(count_of(item, "m"));
    sample.n = Count(count_of(item, "n"));
    sample.k = Count(count_of(item, "k"));
    sample.operands = one_of<Operands>(
        item, "operands", {{"random", Operands::kRandom}, {"zeros", Operands::kZeros}});
    sample.lasting = flag_of(item, "lasting");
    sample.where = where_;
    for (const Seconds time : times_of(item, "seconds")) {
      sample.time = time;
      found_.gemms.push_back(sample);
    }
  }

  void read_launch(const Json& item) {
    const auto add = [&](LaunchCost cost, const char* key) {
      for (const Seconds time : times_of(item, key))
        found_.launches.push_back({cost, time, where_});
    };
    add(LaunchCost::kFloor, "seconds");
    add(LaunchCost::kGap, "gap_seconds");
    add(LaunchCost::kEnqueue, "enqueue_seconds");
  }

  void read_interference(const Json& item) {
    InterferenceSample sample;
    const bool is_gemm = text_of(item, "kernel") == "gemm";
    sample.kernel = is_gemm ? Beside::kComputeBoundKernel : Beside::kMemoryBoundKernel;
    const Json& copies = list_of(item, "beside");
    for (const Json& copy : copies) {
      const CopySample beside = copy_from(copy);
      (beside.direction == CopyDirection::kHostToDevice ? sample.host_to_device
                                                        : sample.device_to_host) = true;
      sample.by = beside.by;
    }
    const auto kernel = times_of(item, "seconds"), alone = times_of(item, "kernel_alone_seconds"),
               copy = times_of(item, "copy_beside_seconds"),
               copy_alone = times_of(item, "copy_alone_seconds");
    if (kernel.empty() || alone.empty() || copy.empty() || copy_alone.empty() || copies.empty())
      return;
    // The first copy is the one that was timed; the others of the same size are taken to be as
    // fast.
    const auto bytes =
        static_cast<double>(count_of(copies.front(), "bytes")) * static_cast<double>(copies.size());
    sample.copy_slowdown = Factor(median_of(copy) / median_of(copy_alone));
    sample.copy_rate = BytesPerSecond(bytes / median_of(copy));
    if (!is_gemm)
      sample.kernel_traffic =
          BytesPerSecond(static_cast<double>(count_of(item, "bytes")) / median_of(alone));
    sample.where = where_;
    for (const Seconds time : kernel) {
      sample.kernel_slowdown = Factor(time.value() / median_of(alone));
      found_.interference.push_back(sample);
    }
  }

  void note_pcie(const Json& item) {
    if (!item.contains("pcie_generation")) return;
    generation_ = std::max(generation_, count_of(item, "pcie_generation"));
    width_ = std::max(width_, count_of(item, "pcie_width"));
  }

  void warn() {
    const auto add = [&](const char* code, std::string text) {
      found_.warnings.push_back({code, std::move(text), {path_, {}, {}}});
    };
    if (found_.machine.mig.value_or(false))
      add("mig", "MIG is on: a part of a GPU was measured, not the device");
    if (generation_ > 0 && (generation_ < most_generation_ || width_ < most_width_))
      add("lanes",
          fmt::format("the link ran at PCIe gen {} x{} under load, where the device can do "
                      "gen {} x{}",
                      generation_, width_, most_generation_, most_width_));
    if (unstable_ > 0)
      add("unstable",
          fmt::format("{} points did not settle within the time of the run", unstable_));
    if (slow_ > 0)
      add("throttled", fmt::format("{} samples were dropped because the device ran slowly", slow_));
  }

  std::string path_;
  Measurements found_;
  SourceRef where_;
  int own_node_ = -1;
  std::int64_t most_generation_ = 0, most_width_ = 0, generation_ = 0, width_ = 0;
  std::int64_t unstable_ = 0, slow_ = 0;
};

bool is_empty(const Measurements& read) {
  return read.copies.empty() && read.gemms.empty() && read.traffic.empty() &&
         read.launches.empty() && read.interference.empty();
}

}  // namespace

bool is_probe_json(std::string_view text) {
  // Tools that sort keys put the schema last.
  return text.find("\"schema\"") != std::string_view::npos &&
         text.find("\"spillway.probe/") != std::string_view::npos;
}

Result<Measurements> read_probe(const std::string& text, const std::string& path) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& e) {
    return error_in_text(path, text, e.byte > 0 ? e.byte - 1 : 0, "is no JSON",
                         "the file that spillway-probe --out wrote, whole");
  }
  try {
    if (!root.is_object()) throw Malformed{"is no object"};
    if (const std::string schema = text_of(root, "schema"); schema != kSchema)
      return error_in_file(path,
                           fmt::format("the schema {} is not known", spillway::quoted(schema)),
                           fmt::format("this version reads {}", kSchema));
    Measurements read = Reader(path).read(root);
    if (is_empty(read))
      return error_in_file(path, "has no point that was measured",
                           "under 'failed' and 'not_measured' it says why");
    return read;
  } catch (const Malformed& malformed) {
    return error_in_file(path, malformed.what,
                         "the file that spillway-probe --out wrote, unchanged");
  } catch (const Json::exception& e) {
    return error_in_file(path, std::string("has a value of another kind: ") + e.what(),
                         "the file that spillway-probe --out wrote, unchanged");
  }
}

}  // namespace spillway::calibration
