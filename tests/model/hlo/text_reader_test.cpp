#include "model/hlo/text_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/program/validate.h"
#include "tests/support/describe_program.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::describe_instruction;
using testing::find_instruction;
using testing::read_entry;
using testing::read_module;

TEST_CASE("a module as XLA dumps it") {
  const Program program = read_module(
      "HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: "
      "(1, {0}, must-alias) }, entry_computation_layout={(f32[2]{0}, (f32[3]{0}))->(f32[2]{0}, "
      "/*index=1*/f32[3]{0})}, allow_spmd_sharding_propagation_to_parameters={true,false}, "
      "num_partitions=8, replica_count=2, frontend_attributes={fingerprint_before_lhs=\"a{b\"}\n"
      "\n"
      "ENTRY %main.1_spmd (p: f32[2], q: (f32[3])) -> (f32[2], f32[3]) {\n"
      "  %p = f32[2]{0} parameter(0), sharding={replicated}\n"
      "  %q = (f32[3]{0}) parameter(1)\n"
      "  ROOT %t = (f32[2]{0}, f32[3]{0}) tuple(%p, %q#0)\n"
      "}\n");
  CHECK(program.name == "jit_step");
  CHECK(program.path == "toy.hlo");
  CHECK(program.is_scheduled);
  CHECK(program.num_partitions == 8);
  CHECK(program.replica_count == 2);
  CHECK(program.computations.size() == 1);
  CHECK(program.entry_computation().name() == "main.1_spmd");
  CHECK_FALSE(program.has_explicit_elements);
  CHECK(program.stack_frames == nullptr);
  REQUIRE(program.aliases.size() == 2);
  CHECK(program.aliases[0].output == 1);
  CHECK(program.aliases[0].parameter == 0);
  CHECK(program.aliases[0].parameter_node == 0);
  CHECK(program.aliases[1].output == 2);
  CHECK(program.aliases[1].parameter == 1);
  CHECK(program.aliases[1].parameter_node == 1);
  CHECK(describe_instruction(program, "t") == "(f32[2], f32[3]) tuple(p, q{0})");
}

TEST_CASE("aliases of nested results") {
  const Program program = read_module(
      "HloModule toy, input_output_alias={{1,0}: (0, {1,1}), {}: (1)}\n"
      "ENTRY main {\n"
      "  p = (f32[1], (f32[2], f32[3])) parameter(0)\n  q = f32[] parameter(1)\n"
      "  u = (f32[3]) tuple(p#1#1)\n  ROOT t = (f32[1], (f32[3])) tuple(p#0, u)\n}\n");
  REQUIRE(program.aliases.size() == 2);
  CHECK(program.aliases[0].output == 3);
  CHECK(program.aliases[0].parameter_node == 4);
  CHECK(program.aliases[1].output == 0);
  CHECK(program.aliases[1].parameter == 1);
}

TEST_CASE("donors, which need not have a result") {
  const Program program = read_module(
      "HloModule toy, buffer_donor={ (0, {}), (1, {1}) }\nENTRY main {\n"
      "  p = f32[1] parameter(0)\n  q = (f32[2], f32[3]) parameter(1)\n"
      "  ROOT t = f32[1] negate(p)\n}\n");
  REQUIRE(program.donors.size() == 2);
  CHECK(program.donors[0].parameter == 0);
  CHECK(program.donors[0].parameter_node == 0);
  CHECK(program.donors[1].parameter == 1);
  CHECK(program.donors[1].parameter_node == 2);
  CHECK(read_module("HloModule toy, buffer_donor={}\nENTRY m {\n  ROOT p = f32[1] "
                    "parameter(0)\n}\n")
            .donors.empty());
}

