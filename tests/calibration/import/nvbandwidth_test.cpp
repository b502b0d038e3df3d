#include "calibration/import/nvbandwidth.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "model/base/read_file.h"
#include "tests/support/describe_measurements.h"

namespace spillway::calibration {
namespace {

using testing::describe_copies;
using testing::describe_skipped;
using testing::describe_warnings;

const char* const kHead =
    "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\n"
    "CUDA Runtime Version: 12040\nCUDA Driver Version: 12040\nDriver Version: 550.54.15\n\n"
    "host-17\n"
    "Device 0: NVIDIA H100 80GB HBM3 (00000000:0f:00)\n"
    "Device 1: NVIDIA H100 80GB HBM3 (00000000:2d:00)\n\n";

const char* const kHostToDevice =
    "Running host_to_device_memcpy_ce.\n"
    "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0     55.37     55.36\n\n"
    "SUM host_to_device_memcpy_ce 110.73\n\n";

Measurements read(const std::string& text, std::optional<int> gpus = {}) {
  Result<Measurements> read = to_measurements(read_nvbandwidth_text(text, "log"), gpus);
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
  return std::move(read).value();
}

TEST_CASE("text: versions and their oddities") {
  struct Row {
    const char* name;
    std::string text;
    const char* copies;
    const char* skipped;
    const char* warnings;
  };
  const Row rows[] = {
      {"a matrix, a cell a GPU", std::string(kHead) + kHostToDevice,
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n", "", ""},
      {"N/A is no rate; a row for each CPU",
       std::string(kHead) +
           "Running device_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n"
           "           0         1         2\n"
           " 0     55.10       N/A     20.00\n"
           " 1     20.10     55.20       N/A\n\n"
           "SUM device_to_host_memcpy_ce 150.40\n",
       "d2h 55.10 gpu 0 node 0\nd2h 20.00 gpu 2 node 0\nd2h 20.10 gpu 0 node 1\n"
       "d2h 55.20 gpu 1 node 1\n",
       "", ""},
      {"both ways: one direction each; arrows of v0.2 say otherwise",
       "nvbandwidth Version: v0.2\n"
       "Running all_to_host_bidirectional_memcpy_ce.\n"
       "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n"
       "           0         1\n 0     22.22     35.09\n\n"
       "SUM all_to_host_bidirectional_memcpy_ce 57.31\n",
       "d2h both ways of 2 22.22 gpu 0\nd2h both ways of 2 35.09 gpu 1\n", "", ""},
      {"waived tests have no name; latencies are in ns; pairs of GPUs are no host link",
       std::string(kHead) + "Waived: \nWaived: \n" + kHostToDevice +
           "Running host_device_latency_sm.\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n"
           "           0         1\n 0    772.58    771.00\n\n"
           "SUM host_device_latency_sm 1543.58\n\n"
           "Running device_to_device_memcpy_read_ce.\n"
           "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
           "           0         1\n 0       N/A    276.07\n 1    276.36       N/A\n\n"
           "SUM device_to_device_memcpy_read_ce 552.43\n\n"
           "NOTE: The reported results may not reflect the full capabilities of the platform.\n",
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n",
       "host_device_latency_sm: a latency of single loads: copies have another\n"
       "device_to_device_memcpy_read_ce: between GPUs: collectives are fitted from their own "
       "tables\n2 waived tests: nvbandwidth could not run them here, and does not say which\n",
       ""},
      {"a verbose log, and v0.10's coefficient",
       std::string(kHead) +
           "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
           "Sample 0: Host -> Device 0: 55.10 GB/s\nSample 1: Host -> Device 0: 55.40 GB/s\n"
           "           0         1\n 0     55.37     55.36\n\n"
           "SUM host_to_device_memcpy_ce 110.73\nMIN host_to_device_memcpy_ce 55.36\n"
           "COEFFICIENT_OF_VARIATION host_to_device_memcpy_ce 0.00\n",
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n", "", ""},
      {"kernels copy, too",
       std::string(kHead) +
           "Running device_to_host_memcpy_sm.\nmemcpy SM CPU(row) <- GPU(column) bandwidth (GB/s)\n"
           "           0         1\n 0      5.67      5.70\n\nSUM device_to_host_memcpy_sm 11.37\n",
       "d2h by kernel 5.67 gpu 0\nd2h by kernel 5.70 gpu 1\n", "", ""},
      {"a failed test",
       std::string(kHead) + kHostToDevice +
           "Running device_to_host_memcpy_ce.\n"
           "Invalid value when checking the pattern at <0x7f1>\n",
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n", "",
       "failed: 'device_to_host_memcpy_ce' failed and is left out: Invalid value when checking "
       "the pattern at <0x7f1>\n"},
      {"another error",
       std::string(kHead) + kHostToDevice +
           "Running device_to_host_memcpy_ce.\n"
           "[CUDA_ERROR_INVALID_CONTEXT] invalid device context in expression\n",
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n", "",
       "failed: 'device_to_host_memcpy_ce' failed and is left out: [CUDA_ERROR_INVALID_CONTEXT] "
       "invalid device context in expression\n"},
      {"a sum that its cells do not make",
       std::string(kHead) +
           "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
           "           0         1\n 0     55.37     55.36\n\nSUM host_to_device_memcpy_ce "
           "130.73\n",
       "h2d 55.37 gpu 0\nh2d 55.36 gpu 1\n", "",
       "sum: the cells of host_to_device_memcpy_ce add up to 110.73, its sum says 130.73\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Measurements m = read(row.text);
    CHECK(describe_copies(m) == row.copies);
    CHECK(describe_skipped(m) == row.skipped);
    CHECK(describe_warnings(m.warnings) == row.warnings);
  }
}

TEST_CASE("what the tool does, stands in each sample") {
  const Measurements m = read(std::string(kHead) + kHostToDevice);
  const CopySample& sample = m.copies.front();
  CHECK(sample.regime == CopyRegime::kQueued);
  CHECK(sample.memory == HostMemory::kNear);
  CHECK(sample.pages == HostPages::kPinned);
  CHECK_FALSE(sample.bytes.has_value());
  CHECK(sample.where.line == 12);
  CHECK(m.machine.device == "NVIDIA H100 80GB HBM3");
  CHECK(m.machine.gpus == Count(2));
  CHECK(m.machine.driver == "550.54.15");
  CHECK(m.sources.front().format == "nvbandwidth v0.8, text");
}

TEST_CASE("logs of sums need the number of GPUs") {
  const std::string sums =
      "SUM host_to_device_memcpy_ce 802.86\nSUM host_to_all_memcpy_ce 674.15\n"
      "SUM device_to_device_bidirectional_memcpy_read_ce_total 18316.65\n"
      "SUM device_local_copy 13094.41\n";
  CHECK(describe_copies(read(sums, 4)) == "h2d 200.72\nh2d of 4 168.54\n");
  const Measurements without = read(sums);
  CHECK(without.copies.empty());
  CHECK(describe_skipped(without).starts_with(
      "host_to_device_memcpy_ce: only the sum over all GPUs is printed, and how many there are is "
      "not known: give --gpus, or nvidia-smi topo -m beside it\n"));
  const Measurements with = read(sums, 4);
  REQUIRE(with.traffic.size() == 1);
  // Bytes are counted once, HBM moves them twice.
  CHECK(static_cast<double>(with.traffic[0].traffic.value()) / with.traffic[0].time.value() ==
        doctest::Approx(2 * 13094.41e9 / 4));
}

const char* const kJson = R"json({"nvbandwidth": {
  "version": "v0.8", "git_version": "v0.8", "CUDA Runtime Version": 12040,
  "Driver Version": "550.54.15", "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:0f:00)"],
  "future key": {"a": [1, 2]},
  "testcases": [
    {"name": "host_to_device_memcpy_ce", "status": "Passed",
     "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s) ",
     "bandwidth_matrix": [["55.3412"]], "sum": 55.3412, "min": 0, "average": 55.3412},
    {"name": "device_to_device_memcpy_read_ce", "status": "Waived"},
    {"name": "device_to_host_memcpy_ce", "status": "Passed",
     "bandwidth_description": "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s) ",
     "bandwidth_matrix": [["N/A"]], "sum": 0, "average": nan},
    {"name": "host_to_all_memcpy_ce", "status": "Error"},
    {"name": "device_to_host_bidirectional_memcpy_ce", "status": "Passed",
     "bandwidth_matrix": [[50.25]], "sum": 50.25}]}})json";

Measurements read_json(const std::string& text) {
  const Result<BandwidthRun> run = read_nvbandwidth_json(text, "log");
  REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : to_text(run.error())));
  Result<Measurements> read = to_measurements(*run, {});
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
  return std::move(read).value();
}

