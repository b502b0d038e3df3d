#include "calibration/import/read_source.h"

#include <doctest/doctest.h>

#include "calibration/import/bandwidth_test.h"
#include "calibration/import/run_samples.h"
#include "tests/calibration/synthetic.h"
#include "tests/support/describe_measurements.h"
#include "tests/support/nsys_fixture.h"
#include "tests/support/temporary_folder.h"

namespace spillway::calibration {
namespace {

using testing::describe_copies;
using testing::describe_skipped;
using testing::describe_warnings;
using testing::read_measurements;
using testing::shipped_profile;
using testing::TemporaryFolder;

const char* const kLog =
    "nvbandwidth Version: v0.8\n"
    "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0\n 0     55.37\n\nSUM host_to_device_memcpy_ce 55.37\n";

TEST_CASE("the content of a file decides what reads it") {
  const TemporaryFolder folder;
  const HardwareProfile base = shipped_profile("h100");
  struct Row {
    std::string path;
    const char* format;
  };
  const Row rows[] = {
      {folder.write("a", kLog), "nvbandwidth v0.8, text"},
      {folder.write("b",
                    "{\"nvbandwidth\": {\"version\": \"v0.8\", \"testcases\": [{\"name\": "
                    "\"host_to_device_memcpy_ce\", \"status\": \"Passed\", "
                    "\"bandwidth_matrix\": [[\"55.3\"]], \"sum\": 55.3}]}}"),
       "nvbandwidth v0.8, JSON"},
      {folder.write("c", "GPU 0: NVIDIA GH200 480GB (UUID: x)\n C2C Link 0: 44.712 GB/s\n"),
       "nvidia-smi c2c"},
      {folder.write("d",
                    "bandwidthTest-H2D-Pinned, Bandwidth = 12.4 GB/s, Time = 0.00024 s, Size "
                    "= 3000000 bytes, NumDevsUsed = 1\n"),
       "bandwidthTest"},
      {folder.write("e",
                    "entries { key: \"sm_90\" value { entries { b: 1 m: 64 n: 64 k: 64 flops "
                    "{ key: \"bf16xbf16->bf16\" value: 1e12 } } } }"),
       "XLA performance table"},
      {testing::write_database(folder.path("f"), testing::two_steps()), "Nsight Systems"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const Result<Measurements> read = read_measurements({row.path}, base);
    REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : to_text(read.error())));
    CHECK(read->sources.front().format == row.format);
  }
  const auto none = read_source(folder.write("x", "nothing of the kind"));
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text == "no measurements of a kind that is known");
  CHECK_FALSE(read_source(folder.path("missing")).ok());
}

TEST_CASE("bandwidthTest: tables and lines, pinned and pageable") {
  const auto table = read_bandwidth_test(
      "[CUDA Bandwidth Test] - Starting...\n\n Device 0: NVIDIA GH200 480GB\n Quick Mode\n\n"
      " Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t335.3\n\n"
      " Device to Host Bandwidth, 1 Device(s)\n PAGEABLE Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(MB/s)\n   32000000\t\t\t2916.4\n\n"
      " Device to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t2313.7\n\nResult = PASS\n",
      "log");
  REQUIRE(table.ok());
  CHECK(describe_copies(*table) == "h2d 32000000 B 335.30\nd2h pageable 32000000 B 2.92\n");
  CHECK(table->machine.device == "NVIDIA GH200 480GB");
  CHECK(describe_warnings(table->warnings) ==
        "pageable: transfers of pageable memory: they say nothing of the link; XLA's buffers are "
        "pinned, run it with --memory=pinned\n");
  const auto none = read_bandwidth_test("[CUDA Bandwidth Test] - Starting...\n", "log");
  CHECK_FALSE(none.ok());
}

/// A run of copies: µs and bytes, beside a kernel or not.
MeasuredRun run_of(std::initializer_list<MeasuredCopy> copies) {
  MeasuredRun run;
  run.path = "run";
  run.copies = copies;
  return run;
}

