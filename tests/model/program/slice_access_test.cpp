#include "model/program/slice_access.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::read_module;

std::string describe(const Program& program, std::string_view name, std::uint32_t operand) {
  const InstructionId id = find_instruction(program, name);
  const SliceAccess access = slice_access(program, id, operand);
  std::string text = access.kind == AccessKind::kWhole       ? "whole "
                     : access.kind == AccessKind::kSliceRead ? "reads "
                                                             : "updates ";
  text += to_string(access.slice);
  if (access.update)
    text += " with " + std::string(program[id.computation][access.update->instruction].name);
  return text;
}

TEST_CASE("how an instruction touches its first operand") {
  struct Row {
    std::string name;
    std::string fused;  ///< instructions behind parameters %s = f32[4,8], %u = f32[1,8], %i = s32[]
    std::string expected;
  };
  const Row rows[] = {
      {"a slice", "ROOT %r = f32[1,8] slice(%s), slice={[0:1], [0:8]}", "reads f32[1,8]"},
      {"a dynamic slice, behind a bitcast",
       "%b = f32[4,1,8] bitcast(%s)\n  "
       "ROOT %r = f32[1,1,8] dynamic-slice(%b, %i, %i, %i), dynamic_slice_sizes={1,1,8}",
       "reads f32[1,1,8]"},
      {"several slices",
       "%a = f32[1,8] dynamic-slice(%s, %i, %i), dynamic_slice_sizes={1,8}\n  "
       "%b = f32[1,4] slice(%s), slice={[0:1], [0:4]}\n  ROOT %r = (f32[1,8], f32[1,4]) tuple(%a, "
       "%b)",
       "reads f32[1,8]"},
      {"an update with an operand", "ROOT %r = f32[4,8] dynamic-update-slice(%s, %u, %i, %i)",
       "updates f32[1,8] with U"},
      {"an update with an operand behind a bitcast",
       "%flat = f32[8] bitcast(%u)\n  %b = f32[1,8] bitcast(%flat)\n  "
       "ROOT %r = f32[4,8] dynamic-update-slice(%s, %b, %i, %i)",
       "updates f32[1,8] with U"},
      {"an update that is computed inside",
       "%n = f32[1,8] negate(%u)\n  ROOT %r = f32[4,8] dynamic-update-slice(%s, %n, %i, %i)",
       "updates f32[1,8]"},
      {"a slice read and an update",
       "%a = f32[1,8] dynamic-slice(%s, %i, %i), dynamic_slice_sizes={1,8}\n  "
       "%n = f32[1,8] negate(%a)\n  ROOT %r = f32[4,8] dynamic-update-slice(%s, %n, %i, %i)",
       "updates f32[1,8]"},
      {"an update and a slice read behind it",
       "%r0 = f32[4,8] dynamic-update-slice(%s, %u, %i, %i)\n  "
       "%a = f32[1,8] dynamic-slice(%s, %i, %i), dynamic_slice_sizes={1,8}\n  "
       "ROOT %r = (f32[4,8], f32[1,8]) tuple(%r0, %a)",
       "updates f32[1,8] with U"},
      {"two updates: the larger one, wherever it stands",
       "%n = f32[1,4] slice(%u), slice={[0:1], [0:4]}\n  "
       "%r0 = f32[4,8] dynamic-update-slice(%s, %u, %i, %i)\n  "
       "%r1 = f32[4,8] dynamic-update-slice(%s, %n, %i, %i)\n  "
       "ROOT %r = (f32[4,8], f32[4,8]) tuple(%r0, %r1)",
       "updates f32[1,8] with U"},
      {"a slice and the whole",
       "%a = f32[1,8] slice(%s), slice={[0:1], [0:8]}\n  ROOT %r = f32[4,8] negate(%s)",
       "whole f32[4,8]"},
      {"as the update of another array",
       "%b = f32[8,8] broadcast(%i), dimensions={}\n  "
       "ROOT %r = f32[8,8] dynamic-update-slice(%b, %s, %i, %i)",
       "whole f32[4,8]"},
      {"not at all", "ROOT %r = f32[1,8] negate(%u)", "whole f32[4,8]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_module(
        std::string("HloModule toy\n%fused {\n  %s = f32[4,8] parameter(0)\n"
                    "  %u = f32[1,8] parameter(1)\n  %i = s32[] parameter(2)\n  ") +
        row.fused +
        "\n}\nENTRY %main {\n  %S = f32[4,8] parameter(0)\n  %U = f32[1,8] parameter(1)\n"
        "  %I = s32[] parameter(2)\n"
        "  ROOT %it = f32[4,8] fusion(%S, %U, %I), kind=kLoop, calls=%fused\n}\n");
    CHECK(describe(program, "it", 0) == row.expected);
  }
}

TEST_CASE("outside fusions") {
  const Program program = testing::read_entry(
      "  %s = f32[4,8] parameter(0)\n  %u = f32[1,8] parameter(1)\n  %i = s32[] parameter(2)\n"
      "  %slice = f32[1,8] slice(%s), slice={[0:1], [0:8]}\n"
      "  %ds = f32[1,8] dynamic-slice(%s, %i, %i), dynamic_slice_sizes={1,8}\n"
      "  %dus = f32[4,8] dynamic-update-slice(%s, %u, %i, %i)\n"
      "  %neg = f32[4,8] negate(%s)\n");
  CHECK(describe(program, "slice", 0) == "reads f32[1,8]");
  CHECK(describe(program, "ds", 0) == "reads f32[1,8]");
  CHECK(describe(program, "ds", 1) == "whole s32[]");
  CHECK(describe(program, "dus", 0) == "updates f32[1,8] with u");
  CHECK(describe(program, "dus", 1) == "whole f32[1,8]");
  CHECK(describe(program, "neg", 0) == "whole f32[4,8]");
}

TEST_CASE("a long chain of bitcasts needs no deep stack") {
  constexpr int kLength = 200000;
  std::string fused = "%fused {\n  %b0 = f32[4,8] parameter(0)\n";
  for (int i = 1; i < kLength; ++i)
    fused += "  %b" + std::to_string(i) + " = f32[4,8] bitcast(%b" + std::to_string(i - 1) + ")\n";
  fused += "  ROOT %r = f32[1,8] slice(%b" + std::to_string(kLength - 1) +
           "), slice={[0:1], [0:8]}\n}\n";
  const Program program =
      read_module("HloModule toy\n" + fused +
                  "ENTRY %main {\n  %S = f32[4,8] parameter(0)\n"
                  "  ROOT %it = f32[1,8] fusion(%S), kind=kLoop, calls=%fused\n}\n");
  CHECK(describe(program, "it", 0) == "reads f32[1,8]");
}

}  // namespace
}  // namespace spillway
