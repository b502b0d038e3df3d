#include "tests/fuzz/odd_program.h"

#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace spillway::testing {
namespace {

/// What instructions call.
constexpr std::string_view kCalled = R"(HloModule odd, is_scheduled=true, num_partitions=2

%add {
  %a0 = f32[] parameter(0)
  %a1 = f32[] parameter(1)
  ROOT %a2 = f32[] add(%a0, %a1)
}
%less {
  %l0 = f32[] parameter(0)
  %l1 = f32[] parameter(1)
  ROOT %l2 = pred[] compare(%l0, %l1), direction=LT
}
%same {
  ROOT %s0 = f32[8] parameter(0)
}
%go_on {
  %g0 = f32[8] parameter(0)
  ROOT %g1 = pred[] constant(false)
}
%two {
  %t0 = f32[8] parameter(0)
  %t1 = f32[8] parameter(1)
  %t2 = f32[8] negate(%t0)
  ROOT %t3 = (f32[8], f32[8]) tuple(%t2, %t1)
}
%slice {
  %c0 = f32[8] parameter(0)
  %c1 = s32[] parameter(1)
  ROOT %c2 = f32[2] dynamic-slice(%c0, %c1), dynamic_slice_sizes={2}
}
ENTRY %main {
  %p0 = f32[] parameter(0)
  %p1 = s32[] parameter(1)
  %p2 = f32[8] parameter(2)
  %p3 = f32[4,4] parameter(3)
  %p4 = f32[2,4,8] parameter(4)
  %p5 = f32[8]{0:S(5)} parameter(5)
  %p6 = (f32[8]) parameter(6)
  %p7 = (f32[8], f32[8]) parameter(7)
  %p8 = ((f32[8]), f32[8], u32[]) parameter(8)
  %p9 = token[] parameter(9)
  %p10 = () parameter(10)
  %p11 = f32[0,4] parameter(11)
)";

constexpr std::string_view kShapes[] = {"f32[]",
                                        "s32[]",
                                        "pred[]",
                                        "f32[8]",
                                        "f32[16]",
                                        "f32[2]",
                                        "f32[4,4]",
                                        "f32[2,4]",
                                        "f32[2,4,8]",
                                        "f32[8]{0:S(5)}",
                                        "f32[0,4]",
                                        "(f32[8])",
                                        "(f32[8], f32[8])",
                                        "((f32[8]), f32[8], u32[])",
                                        "((f32[8], f32[8]), (f32[8], f32[8]))",
                                        "(f32[4,4], u8[16])",
                                        "(f32[8], token[])",
                                        "token[]",
                                        "()"};

constexpr std::string_view kAttributes[] = {
    "",
    "dimensions={}",
    "dimensions={0}",
    "dimensions={1}",
    "dimensions={7}",
    "to_apply=%add",
    "to_apply=%same",
    "calls=%same",
    "kind=kLoop, calls=%same",
    "kind=kInput, calls=%two",
    "kind=kLoop, calls=%slice",
    "kind=kCustom, calls=%add",
    "condition=%go_on, body=%same",
    "branch_computations={%same, %same}",
    "select=%less, scatter=%add",
    "window={size=3 pad=1_1}",
    "window={size=2x2 stride=1x1}",
    "window={size=2x2 stride=0x1 lhs_dilate=0x0}",
    "dim_labels=bf_io->bf",
    "dim_labels=b0f_0io->b0f, window={size=4 lhs_dilate=0}, feature_group_count=0",
    "custom_call_target=\"__cublas$gemm\", backend_config={\"dot_dimension_numbers\":{"
    "\"lhs_contracting_dimensions\":[\"5\"]}}",
    "custom_call_target=\"__cudnn$convForward\", dim_labels=b0f_0io->b0f, window={size=4}",
    "custom_call_target=\"AllocateBuffer\"",
    "output_to_operand_aliasing={{}: (0, {})}",
    "output_to_operand_aliasing={{7}: (1, {3})}",
    "lhs_contracting_dims={9}, rhs_contracting_dims={0}",
    "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "replica_groups={{0,1}}",
    "replica_groups={{0},{0}}",
    "replica_groups=[1,2]<=[2], channel_id=1",
    "source_target_pairs={{0,1}}",
    "slice={[0:2]}",
    "dynamic_slice_sizes={2}",
    "fft_length={0}",
    "iota_dimension=3"};

}  // namespace

std::string odd_program(std::string_view opcode, std::uint32_t seed) {
  constexpr std::size_t kParameters = 12;
  std::mt19937 random(seed);
  const auto pick = [&random](const auto& list) { return list[random() % std::size(list)]; };
  // Operands of one shape are what most rules let through.
  const bool alike = random() % 2 == 0;
  const auto first = random() % kParameters;
  std::string operands;
  for (std::size_t k = random() % 4; k > 0; --k)
    operands += "%p" + std::to_string(alike ? first : random() % kParameters) + (k > 1 ? ", " : "");
  if (opcode == "parameter") operands = "12";
  if (opcode == "constant") operands = "0";
  std::string text(kCalled);
  text +=
      "  %odd = " + std::string(pick(kShapes)) + " " + std::string(opcode) + "(" + operands + ")";
  for (int k = 0; k < 2; ++k)
    if (const std::string_view attribute = pick(kAttributes); !attribute.empty())
      text += ", " + std::string(attribute);
  // What reads it reads as much as there is.
  return text + "\n  ROOT %end = (f32[8]) tuple(%p2)\n}\n";
}

}  // namespace spillway::testing