TEST_CASE("every form of an instruction") {
  // Written behind: p = f32[2], t = (f32[2], (s32[], bf16[4])), i = s32[].
  struct Row {
    std::string name;
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"plain", "%x = f32[2]{0} add(%p, %p)", "f32[2] add(p, p)"},
      {"without %", "x = f32[2]{0} add(p, p)", "f32[2] add(p, p)"},
      {"root without %", "ROOT x = f32[2]{0} add(p, p)", "f32[2] add(p, p)"},
      {"compact elements", "%x = bf16[4]{0} negate(%t#1#1)", "bf16[4] negate(t{1,1})"},
      {"compact element of an element", "%x = (s32[], bf16[4]) custom-call(%t#1)",
       "(s32[], bf16[4]) custom-call(t{1})"},
      {"explicit elements",
       "%g = (s32[], bf16[4]{0}) get-tuple-element(%t), index=1\n"
       "  %h = bf16[4]{0} get-tuple-element((s32[], bf16[4]{0}) %g), index=1, metadata={}\n"
       "  %x = bf16[4]{0} negate(%h)",
       "bf16[4] negate(t{1,1})"},
      {"shapes in front of operands",
       "%x = f32[2]{0} custom-call(f32[2]{0} %p, (f32[2]{0}, (s32[], bf16[4]{0})) %t, s32[] i)",
       "f32[2] custom-call(p, t, i)"},
      {"comments between operands", "%x = f32[2]{0} custom-call(%p, /*index=1*/%i)",
       "f32[2] custom-call(p, i)"},
      {"comments everywhere",
       "/*a*/%x/*b*/=/*c*/f32[2]/*d*/add(/*e*/%p/*f*/,%p)/*g*/,/*h*/kind=kLoop /*i*/ // j",
       "f32[2] add(p, p), kind=kLoop"},
      {"over several lines", "%x =\n f32[2]\n add(%p,\n\t%p),\r\n kind=kLoop",
       "f32[2] add(p, p), kind=kLoop"},
      {"no operands", "%x = u32[] partition-id()", "u32[] partition-id()"},
      {"a constant", "%x = f32[2,2] constant({ { 1, -nan(0x7f) }, { inf, 2e-3 } })",
       "f32[2,2] constant({ { 1, -nan(0x7f) }, { inf, 2e-3 } })"},
      {"an elided constant", "%x = f32[2,2] constant({...})", "f32[2,2] constant({...})"},
      {"a tuple constant", "%x = (f32[2], c64[]) constant(( {1, /*i=1*/2}, (1, -inf) ))",
       "(f32[2], c64[]) constant(( {1, /*i=1*/2}, (1, -inf) ))"},
      {"a constant over several lines", "%x = s32[2] constant({\n  1,\n  2\n})",
       "s32[2] constant({\n  1,\n  2\n})"},
      {"a parameter with blanks", "%x = f32[] parameter( 3 )", "f32[] parameter(3)"},
      {"attributes of every kind",
       "%x = f32[2] custom-call(%p), window={size=1x3 pad=-1_2x0_0}, "
       "dim_labels=b01f_01io->b01f, replica_groups=[8,16]<=[16,8]T(1,0), "
       "sharding={devices=[2,2]<=[4]T(1,0) last_tile_dims={manual, replicated}}, "
       "origin={({\"v1\"}, {\"v2\"})}, api_version=API_VERSION_TYPED_FFI",
       "f32[2] custom-call(p), window={size=1x3 pad=-1_2x0_0}, dim_labels=b01f_01io->b01f, "
       "replica_groups=[8,16]<=[16,8]T(1,0), "
       "sharding={devices=[2,2]<=[4]T(1,0) last_tile_dims={manual, replicated}}, "
       "origin={({\"v1\"}, {\"v2\"})}, api_version=API_VERSION_TYPED_FFI"},
      {"mesh groups",
       "%x = f32[2] all-reduce(%p), replica_groups=mesh['a'=8,'b/c'=1] {'a'}, to_apply=%f",
       "f32[2] all-reduce(p), replica_groups=mesh['a'=8,'b/c'=1] {'a'}, to_apply=%f -> f"},
      {"brackets and quotes in strings",
       "%x = f32[2] negate(%p), metadata={op_name=\"f[a=(1,)]\\\"}{\" source_line=3}, kind=kLoop",
       "f32[2] negate(p), metadata={op_name=\"f[a=(1,)]\\\"}{\" source_line=3}, kind=kLoop"},
      {"JSON with braces in strings",
       "%x = f32[2] negate(%p), backend_config={\"a\":\"{\\\"\",\"b\":{\"c\":[\"}\"]}}, kind=kLoop",
       "f32[2] negate(p), backend_config={\"a\":\"{\\\"\",\"b\":{\"c\":[\"}\"]}}, kind=kLoop"},
      {"JSON that is none", "%x = f32[2] negate(%p), backend_config={it's: \"//\"}, kind=kLoop",
       "f32[2] negate(p), backend_config={it's: \"//\"}, kind=kLoop"},
      {"a quoted configuration",
       "%x = f32[2] negate(%p), "
       "backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"2\\\"}}\"",
       "f32[2] negate(p), backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"2\\\"}}\""},
      {"an unknown attribute is kept", "%x = f32[2] negate(%p), not_yet_known={a=[1]}",
       "f32[2] negate(p), not_yet_known={a=[1]}"},
      {"a Triton fusion",
       "%x = f32[2] fusion(%p), kind=kCustom, calls=%f1, backend_config={\"fusion_backend_config\":"
       "{\"kind\":\"__triton_nested_gemm_fusion\"}}",
       "f32[2] fusion(p), kind=kCustom, calls=%f1, backend_config={\"fusion_backend_config\":"
       "{\"kind\":\"__triton_nested_gemm_fusion\"}} -> f1"},
      {"a cuBLAS call",
       "%x = (f32[2]{0}, s8[33554432]{0}) custom-call(%p, %p), "
       "custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":{}}",
       "(f32[2], s8[33554432]) custom-call(p, p), custom_call_target=\"__cublas$lt$matmul\", "
       "backend_config={\"gemm_backend_config\":{}}"},
      {"a cuDNN call",
       "%x = (bf16[2]{0}, u8[0]{0}) custom-call(%p, %p, %p), "
       "custom_call_target=\"__cudnn$fmhaSoftmax\", operand_layout_constraints={f32[2]{0}}, "
       "api_version=API_VERSION_STATUS_RETURNING",
       "(bf16[2], u8[0]) custom-call(p, p, p), custom_call_target=\"__cudnn$fmhaSoftmax\", "
       "operand_layout_constraints={f32[2]{0}}, api_version=API_VERSION_STATUS_RETURNING"},
      {"called computations",
       "%x = f32[2] custom-call(%p), custom_call_target=\"a\\\"b\", called_computations={%f, %f1}",
       "f32[2] custom-call(p), custom_call_target=\"a\\\"b\", called_computations={%f, %f1} -> f "
       "-> f1"},
      {"branches by number", "%x = f32[2] conditional(%i, %p, %p), branch_computations={f1, %f1}",
       "f32[2] conditional(i, p, p), branch_computations={f1, %f1} -> f1 -> f1"},
      {"branches by truth come true first",
       "%x = f32[2] conditional(%i, %p, %p), false_computation=%f, true_computation=%f1",
       "f32[2] conditional(i, p, p), false_computation=%f, true_computation=%f1 -> f1 -> f"},
      {"a loop's condition comes first",
       "%x = f32[2] while(%p), metadata={}, body=%f1, condition=%f",
       "f32[2] while(p), metadata={}, body=%f1, condition=%f -> f -> f1"},
      {"select and scatter come in this order",
       "%x = f32[2] select-and-scatter(%p, %p, %i), select=%f, scatter=%f1",
       "f32[2] select-and-scatter(p, p, i), select=%f, scatter=%f1 -> f -> f1"},
      {"copies between memory spaces",
       "%x = (f32[2]{0:S(5)}, f32[2]{0}, u32[]) copy-start(%p), cross_program_prefetch_index=0",
       "(f32[2], f32[2], u32[]) copy-start(p), cross_program_prefetch_index=0"},
      {"an async start names what it calls",
       "%x = ((f32[2]), f32[2], u32[]) async-start(%p), calls=%f1",
       "((f32[2]), f32[2], u32[]) async-start(p), calls=%f1 -> f1"},
      {"an async done calls nothing, whatever it names",
       "%s = ((f32[2]), f32[2], u32[]) async-start(%p), calls=%f1\n"
       "  %u = ((f32[2]), f32[2], u32[]) async-update(%s), calls=%f1\n"
       "  %x = f32[2] async-done(%u), calls=%f1",
       "f32[2] async-done(u), calls=%f1"},
      {"an async start in the shorter spelling wraps what it starts",
       "%x = ((f32[2], s32[]), f32[1], u32[]) dynamic-slice-start(f32[2] %p, %i), "
       "dynamic_slice_sizes={1}",
       "((f32[2], s32[]), f32[1], u32[]) async-start(p, i), dynamic_slice_sizes={1} -> x"},
      {"the rest of a pair in the shorter spelling",
       "%s = ((f32[2]), f32[2], u32[]) fusion-start(%p), kind=kLoop, calls=%f1\n"
       "  %u = ((f32[2]), f32[2], u32[]) fusion-update(%s)\n  %x = f32[2] fusion-done(%u)",
       "f32[2] async-done(u)"},
      {"an opcode of a later XLA is kept", "%x = f32[2] frobnicate(%p), calls=%f1",
       "f32[2] unknown(p), calls=%f1 -> f1"},
      {"a pair of unknown opcodes stays unknown", "%x = f32[2] frobnicate-start(%p)",
       "f32[2] unknown(p)"},
      {"dynamic dimensions", "%x = f32[<=8,2] negate(%p)", "f32[8,2] negate(p)"},
      {"tokens", "%x = (f32[2], u32[], token[]) send(%p, %i), channel_id=1",
       "(f32[2], u32[], token[]) send(p, i), channel_id=1"},
      {"control predecessors", "%x = f32[2] negate(%p), control-predecessors={%p, %i}",
       "f32[2] negate(p), control-predecessors={%p, %i}"},
      {"aliases of operands",
       "%x = f32[2] custom-call(%p), output_to_operand_aliasing={{}: (0, {})}",
       "f32[2] custom-call(p), output_to_operand_aliasing={{}: (0, {})}"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_module(
        std::string("HloModule toy\n%f {\n  ROOT %y = f32[2]{0} parameter(0)\n}\n"
                    "%f1 (y1: f32[2]) -> f32[2] {\n  ROOT %y1 = f32[2]{0} parameter(0)\n}\n"
                    "ENTRY %main {\n  %p = f32[2]{0} parameter(0)\n"
                    "  %t = (f32[2]{0}, (s32[], bf16[4]{0})) parameter(1)\n"
                    "  %i = s32[] parameter(2)\n  ") +
        row.text + "\n}\n");
    CHECK(describe_instruction(program, "x") == row.expected);
  }
}

