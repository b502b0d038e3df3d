#include "calibration/import/nvidia_smi.h"

#include <doctest/doctest.h>

#include "tests/support/describe_measurements.h"

namespace spillway::calibration {
namespace {

using testing::describe_caps;
using testing::describe_warnings;

/// As `nvidia-smi -q` prints it, what is not read left out.
std::string query(const std::string& generation, const std::string& width,
                  const std::string& more = "") {
  return "==============NVSMI LOG==============\n\n"
         "Timestamp                                 : Mon Nov 30 10:00:00 2026\n"
         "Driver Version                            : 580.65.06\n"
         "CUDA Version                              : 13.0\n\n"
         "Attached GPUs                             : 8\n"
         "GPU 00000000:0F:00.0\n"
         "    Product Name                          : NVIDIA H200\n"
         "    MIG Mode\n"
         "        Current                           : Disabled\n"
         "        Pending                           : Disabled\n"
         "    PCI\n"
         "        GPU Link Info\n"
         "            PCIe Generation\n"
         "                Max                       : 5\n"
         "                Current                   : " +
         generation +
         "\n"
         "                Device Current            : " +
         generation +
         "\n"
         "                Device Max                : 5\n"
         "                Host Max                  : 5\n"
         "            Link Width\n"
         "                Max                       : 16x\n"
         "                Current                   : " +
         width +
         "\n"
         "    Performance State                     : P0\n" +
         more +
         "    FB Memory Usage\n"
         "        Total                             : 143771 MiB\n";
}

Measurements read(const std::string& text) {
  REQUIRE(is_nvidia_smi(text));
  Result<Measurements> read = read_nvidia_smi(text, "smi.txt");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
  return std::move(read).value();
}

TEST_CASE("-q: the link, and what to doubt of it") {
  struct Row {
    const char* name;
    std::string text;
    const char* caps;
    const char* warnings;
  };
  const Row rows[] = {
      {"under load", query("5", "16x"), "63.0 GB/s PCIe gen 5 x16\n", ""},
      {"idle: generation 1 is shown, the link can do 5", query("1", "16x"),
       "63.0 GB/s PCIe gen 5 x16, idle\n",
       "idle-link: the link is shown at gen 1 of 5 in state P0: links slow down when idle, ask "
       "again while copies run\n"},
      {"half of the lanes", query("5", "8x"), "31.5 GB/s PCIe gen 5 x8\n",
       "lanes: 8 of 16 lanes are in use: the slot, a riser or a switch has no more, or the card "
       "sits badly\n"},
      {"MIG", query("5", "16x", "    MIG Mode\n        Current             : Enabled\n"),
       "63.0 GB/s PCIe gen 5 x16\n",
       "mig: MIG is on: a slice has its part of the SMs and of HBM, and shares the link with the "
       "others\n"},
      {"throttled",
       query("5", "16x",
             "    Clocks Event Reasons\n        SW Power Cap        : Active\n"
             "        HW Thermal Slowdown : Not Active\n"),
       "63.0 GB/s PCIe gen 5 x16\n",
       "throttled: SW Power Cap is active: kernels run below their clocks\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Measurements m = read(row.text);
    CHECK(describe_caps(m) == row.caps);
    CHECK(describe_warnings(m.warnings) == row.warnings);
  }
  const MachineFacts machine = read(query("5", "16x")).machine;
  CHECK(machine.device == "NVIDIA H200");
  CHECK(machine.driver == "580.65.06");
  CHECK(machine.gpus == Count(8));
  CHECK(machine.mig == false);
  CHECK(machine.hbm_capacity == Bytes(143771LL << 20));
}

TEST_CASE("c2c: the sum of a GPU's links is its rate in one direction") {
  std::string text;
  for (int gpu = 0; gpu < 2; ++gpu) {
    text += "GPU " + std::to_string(gpu) + ": NVIDIA GB200 (UUID: GPU-1234)\n";
    for (int link = 0; link < 5; ++link)
      text += "\t C2C Link " + std::to_string(link) + ": 44.712 GB/s\n";
  }
  const Measurements m = read(text);
  CHECK(describe_caps(m) ==
        "223.6 GB/s 5 C2C links of 44.712 GB/s\n223.6 GB/s 5 C2C links of 44.712 GB/s\n");
  CHECK(m.machine.device == "NVIDIA GB200");
  CHECK(m.machine.gpus == Count(2));
  const Measurements inactive = read(text + "\t C2C Link 5: inactive\n");
  CHECK(describe_warnings(inactive.warnings) == "lanes: 1 of 6 C2C links are not active\n");
  CHECK(describe_caps(read("<gpu dev=\"0\">\n  <c2c bw=\"44712\" count=\"5\"/>\n</gpu>\n")) ==
        "223.6 GB/s 5 C2C links of 44.712 GB/s\n");
}

TEST_CASE("topo -m: GPUs of a CPU") {
  const Measurements m = read(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV18\tNV18\tNV18\tPXB\t0-47,96-143\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tNV18\tNV18\tNODE\t0-47,96-143\t0\t\tN/A\n"
      "GPU2\tNV18\tNV18\t X \tNV18\tSYS\t48-95,144-191\t1\t\tN/A\n"
      "GPU3\tNV18\tNV18\tNV18\t X \tSYS\t48-95,144-191\t1\t\tN/A\n"
      "NIC0\tPXB\tNODE\tSYS\tSYS\t X \n\nLegend:\n  X    = Self\n");
  CHECK(m.machine.gpus == Count(4));
  CHECK(m.machine.gpus_per_cpu == Count(2));
  CHECK(m.machine.cpus == Count(2));
  CHECK(m.sources.front().format == "nvidia-smi topo");
}

TEST_CASE("what links carry, by generation and lanes") {
  CHECK(pcie_rate(3, 16)->value() == doctest::Approx(15.75e9).epsilon(0.001));
  CHECK(pcie_rate(4, 16)->value() == doctest::Approx(31.5e9).epsilon(0.001));
  CHECK(pcie_rate(5, 16)->value() == doctest::Approx(63.0e9).epsilon(0.001));
  CHECK(pcie_rate(6, 16)->value() == doctest::Approx(121e9).epsilon(0.001));
  CHECK(pcie_rate(5, 8)->value() == doctest::Approx(31.5e9).epsilon(0.001));
  CHECK_FALSE(pcie_rate(7, 16).has_value());
  CHECK_FALSE(pcie_rate(5, 0).has_value());
}

}  // namespace
}  // namespace spillway::calibration
