// Host memory on a given NUMA node, by the system's own calls: no library need be installed for it.
#pragma once

#include <sched.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/probe/device.h"

namespace spillway::probe {

/// The machine's nodes, from /sys; one without a number where there is nothing to read.
std::vector<NumaNode> read_numa_nodes();

/// The node of a PCI device ("0000:19:00.0"); of a machine with one node with CPUs, that one. -1
/// where it is not known.
int numa_node_of(const std::string& bus_id, const std::vector<NumaNode>& nodes);

/// While it lives the thread runs on the CPUs of a node and gets memory there; nothing for -1.
class OnNode {
 public:
  OnNode(int node, const std::vector<NumaNode>& nodes);
  ~OnNode();
  OnNode(const OnNode&) = delete;
  OnNode& operator=(const OnNode&) = delete;

 private:
  std::optional<cpu_set_t> cpus_before_;
};

/// Where the page at an address lies; -1 when the kernel does not say.
int node_of_page(const void* address);

/// The first line of a file, without its end; "" when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace spillway::probe
