#include "calibration/probe/probe_json.h"

#include <algorithm>
#include <string_view>

#include "calibration/probe/describe.h"
#include "calibration/probe/json_text.h"

namespace spillway::probe {
namespace {

std::string_view name_of(Direction direction) {
  return direction == Direction::kHostToDevice ? "host_to_device" : "device_to_host";
}
std::string_view name_of(Pages pages) {
  if (pages == Pages::kPageable) return "pageable";
  return pages == Pages::kPinned ? "pinned" : "registered";
}
std::string_view name_of(Kernel kernel) {
  constexpr std::string_view kNames[] = {"spin", "read", "write", "copy", "triad", "gemm"};
  return kNames[static_cast<int>(kernel)];
}
std::string_view name_of(PointKind kind) {
  constexpr std::string_view kNames[] = {"copy", "traffic", "gemm", "launch", "interference"};
  return kNames[static_cast<int>(kind)];
}

void write_gpu(JsonText& json, const Gpu& gpu) {
  json.open('{');
  json.add("index", gpu.index);
  json.add("name", gpu.name);
  json.add("uuid_hash", gpu.uuid_hash);
  json.add("compute_capability", gpu.compute_capability);
  json.add("bus_id", gpu.bus_id);
  json.add("hbm_bytes", gpu.hbm_bytes);
  json.add("l2_bytes", gpu.l2_bytes);
  json.add("multiprocessors", gpu.multiprocessors);
  json.add("copy_engines", gpu.copy_engines);
  json.add("numa_node", gpu.numa_node);
  json.add("pcie_generation_most", gpu.pcie_generation_most);
  json.add("pcie_width_most", gpu.pcie_width_most);
  json.add("c2c_links", gpu.c2c_links);
  json.add("c2c_bytes_per_second", gpu.c2c_bytes_per_second);
  json.add("power_limit_watts", gpu.power_limit_watts);
  json.add("ecc", gpu.ecc);
  json.add("mig", gpu.mig);
  json.close('}');
}

void write_machine(JsonText& json, const Machine& machine) {
  json.open("machine", '{');
  json.add("driver", machine.driver);
  json.add("cuda", machine.cuda);
  json.add("kernel", machine.kernel);
  json.add("cpu", machine.cpu);
  json.add("governor", machine.governor);
  json.add("iommu", machine.iommu);
  json.add("page_bytes", machine.page_bytes);
  json.open("gpus", '[');
  for (const Gpu& gpu : machine.gpus) {
    json.line();
    write_gpu(json, gpu);
  }
  json.close(']');
  json.open("numa_nodes", '[');
  for (const NumaNode& node : machine.nodes) {
    json.line();
    json.open('{');
    json.add("node", node.node);
    json.add("cpus", node.cpus);
    json.add("memory_bytes", node.memory_bytes);
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

void write_copy(JsonText& json, const CopyLoad& copy) {
  json.add("gpu", copy.gpu);
  json.add("direction", name_of(copy.direction));
  json.add("bytes", copy.bytes);
  json.add("pages", name_of(copy.pages));
  json.add("by", copy.by_kernel ? "kernel" : "copy_engine");
  if (copy.numa_node >= 0) json.add("numa_node", copy.numa_node);
  if (copy.row_bytes > 0) {
    json.add("row_bytes", copy.row_bytes);
    json.add("pitch_bytes", copy.pitch_bytes);
  }
}

void write_kernel(JsonText& json, const KernelLoad& kernel) {
  json.add("gpu", kernel.gpu);
  json.add("kernel", name_of(kernel.kernel));
  if (kernel.kernel == Kernel::kGemm) {
    json.add("type", kernel.type == GemmType::kBf16 ? "bf16" : "f8");
    json.add("m", kernel.m);
    json.add("n", kernel.n);
    json.add("k", kernel.k);
    json.add("operands", kernel.zeros ? "zeros" : "random");
  } else if (kernel.bytes > 0) {
    json.add("bytes", kernel.bytes);
  }
}

void write_samples(JsonText& json, std::string_view key, const Samples& samples) {
  if (samples.seconds.empty()) return;
  json.add(key, samples.seconds);
  json.add(std::string(key) + "_repeats", samples.repeats);
}

void write_point(JsonText& json, const Point& point) {
  json.add("kind", name_of(point.kind));
  if (const auto* copy = std::get_if<CopyLoad>(&point.measured)) {
    write_copy(json, *copy);
    json.add("regime", point.host_waits ? "isolated" : "queued");
  } else {
    write_kernel(json, std::get<KernelLoad>(point.measured));
    if (point.kind == PointKind::kGemm) json.add("lasting", point.lasting);
  }
  if (point.beside.empty()) return;
  json.open("beside", '[');
  for (const CopyLoad& copy : point.beside) {
    json.open('{');
    write_copy(json, copy);
    json.close('}');
  }
  json.close(']');
}

void write_measured(JsonText& json, const Measured& measured) {
  json.open('{');
  write_point(json, measured.point);
  write_samples(json, "seconds", measured.main);
  write_samples(json, "gap_seconds", measured.gap);
  write_samples(json, "enqueue_seconds", measured.enqueue);
  write_samples(json, "kernel_alone_seconds", measured.kernel_alone);
  write_samples(json, "copy_alone_seconds", measured.copy_alone);
  write_samples(json, "copy_beside_seconds", measured.copy_beside);
  json.add("sm_hertz", measured.sm_hertz);
  if (measured.slow_clock > 0) json.add("slow_clock_samples", measured.slow_clock);
  if (measured.pcie_generation > 0) {
    json.add("pcie_generation", measured.pcie_generation);
    json.add("pcie_width", measured.pcie_width);
  }
  json.add("stable", measured.stable);
  if (measured.point.kind == PointKind::kCopy) json.add("verified", measured.verified);
  json.close('}');
}

void write_method(JsonText& json, const ProbeOptions& options) {
  json.open("method", '{');
  json.add("timing", "CUDA events around queued work behind a gate kernel; isolated: host clock");
  json.add("time_limit_seconds", options.seconds);
  json.add("least_samples", options.least_samples);
  json.add("most_samples", options.most_samples);
  json.add("stable_relative_error", options.stable);
  json.add("slowest_clock", options.slowest_clock);
  json.add("seed", static_cast<std::int64_t>(options.seed));
  json.close('}');
}

}  // namespace

std::string to_json(const ProbeRun& run, const std::string& date) {
  JsonText json;
  json.open('{');
  json.add("schema", "spillway.probe/1");
  json.add("date", date);
  json.add("seconds", run.seconds);
  write_machine(json, run.machine);
  write_method(json, run.options);
  json.open("measured", '[');
  for (const Measured& measured : run.measured) {
    json.line();
    write_measured(json, measured);
  }
  json.close(']');
  json.open("failed", '[');
  for (const Failure& failure : run.failed) {
    json.line();
    json.open('{');
    json.add("what", describe(failure.point));
    json.add("why", failure.why);
    json.close('}');
  }
  json.close(']');
  json.open("not_measured", '[');
  for (const NotPlanned& part : run.not_planned) {
    json.line();
    json.open('{');
    json.add("what", part.what);
    json.add("why", part.why);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.text() + "\n";
}

}  // namespace spillway::probe
