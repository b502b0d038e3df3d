// Cases that users reported about measured links, profilers and benchmarks; docs/cases.md lists
// them all.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "calibration/fit/fit.h"
#include "calibration/import/read_source.h"
#include "model/run/read_run.h"
#include "tests/calibration/synthetic.h"
#include "tests/support/describe_measurements.h"
#include "tests/support/describe_run.h"
#include "tests/support/nsys_fixture.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using calibration::Measurements;
using testing::describe_copies;
using testing::describe_skipped;
using testing::describe_warnings;
using testing::shipped_profile;
using testing::TemporaryFolder;

std::string table(const std::string& name, const std::string& cells,
                  const std::string& unit = "bandwidth (GB/s)") {
  std::string text = "Running " + name + ".\nmemcpy CPU(row) GPU(column) " + unit + "\n          ";
  double sum = 0;
  const auto add_columns = [&](const std::string& row) {
    int column = 0;
    for (std::size_t at = 0; at < row.size();) {
      const std::size_t end = std::min(row.find(' ', at), row.size());
      text += fmt::format(" {:>9}", column++);
      sum += std::stod(row.substr(at, end - at));
      at = end + 1;
    }
  };
  add_columns(cells);
  text += "\n 0 " + cells + "\n\nSUM " + name + fmt::format(" {:.2f}\n\n", sum);
  return text;
}

Measurements read(const TemporaryFolder& folder, const std::string& text, const char* base,
                  std::optional<int> gpus = {}) {
  auto read = testing::read_measurements({folder.write("log", text)}, shipped_profile(base), gpus);
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
  return std::move(read).value();
}

bool warns(const Measurements& m, std::string_view code, std::string_view says = "") {
  for (const calibration::Warning& warning : m.warnings)
    if (warning.code == code && warning.text.find(says) != std::string::npos) return true;
  return false;
}

TEST_CASE("C05: copies of pageable memory are told by their kinds, and never count for the link") {
  const TemporaryFolder folder;
  // 510 copies to pageable memory, 4.94 GB in 2.75 s; a few pinned ones at 55 GB/s beside.
  std::string sql = std::string(testing::kCopyTable) + "BEGIN;";
  std::int64_t at = 0;
  const auto add = [&](std::int64_t bytes, std::int64_t ns, int to) {
    sql +=
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({},{},0,7,NULL,{},{},2,2,{});",
                    at, at + ns, testing::kProcess, bytes, to);
    at += ns + 1000;
  };
  for (int k = 0; k < 510; ++k) add(9686275, 5392157, 0);
  for (int k = 0; k < 10; ++k) add(1 << 30, 19522578, 1);
  const std::string path = testing::write_database(folder.path("run"), sql + "COMMIT;");
  const auto run = read_run(path);
  REQUIRE(run.ok());
  CHECK(testing::describe_copies(*run) ==
        "device to host, device to pinned: 10 of 10737418240 B at 55.00 GB/s\n"
        "device to host, device to pageable: 510 of 4940000250 B at 1.80 GB/s\n");
  const auto m = testing::read_measurements({path}, shipped_profile("h100"));
  REQUIRE(m.ok());
  CHECK(warns(*m, "pageable", "510 copies device to host, device to pageable, 4.60 GiB at 1.80"));
  const calibration::Fit fit = calibration::fit(*m, shipped_profile("h100"));
  CHECK(fit.profile.link.device_to_host.value.value() == doctest::Approx(55e9).epsilon(0.02));
}

TEST_CASE("C09: two tests both ways are one direction each; their sum is nobody's") {
  const TemporaryFolder folder;
  const std::string log = "nvbandwidth Version: v0.8\n" +
                          table("host_to_device_memcpy_ce", "25.0 25.0") +
                          table("device_to_host_memcpy_ce", "25.0 25.0") +
                          table("host_to_device_bidirectional_memcpy_ce", "11.0 11.0") +
                          table("device_to_host_bidirectional_memcpy_ce", "25.0 25.0");
  const Measurements m = read(folder, log, "a100");
  CHECK(describe_copies(m).find("h2d both ways 11.00 gpu 0\n") != std::string::npos);
  const calibration::Fit fit = calibration::fit(m, shipped_profile("a100"));
  CHECK(fit.profile.link.host_to_device.value.value() == doctest::Approx(25e9));
  CHECK(fit.profile.link.both_directions.value.value() == doctest::Approx(36e9));
  REQUIRE(fit.profile.link.host_to_device_beside.has_value());
  CHECK(fit.profile.link.host_to_device_beside->value.value() == doctest::Approx(11e9));
  // One of the two alone says so.
  const Measurements one = read(
      folder,
      "nvbandwidth Version: v0.8\n" + table("host_to_device_bidirectional_memcpy_ce", "11.0 11.0"),
      "a100");
  CHECK(warns(one, "one-of-both", "each test gives its own direction, no sum"));
}