TEST_CASE("JSON: cells are texts, nan is no JSON, and text stands around it") {
  for (const std::string& text :
       {std::string(kJson), "WARNING: {no} GPU lock\n" + std::string(kJson) + "\nbye }\n"}) {
    const Measurements m = read_json(text);
    CHECK(describe_copies(m) == "h2d 55.34 gpu 0\nd2h both ways 50.25 gpu 0\n");
    CHECK(describe_skipped(m) ==
          "device_to_device_memcpy_read_ce: waived: it cannot run on this machine\n");
    CHECK(describe_warnings(m.warnings) ==
          "failed: 'host_to_all_memcpy_ce' failed and is left out: its status is Error\n");
    CHECK(m.machine.device == "NVIDIA H100 80GB HBM3");
    CHECK(m.sources.front().format == "nvbandwidth v0.8, JSON");
  }
}

TEST_CASE("a cell of JSON that is no rate spoils its test") {
  for (const char* cell : {"1e300", "\"1e300\"", "\"fast\"", "{}"}) {
    CAPTURE(cell);
    const Measurements m = read_json(std::string(R"({"nvbandwidth": {"testcases": [
          {"name": "device_to_host_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.3"]]},
          {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55",)") +
                                     cell + "]]}]}}");
    CHECK(describe_copies(m) == "d2h 55.30 gpu 0\n");
    CHECK(describe_warnings(m.warnings) ==
          "failed: 'host_to_device_memcpy_ce' failed and is left out: a cell of it is no rate\n");
  }
}