TEST_CASE("what an async start in the shorter spelling wraps") {
  const Program program = read_module(
      "HloModule toy, is_scheduled=true\n"
      "%fused {\n  %a = f32[2] parameter(0)\n  %b = s32[] parameter(1)\n"
      "  ROOT %n = f32[2] negate(%a)\n}\n"
      "ENTRY %main {\n  %t = (f32[2], s32[]) parameter(0)\n"
      "  %s = ((f32[2], s32[]), f32[2], u32[]) fusion-start(%t#0, %t#1), kind=kLoop, calls=%fused\n"
      "  ROOT %d = f32[2] fusion-done(%s)\n}\n");
  CHECK(validate(program) == std::nullopt);
  CHECK(program.computations.size() == 3);
  const InstructionId start = find_instruction(program, "s");
  CHECK(program[start].opcode_text == "fusion-start");
  const Computation& wrapped = program[program[start.computation].called(start.instruction)[0]];
  CHECK(wrapped.name() == "s");
  REQUIRE(wrapped.size() == 3);
  CHECK(wrapped.parameters().size() == 2);
  CHECK(to_string(wrapped[wrapped.parameters()[1]].shape) == "s32[]");
  const InstructionIndex fusion = wrapped.root().instruction;
  CHECK(wrapped[fusion].opcode == Opcode::kFusion);
  CHECK(wrapped[fusion].name == "s.wrapped");
  CHECK(to_string(wrapped[fusion].shape) == "f32[2]");
  CHECK(has_attribute(wrapped, fusion, "kind", "kLoop"));
  CHECK(program[wrapped.called(fusion)[0]].name() == "fused");
}