TEST_CASE("C10: N/A is not 0, rectangles are read, waived tests need no name") {
  const TemporaryFolder folder;
  const Measurements m =
      read(folder,
           "nvbandwidth Version: v0.8\n\nhost-17\nDevice 0: NVIDIA A100-SXM4-80GB\n"
           "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
           "           0         1         2\n"
           " 0     25.00       N/A     24.00\n"
           " 1       N/A     25.20     24.10\n\nSUM host_to_device_memcpy_ce 98.30\n\n"
           "Waived: \nSUM _sum_None 0.0\n",
           "a100");
  CHECK(describe_copies(m) ==
        "h2d 25.00 gpu 0 node 0\nh2d 24.00 gpu 2 node 0\nh2d 25.20 gpu 1 node 1\n"
        "h2d 24.10 gpu 2 node 1\n");
  CHECK(describe_skipped(m).find("1 waived test:") != std::string::npos);
  CHECK(describe_warnings(m.warnings) == "");
}

TEST_CASE("C18: GPUs at a third of the others' rate stand at the other socket") {
  const TemporaryFolder folder;
  const Measurements m =
      read(folder,
           "nvbandwidth Version: v0.8\n" + table("host_to_device_memcpy_ce", "24.1 24.0 9.5 8.0") +
               table("device_to_host_memcpy_ce", "24.1 24.0 23.5 24.2"),
           "a100");
  CHECK(warns(m, "far-numa",
              "host to device: from 8.0 GB/s (GPU 3) to 24.1 (GPU 0): the slow ones are probably "
              "bound to memory of the other socket"));
  CHECK_FALSE(warns(m, "far-numa", "device to host"));
  // The mean of both is no link's.
  const HostLink link = calibration::fit(m, shipped_profile("a100")).profile.link;
  CHECK(link.host_to_device.value.value() == doctest::Approx(24.05e9));
  CHECK(link.device_to_host.value.value() == doctest::Approx(24.05e9));
}

TEST_CASE("C19: copies by kernels stand for nothing that XLA does") {
  const TemporaryFolder folder;
  const Measurements kernels =
      read(folder, "nvbandwidth Version: v0.8\n" + table("host_to_device_memcpy_sm", "35.0 35.1"),
           "h100");
  CHECK(warns(kernels, "sm", "only copies by kernels were measured, XLA copies with copy engines"));
  const calibration::Fit fit = calibration::fit(kernels, shipped_profile("h100"));
  CHECK(fit.profile.link.host_to_device == shipped_profile("h100").link.host_to_device);
  const Measurements both =
      read(folder,
           "nvbandwidth Version: v0.8\n" + table("host_to_device_memcpy_ce", "55.3 55.2") +
               table("host_to_device_memcpy_sm", "35.0 35.1"),
           "h100");
  CHECK_FALSE(warns(both, "sm"));
  CHECK(calibration::fit(both, shipped_profile("h100")).profile.link.host_to_device.value.value() ==
        doctest::Approx(55.25e9).epsilon(0.002));
}

TEST_CASE("C27: profiles without some tables, or with those of later versions") {
  const TemporaryFolder folder;
  const auto run = [&](const char* name, const std::string& change) {
    const auto read =
        read_run(testing::write_database(folder.path(name), testing::two_steps() + change));
    REQUIRE(read.ok());
    return read.value();
  };
  // Without annotations there are still copies and streams, and it says what is missing.
  const MeasuredRun plain = run("plain", "DROP TABLE NVTX_EVENTS;");
  CHECK(plain.instructions.empty());
  CHECK(plain.copies.size() == 2);
  CHECK(plain.notes.front().missing == "no table NVTX_EVENTS");
  // An annotated capture by a later name is annotated all the same.
  const MeasuredRun later = run("later", "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2;");
  CHECK(later.instructions.size() == 3);
  // Copies between devices have a table of their own.
  const MeasuredRun peers =
      run("peers",
          "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY2 AS SELECT start + 5000 AS start, end + 5000 "
          "AS end, deviceId, streamId, NULL AS correlationId, globalPid, bytes FROM "
          "CUPTI_ACTIVITY_KIND_MEMCPY;");
  CHECK(testing::describe_copies(peers).find(
            "between devices, unknown to unknown: 2 of 200000 B") != std::string::npos);
}