MeasuredCopy copy(double us, double beside_kernels, double beside_opposite = 0) {
  MeasuredCopy copy;
  copy.kind = CopyKind::kHostToDevice;
  copy.from = MemoryPlace::kPinned;
  copy.to = MemoryPlace::kDevice;
  copy.bytes = Bytes(1000000);
  copy.time = Seconds(us * 1e-6);
  copy.beside_kernels = copy.time * beside_kernels;
  copy.beside_opposite = copy.time * beside_opposite;
  return copy;
}

TEST_CASE("copies of a run: alone, beside kernels, beside the other direction") {
  const auto alone = to_measurements(run_of({copy(20, 0.05), copy(40, 1)}));
  REQUIRE(alone.ok());
  CHECK(describe_copies(*alone) ==
        "h2d 1000000 B 50.00 gpu 0\nh2d beside work 1000000 B 25.00 gpu 0\n");
  CHECK(alone->warnings.empty());
  // Where kernels ran beside all of a size, the fastest shows the link.
  const auto beside = to_measurements(run_of({copy(40, 1), copy(20, 1), copy(25, 1)}));
  REQUIRE(beside.ok());
  CHECK(describe_copies(*beside) ==
        "h2d 1000000 B 50.00 gpu 0\nh2d beside work 1000000 B 40.00 gpu 0\n"
        "h2d beside work 1000000 B 25.00 gpu 0\n");
  CHECK(beside->warnings.front().code == "beside-kernels");
  const auto both = to_measurements(run_of({copy(20, 0, 1), copy(20, 0, 0.5), copy(25, 0)}));
  REQUIRE(both.ok());
  CHECK(describe_copies(*both) ==
        "h2d both ways 1000000 B 50.00 gpu 0\nh2d 1000000 B 40.00 gpu 0\n");
  CHECK(describe_skipped(*both) ==
        "1 copies: the other direction was busy for a part of their time\n");
  const auto none = to_measurements(run_of({}));
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text == "the run has no copy across the host link");
}

TEST_CASE("GPUs that one file counts hold for the sums of another") {
  const TemporaryFolder folder;
  const std::string sums = folder.write("sums", "SUM host_to_device_memcpy_ce 802.86\n");
  std::string links;
  for (int gpu = 0; gpu < 4; ++gpu)
    links += "GPU " + std::to_string(gpu) + ": NVIDIA GB200 (UUID: x)\n C2C Link 0: 223.6 GB/s\n";
  const HardwareProfile base = shipped_profile("gb200");
  const auto alone = read_measurements({sums}, base);
  REQUIRE(alone.ok());
  CHECK(alone->copies.empty());
  const auto both = read_measurements({sums, folder.write("c2c", links)}, base);
  REQUIRE(both.ok());
  CHECK(describe_copies(*both) == "h2d 200.72\n");
}

TEST_CASE("a file given twice is refused, by whatever name") {
  const TemporaryFolder folder;
  const std::string log = folder.write("log", kLog);
  const std::string again = folder.path("./log");
  const auto twice = read_sources({log, again});
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().kind == ErrorKind::kUsage);
  CHECK(twice.error().text ==
        spillway::quoted(again) + " is the file that is read as " + spillway::quoted(log));
  CHECK(read_sources({log, folder.write("copy", kLog)}).ok());
}

TEST_CASE("text in UTF-16 is told from a database") {
  const TemporaryFolder folder;
  for (const std::string mark : {"\xff\xfe", "\xfe\xff"}) {
    const auto read = read_source(folder.write("log", mark + std::string("n\0v\0", 4)));
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().text == "is text in UTF-16, and must be in UTF-8");
  }
}

TEST_CASE("the device that the files name") {
  const TemporaryFolder folder;
  const std::string run = testing::write_database(
      folder.path("run"), testing::two_steps() +
                              "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT); INSERT INTO "
                              "TARGET_INFO_GPU VALUES (0, 'NVIDIA H200');");
  const std::string log = folder.write("log", kLog);
  CHECK(device_of(*read_sources({log})) == "");
  CHECK(device_of(*read_sources({log, run})) == "NVIDIA H200");
}

}  // namespace
}  // namespace spillway::calibration
