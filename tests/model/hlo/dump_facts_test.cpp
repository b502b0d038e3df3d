#include "model/hlo/dump_facts.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::TemporaryFolder;

const std::string kAsked =
    "HloModule jit_step\n  %a = f32[4] custom-call(%x), "
    "custom_call_target=\"annotate_device_placement\", "
    "frontend_attributes={_xla_buffer_placement=\"pinned_host\"}\n  %b = f32[4] custom-call(%a), "
    "custom_call_target=\"annotate_device_placement\", "
    "frontend_attributes={_xla_buffer_placement=\"device\"}\n  %c = f32[4] custom-call(%x), "
    "custom_call_target=\"MoveToHost\"\n";

TEST_CASE("what lies beside the optimised module") {
  const TemporaryFolder folder;
  const std::string module = "module_0007.jit_step";
  const std::string program =
      folder.write(module + ".sm_10.0a_gpu_after_optimizations.txt", "HloModule jit_step");
  CHECK(!read_dump_facts(program).host_placements_asked);
  CHECK(!read_dump_facts(program).compiled_for_hbm);

  folder.write("module_0008.jit_step.before_optimizations.txt", kAsked);  // another module's
  CHECK(!read_dump_facts(program).host_placements_asked);
  folder.write(module + ".before_optimizations.txt", kAsked);
  CHECK(read_dump_facts(program).host_placements_asked == 2);
  folder.write(module + ".before_optimizations.txt", "HloModule jit_step");
  CHECK(read_dump_facts(program).host_placements_asked == 0);

  folder.write(module + ".gpu_target_config.pbtxt",
               "gpu_device_info {\n  device_memory_size: 197897748480\n}\n");
  CHECK(read_dump_facts(program).compiled_for_hbm == Bytes(197897748480));
  for (const char* damaged :
       {"device_memory_size: x", "device_memory_size:", "-", "device_memory_size: -5",
        "device_memory_size: 99999999999999999999"}) {
    folder.write(module + ".gpu_target_config.pbtxt", damaged);
    CHECK(!read_dump_facts(program).compiled_for_hbm);
  }
}

TEST_CASE("the thunk sequence shows whether host copies have streams of their own") {
  const TemporaryFolder folder;
  const std::string program = folder.write("jit_step.sm_9.0a_gpu_after_optimizations.txt", "");
  CHECK(!thunks_have_copy_streams(program));
  const auto with = [&](const std::string& thunks) {
    folder.write("jit_step.thunk_sequence.txt", thunks);
    return thunks_have_copy_streams(program);
  };
  CHECK(with("001: kAsyncStart [source | sink] stream=memcpy_d2h_stream, async_id=1\n") == true);
  CHECK(with("001: kAsyncStart [source | sink] stream=computation_stream[2], async_id=1\n") ==
        false);
  CHECK(with("002: kCopy\n003: kWaitForStreams\n") == std::nullopt);  // jaxlib 0.8
  CHECK(!thunks_have_copy_streams("step.hlo"));
}

TEST_CASE("names of other kinds have no siblings") {
  const TemporaryFolder folder;
  folder.write("step.before_optimizations.txt", kAsked);
  CHECK(!read_dump_facts(folder.write("step.hlo", "")).host_placements_asked);
  CHECK(!read_dump_facts("").host_placements_asked);
  CHECK(!read_dump_facts("/no/such/module.sm_9.0_gpu_after_optimizations.txt").compiled_for_hbm);
  // Without a target in the name, and packed.
  const std::string program = folder.write("step.after_optimizations.hlo.pb", "");
  CHECK(read_dump_facts(program).host_placements_asked == 2);
}

}  // namespace
}  // namespace spillway
