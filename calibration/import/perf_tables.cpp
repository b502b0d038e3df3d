#include "calibration/import/perf_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calibration/import/text_proto.h"
#include "calibration/import/text_scan.h"

namespace spillway::calibration {
namespace {

/// XLA's type names, whose widths the tables' shapes need.
std::optional<std::int64_t> bytes_of(std::string_view element_type) {
  const std::map<std::string_view, std::int64_t> widths = {
      {"F64", 8},  {"F32", 4}, {"S32", 4},  {"U32", 4},      {"F16", 2},
      {"BF16", 2}, {"S8", 1},  {"PRED", 1}, {"F8E4M3FN", 1}, {"F8E5M2", 1}};
  const auto found = widths.find(element_type);
  return found == widths.end() ? std::nullopt : std::optional(found->second);
}

/// "bf16xbf16->bf16": profiles name products by the type of their operands. XLA computes f32
/// products as TF32. Mixed types are none that training uses.
std::string type_of(std::string_view key) {
  const std::string_view operands = key.substr(0, key.find("->"));
  const std::size_t middle = operands.find('x', operands.starts_with("f8e") ? 3 : 0);
  if (middle == std::string_view::npos) return "";
  const std::string_view left = operands.substr(0, middle), right = operands.substr(middle + 1);
  if (left == "f8e4m3fn" && right.starts_with("f8e")) return "f8";
  if (left == "f8e5m2" && right == "f8e4m3fn") return "f8";
  if (left != right) return "";
  if (left == "f32") return "tf32";
  return left == "bf16" || left == "f16" || left == "f64" || left == "s8" ? std::string(left) : "";
}

std::optional<Collective> collective_of(std::string_view opcode) {
  if (opcode.starts_with("all-gather")) return Collective::kAllGather;
  if (opcode.starts_with("reduce-scatter")) return Collective::kReduceScatter;
  if (opcode.starts_with("all-reduce")) return Collective::kAllReduce;
  if (opcode.starts_with("all-to-all")) return Collective::kAllToAll;
  if (opcode.starts_with("collective-permute")) return Collective::kPermute;
  return std::nullopt;
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& path, const HardwareProfile& base)
      : text_(text), path_(path), base_(base) {}

  Result<Measurements> run() {
    const Result<ProtoNode> root = parse_text_proto(text_, path_);
    if (!root.ok()) return root.error();
    std::vector<std::string_view> devices;
    for (const ProtoNode& entry : root->fields)
      if (entry.name == "entries") devices.push_back(entry.text("key"));
    const auto device = choose(devices);
    if (!device.ok()) return device.error();
    for (const ProtoNode& entry : root->fields)
      if (entry.name == "entries" && entry.text("key") == *device)
        if (const ProtoNode* table = entry.find("value")) read(*table);
    return finish(*device);
  }

 private:
  /// "sm_90", "sm_100_GB200": by capability, then by the name's last part.
  Result<std::string_view> choose(const std::vector<std::string_view>& devices) const {
    std::string digits = base_.device.compute_capability;
    std::erase(digits, '.');
    const std::string wanted = "sm_" + digits;
    std::vector<std::string_view> fitting;
    for (const std::string_view device : devices)
      if (device == wanted || device.starts_with(wanted + "_")) fitting.push_back(device);
    if (fitting.size() == 1) return fitting.front();
    for (const std::string_view device : fitting) {
      const std::string_view model = device.substr(std::min(device.size(), wanted.size() + 1));
      if (!model.empty() &&
          (base_.device.xla_name + " ").find(" " + std::string(model) + " ") != std::string::npos)
        return device;
    }
    if (!fitting.empty()) return fitting.front();
    std::string all;
    for (const std::string_view device : devices)
      all += (all.empty() ? "" : ", ") + std::string(device);
    return error_in_file(
        path_,
        "has no table of a device with compute capability " + base_.device.compute_capability,
        "it has " + (all.empty() ? "none" : all) + "; --base names the machine");
  }

  void read(const ProtoNode& table) {
    for (const ProtoNode& entry : table.fields) {
      if (entry.name != "entries") continue;
      if (const ProtoNode* instruction = entry.find("instruction"))
        read_collective(entry, *instruction);
      else
        read_products(entry);
    }
  }

