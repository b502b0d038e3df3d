#include "model/program/host_transfer.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::read_module;

constexpr const char* kHeader = "HloModule toy, is_scheduled=true\n";

/// A fusion of one slice, update or copy, as XLA wraps what moves stacked arrays.
constexpr const char* kFused =
    "%fused_update {\n"
    "  %stack = bf16[4,8] parameter(0)\n  %new = bf16[8] parameter(1)\n  %i = s32[] parameter(2)\n"
    "  %as_row = bf16[1,8] bitcast(%new)\n  %zero = s32[] constant(0)\n"
    "  ROOT %dus = bf16[4,8] dynamic-update-slice(%stack, %as_row, %i, %zero)\n}\n"
    "%fused_slice {\n"
    "  %i = s32[] parameter(1)\n  %stack = bf16[4,8] parameter(0)\n  %zero = s32[] constant(0)\n"
    "  %ds = bf16[1,8] dynamic-slice(%stack, %i, %zero), dynamic_slice_sizes={1,8}\n"
    "  ROOT %row = bf16[8] bitcast(%ds)\n}\n"
    "%wrapped {\n"
    "  %i = s32[] parameter(1)\n  %stack = bf16[4,8] parameter(0)\n"
    "  ROOT %fusion = bf16[8] fusion(%stack, %i), kind=kLoop, calls=%fused_slice\n}\n";

std::string describe(const Program& program, std::string_view name) {
  const InstructionId id = find_instruction(program, name);
  const auto transfer = host_transfer(program, id);
  if (!transfer) return is_host_compute(program, id) ? "host compute" : "none";
  std::string text =
      transfer->direction == TransferDirection::kDeviceToHost ? "offload " : "reload ";
  text += std::to_string(transfer->bytes.value());
  if (transfer->host_array)
    text += " of " + std::string(program[id.computation][transfer->host_array->instruction].name);
  return text;
}

TEST_CASE("every form of a copy between device and host") {
  struct Row {
    std::string instruction;
    std::string expected;
  };
  // d is bf16[8] and D bf16[4,8] on the device, h and H the same on the host.
  const Row rows[] = {
      {"bf16[8]{0:S(5)} copy(%d)", "offload 16"},
      {"bf16[8]{0} copy(%h)", "reload 16 of h"},
      {"bf16[8]{0} copy(%d)", "none"},
      {"bf16[8]{0:S(5)} copy(%h)", "host compute"},
      {"(bf16[8]{0:S(5)}, bf16[8]{0}, u32[]) copy-start(%d)", "offload 16"},
      {"(bf16[8]{0}, bf16[8]{0:S(5)}, u32[]) copy-start(%h)", "reload 16 of h"},
      {"(bf16[8]{0}, bf16[8]{0}, u32[]) copy-start(%d)", "none"},
      {"bf16[1,8]{1,0} dynamic-slice(%H, %i, %i), dynamic_slice_sizes={1,8}", "reload 16 of H"},
      {"bf16[1,8]{1,0} slice(%H), slice={[1:2], [0:8]}", "reload 16 of H"},
      {"bf16[1,8]{1,0} dynamic-slice(%D, %i, %i), dynamic_slice_sizes={1,8}", "none"},
      {"bf16[4,8]{1,0:S(5)} dynamic-update-slice(%H, %row, %i, %i)", "offload 16 of H"},
      {"bf16[4,8]{1,0} dynamic-update-slice(%D, %row, %i, %i)", "none"},
      {"bf16[4,8]{1,0:S(5)} fusion(%H, %d, %i), kind=kLoop, calls=%fused_update",
       "offload 16 of H"},
      {"bf16[4,8]{1,0} fusion(%D, %d, %i), kind=kLoop, calls=%fused_update", "none"},
      {"bf16[8]{0} fusion(%H, %i), kind=kLoop, calls=%fused_slice", "reload 16 of H"},
      {"bf16[8]{0} fusion(%D, %i), kind=kLoop, calls=%fused_slice", "none"},
      {"((bf16[4,8]{1,0:S(5)}, s32[]), bf16[8]{0}, u32[]) async-start(%H, %i), calls=%wrapped",
       "reload 16 of H"},
      {"((bf16[4,8]{1,0}, s32[]), bf16[8]{0}, u32[]) async-start(%D, %i), calls=%wrapped", "none"},
      {"((bf16[4,8]{1,0:S(5)}, s32[], s32[]), bf16[1,8]{1,0}, u32[]) "
       "dynamic-slice-start(%H, %i, %i), dynamic_slice_sizes={1,8}",
       "reload 16 of H"},
      {"((bf16[4,8]{1,0:S(5)}, bf16[1,8]{1,0}, s32[], s32[]), bf16[4,8]{1,0:S(5)}, u32[]) "
       "dynamic-update-slice-start(%H, %row, %i, %i)",
       "offload 16 of H"},
      {"bf16[8]{0} negate(%h)", "host compute"},
      {"bf16[8]{0} negate(%d)", "none"},
      {"(bf16[8]{0}, bf16[8]{0:S(5)}) tuple(%d, %h)", "none"},
      {"bf16[8]{0} custom-call(%h), custom_call_target=\"AllocateBuffer\"", "none"},
      {"bf16[8]{0} custom-call(%d), custom_call_target=\"x\", "
       "frontend_attributes={_xla_compute_type=\"host\"}",
       "host compute"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    const Program program =
        read_module(std::string(kHeader) + kFused +
                    "ENTRY %main {\n"
                    "  %d = bf16[8]{0} parameter(0)\n  %h = bf16[8]{0:S(5)} parameter(1)\n"
                    "  %D = bf16[4,8]{1,0} parameter(2)\n  %H = bf16[4,8]{1,0:S(5)} parameter(3)\n"
                    "  %i = s32[] parameter(4)\n  %row = bf16[1,8]{1,0} parameter(5)\n"
                    "  ROOT %it = " +
                    row.instruction + "\n}\n");
    CHECK(describe(program, "it") == row.expected);
  }
}

TEST_CASE("the end of a copy moves nothing") {
  const Program program =
      read_module(std::string(kHeader) +
                  "ENTRY %main {\n  %d = bf16[8]{0} parameter(0)\n"
                  "  %start = (bf16[8]{0:S(5)}, bf16[8]{0}, u32[]) copy-start(%d)\n"
                  "  ROOT %done = bf16[8]{0:S(5)} copy-done(%start)\n}\n");
  CHECK(describe(program, "start") == "offload 16");
  CHECK(describe(program, "done") == "none");
}

}  // namespace
}  // namespace spillway
