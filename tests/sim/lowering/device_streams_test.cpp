#include "sim/lowering/device_streams.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::read_module;

// Two offloads, a reload, six copies within HBM and an all-gather.
constexpr const char* kModule = R"(HloModule toy, is_scheduled=true

%gather (p: f32[4]) -> f32[8] {
  %p = f32[4] parameter(0)
  ROOT %all-gather.1 = f32[8] all-gather(%p), replica_groups={{0,1}}, dimensions={0}
}

ENTRY %main {
  %x = f32[4] parameter(0)
  %d0 = (f32[4], f32[4], u32[]) copy-start(%x)
  %out0 = (f32[4]{0:S(5)}, f32[4], u32[]) copy-start(%x)
  %d1 = (f32[4], f32[4], u32[]) copy-start(%x)
  %g = ((f32[4]), f32[8]) async-start(%x), calls=%gather
  %d2 = (f32[4], f32[4], u32[]) copy-start(%x)
  %out0.done = f32[4]{0:S(5)} copy-done(%out0)
  %in0 = (f32[4], f32[4]{0:S(5)}, u32[]) copy-start(%out0.done)
  %d3 = (f32[4], f32[4], u32[]) copy-start(%x)
  %d4 = (f32[4], f32[4], u32[]) copy-start(%x)
  %d0.done = f32[4] copy-done(%d0)
  %d1.done = f32[4] copy-done(%d1)
  %g.done = f32[8] async-done(%g)
  %d2.done = f32[4] copy-done(%d2)
  %in0.done = f32[4] copy-done(%in0)
  %d3.done = f32[4] copy-done(%d3)
  %d4.done = f32[4] copy-done(%d4)
  ROOT %r = (f32[4], f32[4], f32[8], f32[4], f32[4], f32[4], f32[4]) tuple(%d0.done, %d1.done, %g.done, %d2.done, %in0.done, %d3.done, %d4.done)
}
)";

TEST_CASE("each direction of the host link has a stream, the rest take four in turn") {
  const Program program = read_module(kModule);
  struct Row {
    const char* instruction;
    const char* dedicated;
    const char* round_robin;
  };
  // In post order from the root: d0, d1, (g,) d2, out0, in0, d3, d4.
  const Row rows[] = {{"d0", "computation_stream[0]", "computation_stream[0]"},
                      {"d1", "computation_stream[1]", "computation_stream[1]"},
                      {"g", "communication_stream[0]", "communication_stream[0]"},
                      {"d2", "computation_stream[2]", "computation_stream[2]"},
                      {"out0", "memcpy_d2h_stream", "computation_stream[3]"},
                      {"in0", "memcpy_h2d_stream", "computation_stream[0]"},
                      {"d3", "computation_stream[3]", "computation_stream[1]"},
                      {"d4", "computation_stream[0]", "computation_stream[2]"}};
  const StreamAssignment dedicated = assign_streams(program, CopyStreams::kDedicated);
  const StreamAssignment round_robin = assign_streams(program, CopyStreams::kRoundRobin);
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    const InstructionId id = find_instruction(program, row.instruction);
    CHECK(to_string(*dedicated[id.computation][id.instruction.index]) == row.dedicated);
    CHECK(to_string(*round_robin[id.computation][id.instruction.index]) == row.round_robin);
  }
  const InstructionId done = find_instruction(program, "g.done");
  CHECK_FALSE(dedicated[done.computation][done.instruction.index].has_value());
}

TEST_CASE("the streams of host copies came with jaxlib 0.12") {
  struct Row {
    const char* version;
    CopyStreams expected;
  };
  const Row rows[] = {{"0.8.3", CopyStreams::kRoundRobin},   {"0.10.2", CopyStreams::kRoundRobin},
                      {"0.11.2", CopyStreams::kRoundRobin},  {"0.12.0", CopyStreams::kDedicated},
                      {"0.12.0.1", CopyStreams::kDedicated}, {"0.13.0", CopyStreams::kDedicated}};
  for (const Row& row : rows) {
    CAPTURE(row.version);
    CHECK(copy_streams_of(*parse_jaxlib_version(row.version)) == row.expected);
  }
}

TEST_CASE("text with get-tuple-element instructions comes from an XLA without dedicated streams") {
  CHECK(copy_streams_of(read_module(kModule)) == CopyStreams::kDedicated);
  const Program old = read_module(
      "HloModule old, is_scheduled=true\nENTRY %main {\n  %p = (f32[2], f32[2]) parameter(0)\n"
      "  ROOT %e = f32[2] get-tuple-element(%p), index=1\n}\n");
  CHECK(copy_streams_of(old) == CopyStreams::kRoundRobin);
}

}  // namespace
}  // namespace spillway
