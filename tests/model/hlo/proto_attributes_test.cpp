#include "model/hlo/proto_attributes.h"

#include <doctest/doctest.h>

#include <limits>

#include "model/cost/replica_groups.h"
#include "model/hlo/proto_values.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_proto.h"

namespace spillway {
namespace {

using In = pb::HloInstruction;

struct Row {
  const char* opcode;
  void (*fill)(In&);
  const char* text;
};

template <typename Numbers>
void set(Numbers& field, std::initializer_list<std::int64_t> numbers) {
  field.Assign(numbers.begin(), numbers.end());
}

void set_window(In& in, bool plain) {
  for (int i = 0; i < 2; ++i) {
    pb::WindowDimension& d = *in.mutable_window()->add_dimensions();
    d.set_size(3);
    d.set_stride(plain ? 1 : 2);
    d.set_padding_low(plain ? 0 : i);
    d.set_base_dilation(1);
    d.set_window_dilation(plain ? 1 : 4);
    d.set_window_reversal(!plain && i == 1);
  }
}

const Row kRows[] = {
    {"broadcast", [](In&) {}, ", dimensions={}"},
    {"reduce",
     [](In& in) {
       set(*in.mutable_dimensions(), {0, 2});
     },
     ", dimensions={0,2}"},
    {"add", [](In&) {}, ""},
    {"iota", [](In& in) { set(*in.mutable_dimensions(), {1}); }, ", iota_dimension=1"},
    {"slice",
     [](In& in) {
       in.add_slice_dimensions()->set_limit(2);
       in.mutable_slice_dimensions(0)->set_stride(1);
     },
     ", slice={[0:2]}"},
    {"slice",
     [](In& in) {
       for (const int stride : {1, 2}) {
         in.add_slice_dimensions()->set_limit(8);
         in.mutable_slice_dimensions(stride - 1)->set_stride(stride);
       }
     },
     ", slice={[0:8:1], [0:8:2]}"},
    {"dynamic-slice",
     [](In& in) {
       set(*in.mutable_dynamic_slice_sizes(), {1, 128});
     },
     ", dynamic_slice_sizes={1,128}"},
    {"pad",
     [](In& in) {
       in.mutable_padding()->add_dimensions()->set_low(-1);
       in.mutable_padding()->add_dimensions()->set_high(2);
     },
     ", padding=-1_0x0_2"},
    {"pad", [](In& in) { in.mutable_padding()->add_dimensions()->set_interior(1); },
     ", padding=0_0_1"},
    {"reduce-window", [](In& in) { set_window(in, true); }, ", window={size=3x3}"},
    {"convolution",
     [](In& in) {
       set_window(in, false);
       pb::ConvolutionDimensions& c = *in.mutable_convolution_dimensions();
       c.set_input_feature(3);
       set(*c.mutable_input_spatial(), {1, 2});
       c.set_kernel_input_feature(2);
       c.set_kernel_output_feature(3);
       set(*c.mutable_kernel_spatial(), {0, 1});
       c.set_output_feature(3);
       set(*c.mutable_output_spatial(), {1, 2});
       in.set_feature_group_count(4);
       in.set_batch_group_count(1);
     },
     ", window={size=3x3 stride=2x2 pad=0_0x1_0 rhs_dilate=4x4 rhs_reversal=0x1}"
     ", dim_labels=b01f_01io->b01f, feature_group_count=4"},
    {"convolution",  // labels that lead nowhere
     [](In& in) { set(*in.mutable_convolution_dimensions()->mutable_input_spatial(), {9}); }, ""},
    {"dot",
     [](In& in) {
       set(*in.mutable_dot_dimensions()->mutable_lhs_contracting(), {1});
       set(*in.mutable_dot_dimensions()->mutable_rhs_contracting(), {0});
       in.mutable_precision()->add_operands(0);
       in.mutable_precision()->add_operands(0);
     },
     ", lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"dot",
     [](In& in) {
       set(*in.mutable_dot_dimensions()->mutable_lhs_batch(), {0});
       set(*in.mutable_dot_dimensions()->mutable_rhs_batch(), {0});
       in.mutable_precision()->add_operands(2);
       in.mutable_precision()->add_operands(77);
       in.mutable_precision()->set_algorithm(7);
     },
     ", lhs_batch_dims={0}, lhs_contracting_dims={}, rhs_batch_dims={0}, rhs_contracting_dims={}"
     ", operand_precision={highest,unknown}, algorithm=dot_bf16_bf16_f32_x3"},
    {"compare",
     [](In& in) {
       in.set_comparison_direction("LT");
       in.set_comparison_type("TOTALORDER");
     },
     ", direction=LT, type=TOTALORDER"},
    {"fusion", [](In& in) { in.set_fusion_kind("kLoop"); }, ", kind=kLoop"},
    {"fusion", [](In& in) { in.set_fusion_kind("k, calls=%x"); }, ""},
    {"reduce-precision", [](In& in) { in.set_exponent_bits(8); },
     ", exponent_bits=8, mantissa_bits=0"},
    {"fft", [](In& in) { in.add_fft_length(64), in.set_fft_type(2); },
     ", fft_type=RFFT, fft_length={64}"},
    {"get-tuple-element", [](In&) {}, ", index=0"},
    {"all-reduce", [](In& in) { in.set_channel_id(3), in.set_use_global_device_ids(true); },
     ", channel_id=3, replica_groups={}, use_global_device_ids=true"},
    {"collective-permute",
     [](In& in) {
       in.add_source_target_pairs()->set_target(1);
       in.add_source_target_pairs()->set_source(1);
     },
     ", source_target_pairs={{0,1},{1,0}}"},
    {"custom-call",
     [](In& in) {
       in.set_custom_call_target("a\"b");
       in.set_constrain_layout(true);
       *in.add_operand_shapes() = testing::array(testing::kF32, {2, 4}, 5);
       in.set_custom_call_has_side_effect(true);
       in.set_custom_call_schedule(1);
       in.set_custom_call_api_version(4);
       pb::OperandAliasing& alias = *in.add_output_operand_aliasing();
       alias.add_output_path(0);
       alias.set_operand(1);
     },
     ", custom_call_target=\"a\\\"b\", operand_layout_constraints={f32[2,4]{1,0:S(5)}}"
     ", custom_call_has_side_effect=true, schedule=SCHEDULE_LATEST, "
     "api_version=API_VERSION_TYPED_FFI"
     ", output_to_operand_aliasing={{0}: (1, {})}"},
    {"add",
     [](In& in) {
       const std::pair<const char*, const char*> attributes[] = {
           {"b", "x"}, {"a", "{\"n\":1}"}, {"c d", "}"}};
       for (const auto& [key, value] : attributes) {
         pb::FrontendAttribute& made = *in.mutable_frontend_attributes()->add_map();
         made.set_key(key);
         made.set_value(value);
       }
     },
     ", frontend_attributes={a={\"n\":1},b=\"x\",c_d=\"}\"}"},
    {"add",
     [](In& in) {
       pb::Metadata& m = *in.mutable_metadata();
       m.set_op_name("jit(f)/a['\xc3\xa9']\n");
       m.set_source_file("f.py");
       m.set_source_line(7);
       m.set_scheduling_name("add.1");
     },
     ", metadata={op_name=\"jit(f)/a[\\'\\303\\251\\']\\n\" source_file=\"f.py\" source_line=7 "
     "scheduling_name=\"add.1\"}"},
};

TEST_CASE("attributes are written as XLA writes them") {
  for (const Row& row : kRows) {
    In in;
    in.set_opcode(row.opcode);
    row.fill(in);
    std::string text;
    hlo::append_attributes(text, in);
    CHECK(text == row.text);
  }
}

void set_iota(pb::IotaGroups& iota) {
  iota.set_groups(2);
  iota.set_devices_per_group(2);
  set(*iota.mutable_reshape(), {2, 2});
  set(*iota.mutable_permutation(), {1, 0});
}

TEST_CASE("groups of devices in every form of XLA") {
  struct GroupRow {
    void (*fill)(In&);
    const char* text;
    std::vector<IdGroup> groups;
  };
  const GroupRow rows[] = {
      {[](In& in) {
         for (const int first : {0, 2}) {
           pb::ReplicaGroup& group = *in.add_replica_groups();
           set(*group.mutable_ids(), {first, first + 1});
         }
       },
       "{{0,1},{2,3}}",
       {{0, 1}, {2, 3}}},
      {[](In& in) {
         in.add_replica_groups()->add_ids(9);  // the older copy
         set(*in.mutable_device_list()->add_groups()->mutable_ids(), {0, 2});
       },
       "{{0,2}}",
       {{0, 2}}},
      {[](In& in) { set_iota(*in.mutable_device_list()->mutable_iota()); },
       "[2,2]<=[2,2]T(1,0)",
       {{0, 2}, {1, 3}}},
      {[](In& in) {
         set_iota(*in.mutable_iota_groups());
         set(*in.mutable_iota_groups()->mutable_permutation(), {0, 1});
       },
       "[2,2]<=[2,2]",
       {{0, 1}, {2, 3}}},
      {[](In& in) {
         pb::Mesh& mesh = *in.mutable_mesh_groups()->mutable_mesh();
         for (const char* name : {"x", "y"}) {
           mesh.add_axes()->set_name(name);
           mesh.mutable_axes(mesh.axes_size() - 1)->set_size(2);
         }
         in.mutable_mesh_groups()->add_axes()->set_axis(1);
       },
       "mesh['x'=2,'y'=2] {'y'}",
       {{0, 1}, {2, 3}}},
      {[](In& in) {
         pb::Mesh& mesh = *in.mutable_mesh_groups()->mutable_mesh();
         mesh.add_axes()->set_name("x");
         mesh.mutable_axes(0)->set_size(4);
         set(*mesh.mutable_device_ids(), {3, 1, 0, 2});
         pb::AxisReference& axis = *in.mutable_mesh_groups()->add_axes();
         axis.mutable_part()->set_pre_size(2);
         axis.mutable_part()->set_size(2);
       },
       "mesh['x'=4], device_ids=(3,1,0,2) {'x':(2)2}",
       {{3, 1}, {0, 2}}},
  };
  for (const GroupRow& row : rows) {
    CAPTURE(std::string(row.text));
    In in;
    in.set_opcode("all-reduce");
    row.fill(in);
    std::string text;
    hlo::append_attributes(text, in);
    CHECK(text == std::string(", replica_groups=") + row.text);
    // And the reader of text takes it for one attribute.
    const Program program = testing::read_entry(
        "  %p = f32[4] parameter(0)\n  ROOT %r = f32[4] "
        "negate(%p)" +
        text + "\n");
    const auto value =
        program.entry_computation().attribute(InstructionIndex(1), "replica_groups").value_or("");
    CHECK(parse_replica_groups(value) == row.groups);
  }
}

TEST_CASE("shapes") {
  const auto text_of = [](const pb::Shape& shape) {
    std::string text;
    hlo::append_shape(text, shape);
    return text;
  };
  pb::Shape shape = testing::array(21, {8, 4}, 5);
  CHECK(text_of(shape) == "s4[8,4]{1,0:S(5)}");
  shape.mutable_layout()->set_element_size_in_bits(4);
  shape.mutable_layout()->add_tiles()->add_dimensions(2);
  shape.mutable_layout()->mutable_tiles(0)->add_dimensions(128);
  shape.mutable_layout()->add_tiles()->add_dimensions(2);
  CHECK(text_of(shape) == "s4[8,4]{1,0:T(2,128)(2)E(4)S(5)}");
  const Program program = testing::read_entry("  ROOT %p = " + text_of(shape) + " parameter(0)\n");
  CHECK(program.entry_computation().root_instruction().shape.bytes() == Bytes(16));
  CHECK(text_of(testing::array(testing::kF32, {})) == "f32[]");
  CHECK(text_of(testing::array(testing::kF32, {}, 5)) == "f32[]{:S(5)}");
  CHECK(text_of(testing::tuple({})) == "()");
  CHECK(text_of(
            testing::tuple({testing::array(17, {}), testing::tuple({testing::array(16, {2})})})) ==
        "(token[], (bf16[2]{0}))");
  shape = testing::array(testing::kS32, {12});
  shape.add_is_dynamic_dimension(true);
  CHECK(text_of(shape) == "s32[<=12]{0}");
  shape.set_dimensions(0, std::numeric_limits<std::int64_t>::min());
  CHECK(text_of(shape) == "s32[?]{0}");
  pb::Shape buffer;
  buffer.set_element_type(34);
  *buffer.add_tuple_shapes() = testing::array(testing::kF32, {2});
  CHECK(text_of(buffer) == "b(f32[2]{0})");
}

TEST_CASE("literals") {
  const auto text_of = [](const pb::Literal& literal, const pb::Shape& shape) {
    std::string text;
    hlo::append_literal(text, literal, shape);
    return text;
  };
  using testing::array;
  pb::Literal literal;
  literal.add_f32s(1e-5f);
  literal.add_preds(true);
  literal.set_bf16s("\xcd\x3d");  // 0.1 in bf16
  literal.set_f16s(std::string("\x00\xc0", 2));
  literal.set_s8s("\xff");
  literal.set_u8s("\xff");
  literal.set_s16s("\xfe\xff");
  for (const int number : {-1, 1}) literal.add_s32s(number);
  for (const float part : {0.0f, 1.0f}) literal.add_c64s(part);
  CHECK(text_of(literal, array(testing::kF32, {})) == "1e-05");
  CHECK(text_of(literal, array(testing::kPred, {})) == "true");
  CHECK(text_of(literal, array(16, {})) == "0.1001");
  CHECK(text_of(literal, array(10, {})) == "-2");
  CHECK(text_of(literal, array(2, {})) == "-1");
  CHECK(text_of(literal, array(6, {})) == "255");
  CHECK(text_of(literal, array(3, {})) == "-2");
  CHECK(text_of(literal, array(testing::kS32, {2})) == "{-1, 1}");
  CHECK(text_of(literal, array(testing::kS32, {2, 1})) == "{ {-1}, {1} }");
  CHECK(text_of(literal, array(testing::kS32, {0, 2})) == "{...}");
  CHECK(text_of(literal, array(testing::kS32, {-1, -2})) == "{...}");
  CHECK(text_of(literal, array(15, {})) == "(0, 1)");
  CHECK(text_of(literal, array(testing::kS32, {})) == "{...}");  // two values for one
  CHECK(text_of(literal, array(20, {})) == "{...}");
  for (int i = 0; i < 9; ++i) literal.add_s32s(i);
  CHECK(text_of(literal, array(testing::kS32, {11})) == "{...}");
}

}  // namespace
}  // namespace spillway
