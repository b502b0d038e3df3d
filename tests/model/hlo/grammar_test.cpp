// Corner cases of HLO text that XLA's own tests hold and dumps may: what is read of them. Beside
// text_reader_test.cpp, which has the ordinary forms, and inner_text_test.cpp.
#include <doctest/doctest.h>

#include <string>

#include "model/hlo/text_reader.h"
#include "model/program/host_transfer.h"
#include "model/program/validate.h"
#include "tests/fuzz/use_program.h"
#include "tests/support/describe_program.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe_instruction;
using testing::find_instruction;
using testing::full_shape;
using testing::read_module;

TEST_CASE("shapes with everything that a layout may say") {
  struct Row {
    std::string text;
    std::string expected;  ///< shape, then a node each: bytes@memory space,minor to major
  };
  const Row rows[] = {
      {"s4[123,456]{1,0:T(2,128)E(4)}", "s4[123,456] 28044@0,1,0"},
      {"s4[123,456]{1,0:T(2,128)}", "s4[123,456] 56088@0,1,0"},
      {"u4[3]{0:E(4)S(5)}", "u4[3] 2@5,0"},
      {"bf16[2,3]{0,1:T(8,128)(2,1)L(6)#(u8)*(u16)E(16)S(5)SC(0:4,8)(1:2)P((f32[2]{0:S(1)}, "
       "u32[]))M(64)}",
       "bf16[2,3] 12@5,0,1"},
      {"f32[2,3]{1,0:T(2, * , 128)}", "f32[2,3] 24@0,1,0"},
      {"u32[]{:S(2)}", "u32[] 4@2"},
      {"f32[8]{0:S(6)}", "f32[8] 32@6,0"},
      {"f32[ 1, 2,3]{0, 1, 2 }", "f32[1,2,3] 24@0,0,1,2"},
      {"f32[2,3]", "f32[2,3] 24@0"},  // no layout: row-major
      {"f32[123,<=456]{1,0}", "f32[123,456] 224352@0,1,0"},
      {"(u32[<=123,<=456]{1,0}, token[], ())",
       "(u32[123,456], token[], ()) 24@0 224352@0,1,0 0@0 "
       "0@0"},
      {"b(f32[8,16]{1,0:S(5)})", "f32[8,16] 512@5,1,0"},
      {"f8e4m3b11fnuz[3]{0}", "f8e4m3b11fnuz[3] 3@0,0"},
      {"f6e3m2fn[4]{0}", "f6e3m2fn[4] 4@0,0"},
      {"c128[2]{0}", "c128[2] 32@0,0"},
      {"f32[2,0,4,3]{3,2,1,0}", "f32[2,0,4,3] 0@0,3,2,1,0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Program program =
        read_module("HloModule toy ENTRY e { x = " + row.text + " parameter(0) }");
    CHECK(full_shape(program[find_instruction(program, "x")].shape) == row.expected);
  }
}

TEST_CASE("a tuple of sixty, counted in comments") {
  std::string shape = "(f32[1]{0}";
  for (int i = 1; i < 60; ++i)
    shape += std::string(", ") + (i % 5 == 0 ? "/*index=" + std::to_string(i) + "*/" : "") +
             "f32[" + std::to_string(i + 1) + "]{0}";
  const Program program = read_module("HloModule toy ENTRY e { t = " + shape +
                                      ") parameter(0) ROOT x = f32[60] negate(%t#59) }");
  CHECK(describe_instruction(program, "x") == "f32[60] negate(t{59})");
  CHECK(validate(program) == std::nullopt);
}

TEST_CASE("names") {
  for (const std::string name :
       {"constant.param_0", "p.0.lhs", "copy-start.1", "a_b-c.d$e", "while", "f32", "ROOTs", "e"}) {
    CAPTURE(name);
    const Program program =
        read_module("HloModule toy ENTRY %e { %" + name +
                    " = f32[2] parameter(0) ROOT %x = f32[2] negate(f32[2] %" + name + ") }");
    CHECK(describe_instruction(program, "x") == "f32[2] negate(" + name + ")");
  }
}

TEST_CASE("headers") {
  struct Row {
    std::string text;
    bool is_scheduled = false;
    std::size_t aliases = 0;
    std::string name = "m";
  };
  const Row rows[] = {
      {"HloModule m"},
      {"HloModule comments:", false, 0, "comments:"},
      {"HloModule m, is_scheduled=false"},
      {"HloModule m, replica_count=2, is_scheduled=true", true},
      {"HloModule m, is_scheduled=true, num_partitions=4", true},
      {"HloModule m, num_partitions=4, is_scheduled=true, frontend_attributes={a=\"}\"}", true},
      {"HloModule m, input_output_alias={ {1}: (0, {0}) }", false, 1},
      {"HloModule m, input_output_alias={ {0}: (0, {1}, may-alias), {1}: (0, {0}, must-alias) }",
       false, 2},
      {"HloModule m, input_output_alias={ }"},
      {"HloModule m, buffer_donor={ (0, {0}), (0, {1}) }"},  // a permission, not an alias
      {"HloModule m, entry_computation_layout={((f32[2]{0:S(5)}, /*index=1*/f32[2]{0}))->(f32[2]"
       "{0:S(5)}, f32[2]{0})}, is_scheduled=true",
       true},
      {"HloModule m, allow_spmd_sharding_propagation_to_parameters={false,true}, "
       "allow_spmd_sharding_propagation_to_output={true}, alias_passthrough_params=true"},
      {"HloModule m, frontend_attributes={a=\"x\",b={type=\"s64\"},c=\"d=\\\"b/c\\\"\",e={}}, "
       "is_scheduled=true",
       true},
      {"HloModule m, debug_attributes={\n  a=\"one\",\n  b={c=2}\n}, is_scheduled=true", true},
      {"HloModule m /* is_scheduled=true */, // num_partitions=3\r is_scheduled=true", true},
      {"HloModule m, execution_thread=\"main\"\n\n// -----\n"},
      {"HloModule m, note=\"" + std::string(80000, 'n') + "\", is_scheduled=true", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text.substr(0, 200));
    const Program program = read_module(
        row.text +
        "\n\nENTRY e {\n  p = (f32[2], f32[2]) parameter(0)\n  ROOT t = (f32[2], f32[2]) "
        "tuple(p#1, p#0)\n}\n");
    CHECK(program.name == row.name);
    CHECK(program.is_scheduled == row.is_scheduled);
    CHECK(program.aliases.size() == row.aliases);
    CHECK(validate(program) == std::nullopt);
  }
}

TEST_CASE("attributes that are kept as they stand, and what follows them") {
  const std::string kernel(1200000, 'Q');
  const std::string rows[] = {
      "backend_config={key: \"value\"}",
      "backend_config={\"\\\"{\":1}",
      "backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"25\\\"}}\"",
      "backend_config=\"" + kernel + "==\"",
      "custom_call_target=\"foo\\\"bar\"",
      "custom_call_target='single \"quoted\"'",
      "literal=s32[2]{0} {1, 2}",
      "literal=(s32[2]{0}, f32[]) ( {1, 2}, nan )",
      "literal=f32[] -inf",
      "schedule=SCHEDULE_LATEST",
      "custom_call_has_side_effect=true",
      "operand_layout_constraints={}",
      "operand_layout_constraints={f32[2]{0}, (f32[2]{0:S(5)}, /*index=1*/s32[])}",
      "frontend_attributes={attr_a=\"x\",attr_c={type=\"s64\"},attr_d=\"a=\\\"b/c\\\"\"}",
      "frontend_attributes={}",
      "frontend_attributes={s=\"#sdy.sharding<@mesh, [{\\\"a\\\"}, {?}]>\"}",
      "metadata={op_name=\"it\\'s not a problem\\n\" deduplicated_name=\"a\" scheduling_name=\"b\" "
      "profile_type={1} stack_frame_id=3}",
      "metadata={source_line=1 op_name=\"slice[start_indices=(np.int64(20),) a=b, ]\"}",
      "metadata={op_name=\"jit(\u00e9tape)/\u5c64/\xF0\x9F\x9A\x80\" source_file=\"/\u00fc.py\"}",
      "metadata={}",
      "sharding={maximal device=1}",
      "sharding={{manual}, {replicated}}",
      "sharding={devices=[2,2]<=[4]T(1,0) last_tile_dims={manual, replicated}}",
      "sharding={devices=[2,2]<=[16]}",
      "sharding={replicated shard_as 3}",
      "sharding={mesh['<axis> def'=4,'z/w'=2], [{'a.b'}, {?}], unreduced={'d':(4)2}}",
      "replica_groups={{0,1},{2,3}}",
      "replica_groups={}",
      "replica_groups=[2,4]<=[4,2]T(1,0)",
      "replica_groups=mesh['axis_0'=2,'axis_1'=2] {'axis_1'}",
      "output_to_operand_aliasing={{0}: (1, {}), {1}: (0, {0})}",
      "origin={({\"v1\"}, {\"v2\"})}",
      "origin={[synthetic_call]}",
      "statistics={visualizing_index=1,stat-1=33,stat-2=44.5}",
      "parameter_replication={true,false}",
      "control-predecessors={%p, p}",
      "domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=1}}",
      "window={size=3x3 stride=2x1 pad=-1_2x0_0 lhs_dilate=2x1 rhs_reversal=1x0}",
      "dim_labels=b0f_0io->b0f",
      "dim_labels=b?01f_01i?o->?01bf",
      "padding=-1_2_1x0_0",
      "delta=64",
      "algorithm=rng_three_fry",
      "dimensions={}",
      "slice={[1:2:1], [0:8]}",
      "result_accuracy={tolerance={atol=0.5,rtol=1e-3,ulps=2}}",
      "a_newer_attribute={[(\"x\"){}]}",
      "a_newer_flag=yes",
  };
  for (const std::string& row : rows) {
    CAPTURE(row.substr(0, 200));
    const Program program = read_module(
        "HloModule toy\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT x = f32[2] frobnicate(p), " +
        row + " /* so */, last={1}\n}\n");
    CHECK(describe_instruction(program, "x") == "f32[2] unknown(p), " + row + ", last={1}");
    // The same in one line, without %, with an instruction behind it.
    const Program line = read_module(
        "HloModule toy ENTRY e { p = f32[2] parameter(0) x = f32[2] "
        "frobnicate(p), " +
        row + " y = f32[2] negate(x) }");
    CHECK(describe_instruction(line, "x") == "f32[2] unknown(p), " + row);
    CHECK(describe_instruction(line, "y") == "f32[2] negate(x)");
  }
}

TEST_CASE("values of constants, and what follows them") {
  struct Row {
    std::string shape, value;
  };
  const Row rows[] = {
      {"f32[2,0]", "{ { /*i0=0*/ }, { /*i0=1*/ } }"},
      {"f32[2]", "{ /* a ) in a\n   comment */ 1, 2 }"},
      {"f32[2]", "{ 1, // one )\n 2 }"},
      {"f32[2]", "{...}"},
      {"f32[3]", "{ -nan, -nan(0x7f), inf }"},
      {"c64[2]", "{ (1, 2), (-inf, nan) }"},
      {"pred[4]", "{true, false, 0, 1}"},
      {"s64[]", "-9223372036854775808"},
      {"f64[]", "4.9e-324"},
      {"(f32[2], (s32[], pred[0]))", "( {1, 2}, ( 3, {} ) )"},
      {"token[]", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    const Program program = read_module("HloModule toy ENTRY e { ROOT x = " + row.shape +
                                        " constant(" + row.value + "), last={1} }");
    CHECK(describe_instruction(program, "x") ==
          row.shape + " constant(" + row.value + "), last={1}");
  }
}

// One loop whose body ends with the done of what an iteration before started.
constexpr const char* kPipelined = R"(HloModule toy, is_scheduled=true
%slice {
  a = f32[4,2]{1,0:S(5)} parameter(0)
  b = s32[] parameter(1)
  ROOT d = f32[1,2]{1,0} dynamic-slice(a, b, b), dynamic_slice_sizes={1,2}
}
%wrapped {
  a = f32[4,2]{1,0:S(5)} parameter(0)
  b = s32[] parameter(1)
  ROOT f = f32[1,2]{1,0} fusion(a, b), kind=kLoop, calls=%slice
}
%body {
  t = (s32[], f32[4,2]{1,0:S(5)}, ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[])) parameter(0)
  done = f32[1,2]{1,0} async-done(t#2)
  next = ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[]) async-start(t#1, t#0), calls=%wrapped
  ROOT r = (s32[], f32[4,2]{1,0:S(5)}, ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[])) tuple(t#0, t#1, next)
}
%condition {
  t = (s32[], f32[4,2]{1,0:S(5)}, ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[])) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  i = s32[] parameter(0)
  h = f32[4,2]{1,0:S(5)} parameter(1)
  first = ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[]) async-start(h, i), calls=%wrapped
  t = (s32[], f32[4,2]{1,0:S(5)}, ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[])) tuple(i, h, first)
  w = (s32[], f32[4,2]{1,0:S(5)}, ((f32[4,2]{1,0:S(5)}, s32[]), f32[1,2]{1,0}, u32[])) while(t), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  ROOT last = f32[1,2]{1,0} async-done(w#2)
}
)";