TEST_CASE("computations") {
  struct Row {
    std::string name;
    std::string text;  ///< of one computation %c = parameter x
  };
  const Row rows[] = {
      {"with a signature", "%c (x: f32[2]) -> f32[2] {\n  ROOT %x = f32[2] parameter(0)\n}\n"},
      {"with a layout in the signature",
       "%c (x: f32[2]{0:S(5)}) -> f32[2]{0} {\n  ROOT %x = f32[2] parameter(0)\n}\n"},
      {"with a tuple in the signature",
       "%c (x: (f32[2], /*index=1*/s32[])) -> (f32[2], s32[]) {\n"
       "  ROOT %x = (f32[2], s32[]) parameter(0)\n}\n"},
      {"without", "%c {\n  ROOT %x = f32[2] parameter(0)\n}\n"},
      {"without %", "c {\n  ROOT x = f32[2] parameter(0)\n}\n"},
      {"without root: the last is it", "%c {\n  %x = f32[2] parameter(0)\n}\n"},
      {"with a thread behind",
       "%c {\n  ROOT %x = f32[2] parameter(0)\n}, execution_thread=\"main_thread\"\n"},
      {"with a thread in front",
       "%c (x: f32[2]) -> f32[2], execution_thread=\"host\" {\n  ROOT %x = f32[2] "
       "parameter(0)\n}\n"},
      {"with a comment behind", "%c {\n  ROOT %x = f32[2] parameter(0)\n} // c\n"},
      {"in one line", "%c { ROOT %x = f32[2] parameter(0) }\n"},
      {"with Windows line ends", "%c {\r\n  ROOT %x = f32[2] parameter(0)\r\n}\r\n"},
      {"with line ends of old Macs", "%c {\r  ROOT %x = f32[2] parameter(0) // x\r}\r"},
      {"with a brace right behind the shape",
       "%c (x: f32[2]) -> f32[2]{\n  ROOT %x = f32[2] parameter(0)\n}\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_module(std::string("HloModule toy\n") + row.text +
                                        "ENTRY %main { ROOT %r = f32[2] parameter(0) }");
    REQUIRE(program.computations.size() == 2);
    const Computation& c = program[ComputationId(0)];
    CHECK(c.name() == "c");
    CHECK(c.size() == 1);
    CHECK(c.root_instruction().name == "x");
    CHECK(program.entry == ComputationId(1));
  }
}

