#include "model/run/xplane.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "model/base/read_file.h"
#include "model/run/read_run.h"
#include "tests/support/describe_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/xplane_fixture.h"

namespace spillway {
namespace {

using testing::add_two_steps;
using testing::describe_copies;
using testing::describe_instructions;
using testing::describe_modules;
using testing::describe_notes;
using testing::describe_streams;
using testing::PlaneFixture;

MeasuredRun parse(const pb::XSpace& space) {
  Result<MeasuredRun> run = parse_xplane(space.SerializeAsString(), "host.xplane.pb");
  REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : to_text(run.error())));
  return std::move(run).value();
}

TEST_CASE("streams of a device plane") {
  pb::XSpace space;
  add_two_steps(space, 0);
  const MeasuredRun run = parse(space);
  CHECK(run.format == RunFormat::kXPlane);
  CHECK(describe_instructions(run) ==
        "jit_step/gemm.2 2.000 us x2 (2 launches) on Stream #13(Compute)\n"
        "jit_step/copy-start.3 2.000 us x2 (2 launches) on Stream #14(MemcpyD2H)\n"
        "jit_step/fusion.1 0.800 us x2 (4 launches) on Stream #13(Compute)\n");
  CHECK(describe_copies(run) == "device to host, device to pinned: 2 of 200000 B at 50.00 GB/s\n");
  CHECK(describe_streams(run) ==
        "0:Stream #13(Compute) kernels 5.400 us, copies 0.000 us, beside kernels 0.000 us\n"
        "0:Stream #14(MemcpyD2H) kernels 0.000 us, copies 4.000 us, beside kernels 3.000 us\n");
  // Nobody says where a step begins: at the first instruction that runs once in it.
  CHECK(describe_modules(run) == "jit_step x2 3.500 us, every 10.000 us\n");
  CHECK(describe_notes(run.notes) == "");
}

TEST_CASE("loops repeat instructions, which say nothing of where a step begins") {
  pb::XSpace space;
  PlaneFixture plane(space, "/device:GPU:0");
  pb::XLine& line = plane.line("Stream #1(Compute)", 0);
  for (const int step : {0, 1000, 2000}) {
    plane.kernel(line, "k", "before", step, 10);
    for (int k = 0; k < 4; ++k) {
      plane.kernel(line, "a", "body.1", step + 100 + 100 * k, 20);
      plane.kernel(line, "b", "body.2", step + 150 + 100 * k, 30);
    }
    plane.kernel(line, "k", "after", step + 600, 10);
  }
  const MeasuredRun run = parse(space);
  CHECK(describe_instructions(run) ==
        "jit_step/body.2 0.030 us x12 (12 launches) on Stream #1(Compute)\n"
        "jit_step/body.1 0.020 us x12 (12 launches) on Stream #1(Compute)\n"
        "jit_step/before 0.010 us x3 (3 launches) on Stream #1(Compute)\n"
        "jit_step/after 0.010 us x3 (3 launches) on Stream #1(Compute)\n");
  CHECK(describe_modules(run) == "jit_step x3 0.610 us, every 1.000 us\n");
}

TEST_CASE("a loop of one instruction: the same kernel again is the next execution") {
  pb::XSpace space;
  PlaneFixture plane(space, "/device:GPU:0");
  pb::XLine& line = plane.line("Stream #1(Compute)", 0);
  plane.kernel(line, "k", "before", 0, 10);
  for (int k = 1; k <= 3; ++k) {
    plane.kernel(line, "gemm", "dot.1", 100 * k, 40);
    plane.kernel(line, "splitk_reduce", "dot.1", 100 * k + 50, 10);
  }
  CHECK(describe_instructions(parse(space)) ==
        "jit_step/dot.1 0.060 us x3 (6 launches) on Stream #1(Compute)\n"
        "jit_step/before 0.010 us x1 (1 launches) on Stream #1(Compute)\n");
}