TEST_CASE("a copy that starts in one iteration and ends in the next") {
  const Program program = read_module(kPipelined);
  CHECK(validate(program) == std::nullopt);
  CHECK(describe_instruction(program, "done") == "f32[1,2] async-done(t{2})");
  const InstructionId next = find_instruction(program, "next");
  const auto transfer = host_transfer(program, next);
  REQUIRE(transfer.has_value());
  CHECK(transfer->direction == TransferDirection::kHostToDevice);
  CHECK(transfer->bytes == Bytes(8));
  CHECK(testing::use_program(std::make_shared<const std::string>(kPipelined)));
}

TEST_CASE("old and new forms of async pairs") {
  struct Row {
    std::string name;
    std::string text;  ///< behind p = f32[2] and %n, which negates
    std::string expected;
  };
  const Row rows[] = {
      {"what it calls in a list",
       "x = ((f32[2]), f32[2], u32[]) async-start(p), called_computations={%n}",
       "((f32[2]), f32[2], u32[]) async-start(p), called_computations={%n} -> n"},
      {"the older fields of a group",
       "x = ((f32[2]), f32[2], u32[]) async-start(p), async_group_id=3, "
       "async_execution_thread=\"main\", calls=%n",
       "((f32[2]), f32[2], u32[]) async-start(p), async_group_id=3, "
       "async_execution_thread=\"main\", calls=%n -> n"},
      {"more context behind the result",
       "x = ((f32[2]), f32[2], u32[], s32[], s32[]) async-start(p), calls=%n",
       "((f32[2]), f32[2], u32[], s32[], s32[]) async-start(p), calls=%n -> n"},
      {"late bound: nothing is known when it starts",
       "s = ((), (), s32[]) custom-call-start(), custom_call_target=\"x\"\n"
       "  x = () custom-call-done(s)",
       "() async-done(s)"},
      {"a custom call",
       "s = ((f32[2]), f32[2], s32[]) custom-call-start(p), custom_call_target=\"x\"\n"
       "  u = ((f32[2]), f32[2], s32[]) custom-call-update(s)\n  x = f32[2] custom-call-done(u)",
       "f32[2] async-done(u)"},
      {"a copy to the host: destination, source, context",
       "x = (f32[2]{0:S(5)}, f32[2]{0}, u32[]) copy-start(p), cross_program_prefetch_index=0",
       "(f32[2], f32[2], u32[]) copy-start(p), cross_program_prefetch_index=0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string text =
        "HloModule toy, is_scheduled=true\n%n {\n  q = f32[2] parameter(0)\n  ROOT m = f32[2] "
        "negate(q)\n}\nENTRY e {\n  p = f32[2] parameter(0)\n  " +
        row.text + "\n}\n";
    const Program program = read_module(text);
    CHECK(describe_instruction(program, "x") == row.expected);
    CHECK(validate(program) == std::nullopt);
    CHECK(testing::use_program(std::make_shared<const std::string>(text)));
  }
}

}  // namespace
}  // namespace spillway
