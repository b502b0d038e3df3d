// spillway calibrate, as a person and a script call it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/hardware/read_profile.h"
#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_golden;
using testing::check_refused;
using testing::read_text;
using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kFrom =
    "calibrate --from examples/calibration/nvbandwidth.txt examples/calibration/nvidia-smi.txt ";

TEST_CASE("the answer stays as it is") {
  check_golden("calibrate/h100.txt", run_spillway(kFrom + std::string("--base h100")).out);
  check_golden("calibrate/h100.json", run_spillway(kFrom + std::string("--base h100 --json")).out);
}

TEST_CASE("the device that the files name is the base") {
  const Run named = run_spillway(kFrom + std::string("--base h100 --json"));
  const Run found = run_spillway(kFrom + std::string("--json"));
  CHECK(found.exit_code == 0);
  CHECK(found.out == named.out);
  const TemporaryFolder folder;
  const std::string sums = folder.write("sums", "SUM host_to_device_memcpy_ce 802.86\n");
  check_refused("calibrate --from " + sums, 2,
                "error: the files do not say which machine was measured\n"
                "  give the one that comes nearest: --base h100 (spillway hw list)\n");
}

TEST_CASE("what is written is a machine for other commands, and a picture") {
  const TemporaryFolder folder;
  const std::string yaml = folder.path("ours.yaml"), svg = folder.path("ours.svg");
  const Run run = run_spillway(
      kFrom + ("--base h100 --id ours --name 'our own' --out " + yaml + " --plot " + svg));
  REQUIRE(run.exit_code == 0);
  CHECK(run.err == yaml + ": the machine, for --hw\n" + svg + ": a picture of it\n");
  const Result<HardwareProfile> profile = read_profile(yaml);
  REQUIRE_MESSAGE(profile.ok(), (profile.ok() ? "" : to_text(profile.error())));
  CHECK(profile->id == "ours");
  CHECK(profile->name == "our own");
  CHECK(profile->link.device_to_host.value.value() == doctest::Approx(53.97e9).epsilon(0.002));
  CHECK(profile->link.device_to_host.origin.kind == OriginKind::kMeasured);
  CHECK(profile->link.device_to_host.origin.source.find("nvbandwidth v0.8") != std::string::npos);
  CHECK(read_text(svg).starts_with("<svg xmlns"));
  CHECK(read_text(svg).find("link.host_to_device") != std::string::npos);
  CHECK(run_spillway("hw check " + yaml).exit_code == 0);
  CHECK(run_spillway("simulate examples/jax/dumps/offload_qkv --hw " + yaml).exit_code == 0);
}

TEST_CASE("nothing that determines a figure is an answer, and writes nothing") {
  const TemporaryFolder folder;
  const std::string sums = folder.write("sums", "SUM host_to_device_memcpy_ce 802.86\n");
  const std::string yaml = folder.path("ours.yaml");
  const Run run = run_spillway("calibrate --base gb200 --from " + sums + " --out " + yaml);
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("No figure could be determined.") != std::string::npos);
  CHECK(run.out.find("give --gpus") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(yaml));
  CHECK(run_spillway("calibrate --base gb200 --gpus 4 --from " + sums).exit_code == 0);
}

TEST_CASE("a machine that cannot be is answered, and not written") {
  const TemporaryFolder folder;
  const std::string sums = folder.write("sums", "SUM host_to_device_memcpy_ce 9000\n");
  const std::string yaml = folder.path("ours.yaml");
  const Run run = run_spillway("calibrate --base h100 --gpus 1 --from " + sums + " --out " + yaml);
  CHECK(run.exit_code == 1);
  CHECK(run.err == yaml + ": not written: such a machine cannot be, see the warnings\n");
  CHECK(run.out.find("cannot-be: link.cap_per_direction: 9 TB/s exceeds the HBM bandwidth") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(yaml));
}

