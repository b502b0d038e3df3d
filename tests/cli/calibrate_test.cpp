// spillway calibrate, as a person and a script call it.
#include <doctest/doctest.h>

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

TEST_CASE("what is wrong is said before anything is written") {
  const TemporaryFolder folder;
  const std::string log = folder.write("log", read_text("examples/calibration/nvbandwidth.txt"));
  const Run over = run_spillway("calibrate --base h100 --from " + log + " --out " + log);
  CHECK(over.exit_code == 2);
  CHECK(read_text(log) == read_text("examples/calibration/nvbandwidth.txt"));
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