TEST_CASE("JSON that is cut keeps the tests before") {
  const std::string text(kJson);
  const Measurements m = read_json(text.substr(0, text.find("\"Waived\"")));
  CHECK(describe_copies(m) == "h2d 55.34 gpu 0\n");
  CHECK(describe_warnings(m.warnings) ==
        "cut: the JSON ends or breaks in the middle: complete tests are kept\n");
  CHECK_FALSE(read_nvbandwidth_json("{\"nvbandwidth\": oops", "log").ok());
}

TEST_CASE("three matrices behind one another are one test of pairs") {
  const Measurements m = read_json(
      R"json({"nvbandwidth": {"testcases": [
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.3"]]},
        {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Passed",
         "bandwidth_matrix": [["N/A","1"],["2","N/A"],["N/A","3"],["4","N/A"],["N/A","4"],
                              ["6","N/A"]], "sum": 10}]}})json");
  CHECK(describe_skipped(m) ==
        "device_to_device_bidirectional_memcpy_read_ce: between GPUs: collectives are fitted from "
        "their own tables\n");
  CHECK(m.warnings.empty());
}

TEST_CASE("published logs read as they were summed") {
  const std::string folder = "../shared/data/nvbandwidth/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("no ../shared/data: published logs are not read");
    return;
  }
  const std::map<std::string, std::size_t> copies = {{"a10_1gpu_v0.5.txt", 2},
                                                     {"h100_8gpu_v0.10.txt", 16},
                                                     {"h800_8gpu_v0.2.txt", 0},
                                                     {"gh200_480gb_1gpu_v0.6.txt", 0},
                                                     {"rtx4090_8gpu_v0.2_partial.txt", 16},
                                                     {"gb200_4gpu_oci_sums.txt", 16}};
  for (const auto& [name, expected] : copies) {
    CAPTURE(name);
    const auto bytes = read_file(folder + name);
    REQUIRE(bytes.ok());
    REQUIRE(is_nvbandwidth_text(**bytes));
    const auto m = to_measurements(read_nvbandwidth_text(**bytes, name), 4);
    REQUIRE(m.ok());
    CHECK(describe_warnings(m->warnings) == "");
    if (expected > 0) CHECK(m->copies.size() == expected);
    CHECK(m->copies.size() > 0);
  }
}

}  // namespace
}  // namespace spillway::calibration
