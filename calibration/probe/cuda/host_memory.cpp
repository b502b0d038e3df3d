#include "calibration/probe/cuda/host_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace spillway::probe {
namespace {

// linux/mempolicy.h need not be installed; these are the kernel's interface and do not change.
constexpr int kDefaultPolicy = 0, kBindPolicy = 2;
constexpr int kMostNodes = 1024;
constexpr const char* kNodes = "/sys/devices/system/node";

/// "0-15,32" as a set.
cpu_set_t to_cpus(const std::string& list) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const int first = std::atoi(part.c_str());
    const int last = dash == std::string::npos ? first : std::atoi(part.c_str() + dash + 1);
    for (int cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
      CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  }
  return cpus;
}

/// "Node 0 MemTotal:  131072 kB".
std::int64_t memory_of(const std::string& folder) {
  std::ifstream file(folder + "/meminfo");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t at = line.find("MemTotal:"); at != std::string::npos)
      return std::atoll(line.c_str() + at + 9) * 1024;
  return 0;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<NumaNode> read_numa_nodes() {
  std::vector<NumaNode> nodes;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(kNodes, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node") || name.size() < 5 ||
        !std::isdigit(static_cast<unsigned char>(name[4])))
      continue;
    nodes.push_back({std::atoi(name.c_str() + 4), first_line(entry.path().string() + "/cpulist"),
                     memory_of(entry.path().string())});
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.node < b.node; });
  return nodes;
}

int numa_node_of(const std::string& bus_id, const std::vector<NumaNode>& nodes) {
  std::string lower = bus_id;  // CUDA writes capitals, /sys does not
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string text = first_line("/sys/bus/pci/devices/" + lower + "/numa_node");
  if (!text.empty() && std::atoi(text.c_str()) >= 0) return std::atoi(text.c_str());
  int with_cpus = 0, node = -1;
  for (const NumaNode& candidate : nodes)
    if (!candidate.cpus.empty()) ++with_cpus, node = candidate.node;
  return with_cpus == 1 ? node : -1;
}

OnNode::OnNode(int node, const std::vector<NumaNode>& nodes) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const NumaNode& n) { return n.node == node; });
  if (node < 0 || node >= kMostNodes || found == nodes.end()) return;
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return;
  cpus_before_ = before;
  if (!found->cpus.empty()) {
    const cpu_set_t wanted = to_cpus(found->cpus);
    sched_setaffinity(0, sizeof wanted, &wanted);
  }
  std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))> mask{};
  const auto bit = static_cast<std::size_t>(node), width = 8 * sizeof(unsigned long);
  mask[bit / width] |= 1UL << (bit % width);
  syscall(SYS_set_mempolicy, kBindPolicy, mask.data(), kMostNodes);
}

OnNode::~OnNode() {
  if (!cpus_before_) return;
  syscall(SYS_set_mempolicy, kDefaultPolicy, nullptr, 0);
  sched_setaffinity(0, sizeof *cpus_before_, &*cpus_before_);
}

int node_of_page(const void* address) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* pages[] = {
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) / page * page)};
  int status[] = {-1};
  if (syscall(SYS_move_pages, 0, 1, pages, nullptr, status, 0) != 0) return -1;
  return status[0];
}

}  // namespace spillway::probe