TEST_CASE("a machine that no command could read is an error, and not written") {
  const TemporaryFolder folder;
  std::string table = "entries { key: \"sm_90\" value {\n";
  for (int power = 16; power <= 30; ++power) {
    const double bytes = std::pow(2.0, power), seconds = 1e-5 + bytes / 1e17;
    table += fmt::format(
        "entries {{ instruction {{ opcode: \"all-reduce\" shape {{ element_type: F32 "
        "dimensions: {} }} iota_collective_device_list {{ num_devices_per_group: 8 }} "
        "}} network_throughput_bytes_per_sec: {:.9g} }}\n",
        (1 << power) / 4, bytes / seconds);
  }
  const std::string yaml = folder.path("ours.yaml");
  const Run run = run_spillway("calibrate --base h100 --from " +
                               folder.write("table", table + "} }\n") + " --out " + yaml);
  CHECK(run.exit_code == 3);
  CHECK_MESSAGE(run.err.starts_with("error: what was fitted is no machine, and nothing is written: "
                                    "'bus_bandwidth' is outside 1 B/s to 1000 TB/s, in '- {gpus: "
                                    "8, "),
                run.err);
  CHECK(run.out.empty());
  CHECK_FALSE(std::filesystem::exists(yaml));
}

TEST_CASE("names that are no text are written as text") {
  const TemporaryFolder folder;
  const std::string log = folder.write("caf\xe9",
                                       "nvbandwidth Version: v0.8\xe9\n"
                                       "Device 0: NVIDIA H100 80GB HBM3 \xe9\n"
                                       "SUM host_to_device_memcpy_ce 55\n");
  const std::string yaml = folder.path("ours.yaml");
  const Run run = run_spillway("calibrate --from " + log + " --name 'caf\xe9' --out " + yaml);
  REQUIRE(run.exit_code == 0);
  CHECK(read_text(yaml).find("\nname: \"caf?\"\n") != std::string::npos);
  CHECK(run_spillway("hw check " + yaml).exit_code == 0);
}

TEST_CASE("without a base a file that is wrong is still that") {
  const TemporaryFolder folder;
  check_refused("calibrate --from " + folder.path("missing"), 3,
                folder.path("missing") + ": error: cannot be opened: No such file or directory\n");
  check_refused("calibrate --from " + folder.write("empty", ""), 3,
                folder.path("empty") + ": error: is empty\n");
  const std::string a10 = "Device 0: NVIDIA A10\nSUM host_to_device_memcpy_ce 25\n";
  check_refused("calibrate --from " + folder.write("a10", a10), 2,
                "error: no machine is known with the device 'NVIDIA A10'\n"
                "  give the one that comes nearest: --base h100 (spillway hw list)\n");
}

TEST_CASE("what is wrong is said before anything is written") {
  const TemporaryFolder folder;
  const std::string log = folder.write("log", read_text("examples/calibration/nvbandwidth.txt"));
  const Run over = run_spillway("calibrate --base h100 --from " + log + " --out " + log);
  CHECK(over.exit_code == 2);
  CHECK(read_text(log) == read_text("examples/calibration/nvbandwidth.txt"));
  const std::string both = folder.path("both");
  check_refused(
      "calibrate --base h100 --from " + log + " --out " + both + " --plot " + folder.path("./both"),
      2, "error: --out and --plot are one file, '" + both + "'\n  give the picture another name\n");
  CHECK(run_spillway("calibrate --base h100").exit_code == 2);
  CHECK(run_spillway("calibrate --base h101 --from " + log).exit_code == 2);
  CHECK(run_spillway("calibrate --base h100 --from " + folder.path("missing")).exit_code == 3);
  const std::string put = folder.write("put", "device_put 1 GB: 0.37 s\n");
  check_refused("calibrate --base h100 --from " + put, 3,
                put +
                    ": error: measures device_put by wall time, which is not the link\n"
                    "  a copy of the host's memory, staging buffers and Python are in it: 2.7 "
                    "where the link gives 25 GB/s; give copies timed by events, as nvbandwidth "
                    "and spillway-probe time them, or a profile of the run\n");
}

}  // namespace
}  // namespace spillway