TEST_CASE("C32: host memory that cannot be pinned makes copies seconds, and the log says so") {
  // The fall-back to pageable memory is seen in a profile by the kind of the copies.
  const TemporaryFolder folder;
  const auto run = read_run(testing::write_database(
      folder.path("run"),
      testing::two_steps() + "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET dstKind=0, end=end+100000;"));
  REQUIRE(run.ok());
  CHECK(run->copies.front().to == MemoryPlace::kPageable);
  const auto m = testing::read_measurements({folder.path("run")}, shipped_profile("h200"));
  REQUIRE(m.ok());
  CHECK(warns(*m, "pageable", "the driver stages them, and the host waits"));
}

TEST_CASE("C33: the wall time of device_put is refused") {
  const TemporaryFolder folder;
  for (const char* text : {"call,bytes,seconds\njax.device_put,1000000000,0.37\n",
                           "{\"device_put\": {\"bytes\": 1000000000, \"seconds\": 0.37}}",
                           "device_put float32[15625,10000]: 344 ms\n"}) {
    CAPTURE(text);
    const auto read =
        testing::read_measurements({folder.write("times", text)}, shipped_profile("h100"));
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().text == "measures device_put by wall time, which is not the link");
    CHECK(read.error().advice.find("give copies timed by events") != std::string::npos);
  }
}

TEST_CASE("C37: MIG hides GPUs, and a slice shares the link") {
  const TemporaryFolder folder;
  std::string log = "nvbandwidth Version: v0.8\n";
  for (int k = 0; k < 8; ++k)
    log += fmt::format("Device {}: NVIDIA A100-SXM4-80GB MIG 3g.40gb (00000000:0{}:00)\n", k, k);
  const Measurements m = read(folder, log + table("host_to_device_memcpy_ce", "25.1"), "a100");
  CHECK(describe_copies(m) == "h2d 25.10 gpu 0\n");
  CHECK(warns(m, "mig", "1 of 8 GPUs have a column"));
  CHECK(m.machine.mig == true);
  const Measurements query = read(folder,
                                  "==============NVSMI LOG==============\nAttached GPUs : 1\n"
                                  "GPU 00000000:0F:00.0\n    MIG Mode\n"
                                  "        Current                : Enabled\n",
                                  "a100");
  CHECK(warns(query, "mig", "a slice has its part of the SMs and of HBM, and shares the link"));
}

TEST_CASE("C38: a run that ends in the middle keeps its complete tests") {
  const TemporaryFolder folder;
  const std::string whole = "nvbandwidth Version: v0.2\n" +
                            table("host_to_device_memcpy_ce", "25.5 24.26 23.9") +
                            table("device_to_host_memcpy_ce", "26.77 26.47 26.25");
  const std::string cut =
      "Running host_to_device_bidirectional_memcpy_ce.\n"
      "memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)\n"
      "           0         1         2\n 0     11.24     14.42     16.";
  const Measurements m = read(folder, whole + cut, "h100");
  CHECK(m.copies.size() == 6);
  CHECK(
      warns(m, "cut", "'host_to_device_bidirectional_memcpy_ce' is not complete and is left out"));
  // Nothing usable is an error.
  const auto none = testing::read_measurements(
      {folder.write("log", "nvbandwidth Version: v0.2\n" + cut)}, shipped_profile("h100"));
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text == "no test of nvbandwidth in it is complete");
}

TEST_CASE("C43: a quarter below the link: the benchmark's memory was not pinned") {
  const TemporaryFolder folder;
  const std::string log =
      "[CUDA Bandwidth Test] - Starting...\n Device 0: NVIDIA GeForce GTX 1660 Ti\n"
      " Host to Device Bandwidth, 1 Device(s)\n PAGEABLE Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   33554432\t\t\t10.4\n";
  const std::string link =
      "==============NVSMI LOG==============\nGPU 00000000:0F:00.0\n"
      "    PCI\n        GPU Link Info\n            PCIe Generation\n"
      "                Max : 3\n                Current : 3\n            Link Width\n"
      "                Max : 16x\n                Current : 16x\n";
  const auto m = testing::read_measurements({folder.write("log", log), folder.write("smi", link)},
                                            shipped_profile("a100"));
  REQUIRE(m.ok());
  CHECK(warns(*m, "pageable"));
  CHECK(warns(*m, "poor-rate",
              "10.4 GB/s are 66 % of the 15.8 GB/s of the link (PCIe gen 3 x16), where 80 to 90 % "
              "are usual: pageable memory, lanes below the card's, the far NUMA node, or a virtual "
              "machine (this one is pageable)"));
}

}  // namespace
}  // namespace spillway