  /// b, m, n, k and the rate of each type.
  void read_products(const ProtoNode& entry) {
    const auto b = entry.number("b"), m = entry.number("m"), n = entry.number("n"),
               k = entry.number("k");
    if (!m || !n || !k || *m < 1 || *n < 1 || *k < 1) return;
    for (const ProtoNode& flops : entry.fields) {
      if (flops.name != "flops") continue;
      const std::string type = type_of(flops.text("key"));
      const auto rate = flops.number("value");
      if (type.empty() || !rate || *rate <= 0) {
        other_types_.insert(std::string(flops.text("key")));
        continue;
      }
      if (const auto* peak = find_figure(base_.device.matrix_peak, type);
          peak != nullptr && *rate > peak->value.value()) {
        ++too_fast_;
        continue;
      }
      GemmSample sample;
      sample.type = type;
      sample.m = Count(static_cast<std::int64_t>(*m));
      sample.n = Count(static_cast<std::int64_t>(*n));
      sample.k = Count(static_cast<std::int64_t>(*k));
      sample.batch = Count(static_cast<std::int64_t>(b.value_or(1)));
      sample.operands = Operands::kRandom;  // XLA fills arguments with pseudo-random numbers
      sample.time = Seconds(flops_of(sample).value() / *rate);
      sample.where = {path_, {}, {}};
      result_.gemms.push_back(sample);
    }
  }

  void read_collective(const ProtoNode& entry, const ProtoNode& instruction) {
    const auto collective = collective_of(instruction.text("opcode"));
    const auto rate = entry.number("network_throughput_bytes_per_sec");
    const ProtoNode* shape = instruction.find("shape");
    if (!collective || !rate || *rate <= 0 || shape == nullptr) {
      ++unreadable_;
      return;
    }
    const auto width = bytes_of(shape->text("element_type"));
    const auto gpus = group_of(instruction);
    if (!width || gpus < 2) {
      ++unreadable_;
      return;
    }
    double bytes = static_cast<double>(*width);
    for (const ProtoNode& field : shape->fields)
      if (field.name == "dimensions") bytes *= to_number(field.value).value_or(1);
    // The shape is the result: of a reduce-scatter one part of what goes in.
    if (*collective == Collective::kReduceScatter) bytes *= static_cast<double>(gpus);
    if (bytes > 1e15) return;
    CollectiveSample sample;
    sample.collective = *collective;
    sample.gpus = Count(gpus);
    sample.bytes = Bytes(static_cast<std::int64_t>(bytes));
    sample.time = Seconds(bytes / *rate);
    sample.where = {path_, {}, {}};
    result_.collectives.push_back(sample);
  }

  /// The size of its groups; of permutes the devices in its pairs.
  static std::int64_t group_of(const ProtoNode& instruction) {
    if (const ProtoNode* list = instruction.find("iota_collective_device_list"))
      return static_cast<std::int64_t>(list->number("num_devices_per_group").value_or(0));
    for (const char* name : {"replica_groups", "collective_device_list"})
      if (const ProtoNode* group = instruction.find(name)) {
        if (const ProtoNode* inner = group->find("replica_groups")) group = inner;
        std::int64_t ids = 0;
        for (const ProtoNode& field : group->fields) ids += field.name == "replica_ids" ? 1 : 0;
        return ids;
      }
    std::set<double> devices;
    for (const ProtoNode& pair : instruction.fields)
      if (pair.name == "source_target_pairs") {
        devices.insert(pair.number("source").value_or(0));
        devices.insert(pair.number("target").value_or(0));
      }
    return static_cast<std::int64_t>(devices.size());
  }

  Result<Measurements> finish(std::string_view device) {
    if (result_.gemms.empty() && result_.collectives.empty())
      return error_in_file(path_, "its table of " + quoted(device) + " has no entry that is known");
    const SourceRef where{path_, {}, {}};
    std::string types;
    for (const std::string& type : other_types_) types += (types.empty() ? "" : ", ") + type;
    if (!types.empty())
      result_.skipped.push_back({"products of " + types, "no type that profiles have", where});
    if (too_fast_ > 0)
      result_.skipped.push_back(
          {fmt::format("{} products faster than the device's peak", too_fast_),
           "of a product that becomes several kernels the table has the time of one", where});
    if (unreadable_ > 0)
      result_.skipped.push_back({fmt::format("{} entries", unreadable_),
                                 "no collective, or without rate or group", where});
    result_.sources.push_back(
        {path_, "XLA performance table",
         fmt::format("{} matrix products and {} collectives of {}", result_.gemms.size(),
                     result_.collectives.size(), device)});
    return std::move(result_);
  }

  std::string_view text_;
  const std::string& path_;
  const HardwareProfile& base_;
  Measurements result_;
  std::set<std::string> other_types_;
  std::size_t too_fast_ = 0, unreadable_ = 0;
};

}  // namespace

bool is_perf_table(std::string_view text) {
  const auto has = [&](const char* part) { return text.find(part) != std::string_view::npos; };
  return has("entries") && has("key: \"") &&
         (has("network_throughput_bytes_per_sec") || has("flops {"));
}

Result<Measurements> read_perf_table(std::string_view text, const std::string& path,
                                     const HardwareProfile& base) {
  return TableReader(text, path, base).run();
}

}  // namespace spillway::calibration