TEST_CASE("several instructions in one line") {
  const Program program = read_module(
      "HloModule toy ENTRY %main { %p = f32[2] parameter(0) %q = (f32[2], f32[2]) custom-call(%p), "
      "custom_call_target=\"x\" %g = f32[2] get-tuple-element(%q), index=1 ROOT %r = f32[2] "
      "add(%p, %g) }");
  CHECK(describe_instruction(program, "r") == "f32[2] add(p, q{1})");
}

TEST_CASE("names may repeat in other computations") {
  const Program program = read_module(
      "HloModule toy\n%a {\n  %x = f32[2] parameter(0)\n}\n%b {\n  %x = s32[] parameter(0)\n}\n"
      "ENTRY %x {\n  %x = u32[] parameter(0)\n}\n");
  CHECK(program.computations.size() == 3);
  CHECK(to_string(program[ComputationId(1)].root_instruction().shape) == "s32[]");
}

TEST_CASE("a computation may be called before it is written") {
  const Program program = read_module(
      "HloModule toy\nENTRY %main {\n  %p = f32[2] parameter(0)\n"
      "  ROOT %c = f32[2] call(%p), to_apply=%later\n}\n%later {\n  ROOT %q = f32[2] "
      "parameter(0)\n}\n");
  CHECK(describe_instruction(program, "c") == "f32[2] call(p), to_apply=%later -> later");
  CHECK(program.entry_computation().name() == "main");
}

TEST_CASE("what may stand around a module") {
  const std::string entry = "ENTRY %main {\n  ROOT %p = f32[2] parameter(0)\n}\n";
  CHECK(read_module("\xef\xbb\xbf"
                    "HloModule marked\n" +
                    entry)
            .name == "marked");
  CHECK(read_module("// made by hand\n/* twice */ HloModule toy\n" + entry).name == "toy");
  CHECK(read_module("HloModule toy // so\n" + entry).name == "toy");
  CHECK(read_module("HloModule toy,\n  num_partitions=4\n" + entry).num_partitions == 4);
  CHECK(read_module(entry).name == "");  // no header at all
  CHECK(read_module("%a {\n  ROOT %p = f32[2] parameter(0)\n}\n" + entry).computations.size() == 2);
}

TEST_CASE("tables of source lines") {
  const Program program = read_module(
      "HloModule toy\n\n"
      "FileNames\n1 \"/a/b.py\"\n2 \"c \\\"d\\\".py\"\n\n"
      "FunctionNames\n1 \"f\"\n2 \"<lambda>\"\n\n"
      "FileLocations\n"
      "1 {file_name_id=1 function_name_id=2 line=61 end_line=62 column=4 end_column=8}\n"
      "2 {file_name_id=2, function_name_id=1, line=7, note=\"new\"}\n\n"
      "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 "
      "parent_frame_id=2}\n\n"
      "ENTRY %main {\n  ROOT %p = f32[2] parameter(0)\n}\n");
  REQUIRE(program.stack_frames != nullptr);
  const StackFrames& tables = *program.stack_frames;
  CHECK(tables.files == std::vector<std::string_view>{"/a/b.py", "c \\\"d\\\".py"});
  REQUIRE(tables.locations.size() == 2);
  CHECK(tables.locations[0].file == 1);
  CHECK(tables.locations[0].line == 61);
  CHECK(tables.locations[1].line == 7);
  REQUIRE(tables.frames.size() == 2);
  CHECK(tables.frames[1].location == 2);
}

TEST_CASE("the text and its shapes live as long as a computation") {
  std::shared_ptr<const Computation> kept;
  {
    const Program program =
        read_entry("  %p = bf16[8,4]{1,0} parameter(0)\n  ROOT %n = bf16[8,4]{1,0} negate(%p)\n");
    kept = program.computations[program.entry];
  }
  CHECK(kept->root_instruction().name == "n");
  CHECK(to_string(kept->root_instruction().shape) == "bf16[8,4]");
}

}  // namespace
}  // namespace spillway