TEST_CASE("of a collective the time of the rank that came last") {
  pb::XSpace space;
  for (const int device : {0, 1}) {
    PlaneFixture plane(space, "/device:GPU:" + std::to_string(device));
    pb::XLine& line = plane.line("Stream #20(Compute)", 0);
    // Each of the two waits once for the other: 90 and 70 us hold waiting, 50 and 52 do not.
    const std::int64_t lengths[2][2] = {{50000, 70000}, {90000, 52000}};
    for (const int step : {0, 1}) {
      plane.kernel(line, "ncclDevKernel_AllGather", "all-gather-start.1", 200000 * step,
                   lengths[device][step]);
      plane.kernel(line, "k", "fusion.1", 200000 * step + 100000, device == 0 ? 1000 : 3000);
    }
  }
  const MeasuredRun run = parse(space);
  REQUIRE(run.instructions.size() == 2);
  CHECK(run.instructions[0].collective);
  CHECK(run.instructions[0].time.value() == doctest::Approx(50e-6));
  CHECK(run.instructions[0].longest.value() == doctest::Approx(90e-6));
  CHECK(run.instructions[1].time.value() == doctest::Approx(1e-6));  // the lower middle of four
}

TEST_CASE("copies say their kind in several ways") {
  struct Row {
    const char* name;
    const char* details;
    const char* expected;
  };
  const Row rows[] = {
      {"MemcpyH2D", "kind_src:pinned kind_dst:device size:500 dest:0 async:1",
       "host to device, pinned to device: 1 of 500 B at 0.50 GB/s\n"},
      {"MemcpyH2D", "kind_src:pageable kind_dst:device size:500 dest:0 async:0",
       "host to device, pageable to device: 1 of 500 B at 0.50 GB/s\n"},
      {"MemcpyD2H", "kind:pinned size:500 dest:0 async:1",
       "device to host, device to pinned: 1 of 500 B at 0.50 GB/s\n"},
      {"MemcpyH2D", "kind:pageable size:500",
       "host to device, pageable to device: 1 of 500 B at 0.50 GB/s\n"},
      {"MemcpyOther", "kind_src:device kind_dst:pinned size:500",
       "device to host, device to pinned: 1 of 500 B at 0.50 GB/s\n"},
      {"CopyDeviceToDevice", "kind:Unknown size:655360 dest:2 async:1",
       "within the device, unknown to unknown: 1 of 655360 B at 655.36 GB/s\n"},
      {"MemcpyP2P", "size:500 dest:3",
       "between devices, unknown to unknown: 1 of 500 B at 0.50 GB/s\n"},
      {"MemcpyD2H", "num_bytes:500", "device to host, unknown to unknown: 1 of 0 B at 0.00 GB/s\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.details);
    pb::XSpace space;
    PlaneFixture plane(space, "/device:GPU:0");
    plane.copy(plane.line("Stream #1", 0), row.name, "copy.1", row.details, 0, 1000);
    const MeasuredRun run = parse(space);
    CHECK(describe_copies(run) == row.expected);
    const bool sized = std::string_view(row.details).find("num_bytes") == std::string_view::npos;
    CHECK(describe_notes(run.notes) ==
          (sized ? "" : "1 copies do not say their size: they give no rate\n"));
  }
}

TEST_CASE("derived lines count where there are no streams; nested names end with the innermost") {
  pb::XSpace space;
  {
    PlaneFixture plane(space, "/device:GPU:0");
    plane.kernel(plane.line("XLA Ops", 0), "fusion.7", "", 0, 10, "");
    plane.kernel(plane.line("XLA Modules", 0), "jit_step", "", 0, 10, "");
  }
  const MeasuredRun derived = parse(space);
  CHECK(describe_instructions(derived) == "/fusion.7 0.010 us x1 (1 launches) on XLA Ops\n");
  CHECK(describe_notes(derived.notes) ==
        "a device has no lines of streams, only those derived from them: which stream an "
        "instruction ran on is not known\n");

  pb::XSpace nested;
  PlaneFixture plane(nested, "/device:GPU:0");
  plane.kernel(plane.line("Stream #1(Compute)", 0), "k", "while.3::fusion.7", 0, 10);
  plane.kernel(plane.line("XLA Ops", 0), "fusion.7", "while.3::fusion.7", 0, 10);
  CHECK(describe_instructions(parse(nested)) ==
        "jit_step/fusion.7 0.010 us x1 (1 launches) on Stream #1(Compute)\n");
}

TEST_CASE("profiles without a GPU, cut ones, and what is none") {
  pb::XSpace host;
  host.add_planes()->set_name("/host:CPU");
  host.add_planes()->set_name("/host:metadata");
  const auto no_gpu = parse_xplane(host.SerializeAsString(), "a.xplane.pb");
  REQUIRE_FALSE(no_gpu.ok());
  CHECK(to_text(no_gpu.error()) ==
        "a.xplane.pb: error: no GPU ran anything in this profile\n"
        "  its planes are /host:CPU, /host:metadata; CUPTI serves one profiler at a time: was "
        "another one attached?");
  const auto none = parse_xplane("\x0a\x05junk", "a.xplane.pb");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text == "is no XSpace of a profiler");

  // The second device is cut away, the first is whole.
  pb::XSpace space;
  add_two_steps(space, 0);
  add_two_steps(space, 1);
  const std::string bytes = space.SerializeAsString();
  const auto cut = parse_xplane(bytes.substr(0, bytes.size() - 200), "a.xplane.pb");
  REQUIRE(cut.ok());
  CHECK(cut->instructions.size() == 3);
  CHECK(describe_notes(cut->notes)
            .starts_with("the file ends before its proto does: what stands before is read\n"));
}

TEST_CASE("of a folder of jax.profiler the latest run is read") {
  const testing::TemporaryFolder folder;
  for (const char* run : {"2026_01_01_10_00_00", "2026_01_02_10_00_00"}) {
    pb::XSpace space;
    add_two_steps(space, 0);
    const std::string below = "plugins/profile/" + std::string(run);
    std::filesystem::create_directories(folder.path(below));
    folder.write(below + "/host.xplane.pb", space.SerializeAsString());
  }
  const auto run = read_run(folder.path(""));
  REQUIRE(run.ok());
  CHECK(run->path.ends_with("2026_01_02_10_00_00/host.xplane.pb"));
  CHECK(run->notes.front().missing == "the folder has 1 more files, of other runs or hosts");
}

/// What others measured: three profiles of AMD GPUs, and what somebody made of them by hand.
TEST_CASE("foreign profiles give the published medians") {
  const std::string folder = "../shared/measured/mi300_tracelens/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("no ../shared/measured: foreign profiles are not read");
    return;
  }
  const auto run = read_run(folder + "te_fused_attn.xplane.pb");
  REQUIRE(run.ok());
  const auto find = [&](std::string_view name) {
    for (const MeasuredInstruction& in : run->instructions)
      if (in.name == name) return in;
    return MeasuredInstruction();
  };
  CHECK(find("wrapped_convert").time.value() == doctest::Approx(3.0e-6));
  CHECK(find("wrapped_convert").count == 5);
  CHECK(find("input_concatenate_fusion").time.value() == doctest::Approx(3.72e-6));
  REQUIRE_FALSE(run->modules.empty());
  CHECK(run->modules[0].name == "jit_loss_fn");
  CHECK(run->modules[0].executions == 5);
  for (const char* name : {"conv_minimal_jax08.xplane.pb", "conv_minimal_legacy.xplane.pb"}) {
    CAPTURE(name);
    const auto other = read_run(folder + name);
    REQUIRE(other.ok());
    REQUIRE_FALSE(other->modules.empty());
    CHECK(other->modules[0].name == "jit_forward_3d_conv");
    CHECK(other->copies.empty() == (std::string_view(name) == "conv_minimal_jax08.xplane.pb"));
  }
}

}  // namespace
}  // namespace spillway
