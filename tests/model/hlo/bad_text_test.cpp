// What the reader says about text that is no program: one message, where it is wrong.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "model/hlo/text_reader.h"

namespace spillway {
namespace {

std::string message_of(const std::string& text) {
  const Result<Program> program =
      hlo::read_hlo_text(std::make_shared<const std::string>(text), "x.hlo");
  REQUIRE_FALSE(program.ok());
  CHECK(program.error().kind == ErrorKind::kInput);
  return to_text(program.error());
}

constexpr const char* kGiveText =
    "\n  give the …after_optimizations.txt that --xla_dump_hlo_as_text writes";
constexpr const char* kCompile =
    "\n  compile with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" and give DIR";

TEST_CASE("other formats are recognised") {
  struct Row {
    std::string name;
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"blanks", " \n\t\r\n", std::string("x.hlo: error: holds nothing but blanks") + kGiveText},
      {"StableHLO",
       "#loc = loc(unknown)\nmodule @jit_f {\n  func.func public @main(%arg0: tensor<2xf32>) {\n",
       std::string("x.hlo: error: is StableHLO, which XLA has not compiled yet") + kCompile},
      {"StableHLO behind a long list of places",
       "#loc = loc(unknown)\n#loc1 = loc(\"" + std::string(5000, 'a') + "\")\nmodule @jit_f {\n",
       std::string("x.hlo: error: is StableHLO, which XLA has not compiled yet") + kCompile},
      {"StableHLO without a name", "module {\n  func.func @main() {\n",
       std::string("x.hlo: error: is StableHLO, which XLA has not compiled yet") + kCompile},
      {"MLIR bytecode", "ML\xefR\x03 producer",
       std::string("x.hlo: error: is MLIR bytecode, which XLA has not compiled yet") + kCompile},
      {"HloProto, taken for text", std::string("\n\x96\x10\n\x08jit_step\x12\x04main", 20),
       std::string("x.hlo: error: is binary, not HLO text") + kGiveText},
      {"binary",
       std::string("\x7f"
                   "ELF\x02\x01\x00\x00",
                   8),
       std::string("x.hlo: error: is binary, not HLO text") + kGiveText},
      {"what XLA writes in place of a proto", "Failed to serialize HLO module proto.",
       std::string("x.hlo: error: holds XLA's message that the module is too large to be written "
                   "as a proto, not the module") +
           kGiveText},
      {"buffer assignment", "BufferAssignment:\nallocation 0: size 8\n",
       std::string("x.hlo: error: is XLA's buffer assignment, not the program") + kGiveText},
      {"live ranges", "HloLiveRange (max 785):\n",
       std::string("x.hlo: error: is XLA's list of live ranges, not the program") + kGiveText},
      {"memory report", "Memory Space: default (color=0)\n",
       std::string("x.hlo: error: is XLA's memory usage report, not the program") + kGiveText},
      {"scheduler's trace", "hlo_module {\n  name: \"jit_step\"\n",
       std::string("x.hlo: error: is XLA's trace of the scheduler, not the program") + kGiveText},
      {"thunk metadata", "thunk_metadata {\n",
       std::string("x.hlo: error: is XLA's thunk metadata, not the program") + kGiveText},
      {"thunk sequence", "001: kCustomKernel [source        | next=002 (1) ] f\n",
       std::string("x.hlo: error: is XLA's thunk sequence, not the program") + kGiveText},
      {"JSON", "{\"a\": 1}\n", std::string("x.hlo: error: is JSON, not HLO text") + kGiveText},
      {"something else", "hello\n",
       "x.hlo:1:1: error: expected 'HloModule'\n"
       "   1 | hello\n"
       "     | ^ this does not look like HLO text"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(message_of(row.text) == row.expected);
  }
}

TEST_CASE("headers and computations") {
  struct Row {
    std::string name;
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"no name", "HloModule\n",
       "x.hlo:2:1: error: expected the name of the module\n  the file may be cut"},
      {"no value", "HloModule toy, is_scheduled\n",
       "x.hlo:2:1: error: expected '='\n  the file may be cut"},
      {"no entry", "HloModule toy\n%a {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:5:1: error: the module has no ENTRY computation\n  the file may be cut"},
      {"only a header", "HloModule toy, is_scheduled=true\n",
       "x.hlo:2:1: error: the module has no ENTRY computation\n  the file may be cut"},
      {"two entries",
       "HloModule toy\nENTRY %a {\n  %p = f32[] parameter(0)\n}\nENTRY %b {\n  %p = f32[] "
       "parameter(0)\n}\n",
       "x.hlo:5:8: error: there are two ENTRY computations\n"
       "   5 | ENTRY %b {\n"
       "     |        ^"},
      {"two modules", "HloModule a\nENTRY %a {\n  %p = f32[] parameter(0)\n}\n\nHloModule b\n",
       "x.hlo:6:1: error: a second module begins here\n"
       "   6 | HloModule b\n"
       "     | ^ give one module a file"},
      {"two modules as XLA's tests split them",
       "HloModule a\nENTRY %a {\n  %p = f32[] parameter(0)\n}\n// -----\nHloModule b\n",
       "x.hlo:6:1: error: a second module begins here\n"
       "   6 | HloModule b\n"
       "     | ^ give one module a file"},
      {"a name twice",
       "HloModule toy\n%a {\n  %p = f32[] parameter(0)\n}\n%a {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:5:2: error: computation 'a' is defined twice\n"
       "   5 | %a {\n"
       "     |  ^"},
      {"an empty computation", "HloModule toy\nENTRY %a {\n}\n",
       "x.hlo:2:8: error: computation 'a' has no instructions\n"
       "   2 | ENTRY %a {\n"
       "     |        ^"},
      {"only elements of nothing",
       "HloModule toy\nENTRY %a {\n  ROOT %g = f32[] get-tuple-element(%p), index=0\n}\n",
       "x.hlo:3:38: error: 'p' is not defined before it is used\n"
       "   3 |   ROOT %g = f32[] get-tuple-element(%p), index=0\n"
       "     |                                      ^"},
      {"something that is no computation", "HloModule toy\nfoo bar\n}\n",
       "x.hlo:2:5: error: expected '{' and the instructions of a computation\n"
       "   2 | foo bar\n"
       "     |     ^"},
      {"a call of nothing",
       "HloModule toy\nENTRY %a {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), "
       "to_apply=%nope\n}\n",
       "x.hlo:4:39: error: computation 'nope' is called but not defined\n"
       "   4 |   ROOT %c = f32[] call(%p), to_apply=%nope\n"
       "     |                                       ^ the file may be cut"},
      {"a computation that calls itself",
       "HloModule toy\n%a {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), "
       "to_apply=%a\n}\n"
       "ENTRY %main {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:4:39: error: computation 'a' calls itself\n"
       "   4 |   ROOT %c = f32[] call(%p), to_apply=%a\n"
       "     |                                       ^"},
      {"computations that call each other",
       "HloModule toy\n%a {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), "
       "to_apply=%b\n}\n"
       "%b {\n  %p = f32[] parameter(0)\n  ROOT %c = f32[] call(%p), to_apply=%a\n}\n"
       "ENTRY %main {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:4:39: error: computation 'b' calls itself\n"
       "   4 |   ROOT %c = f32[] call(%p), to_apply=%b\n"
       "     |                                       ^"},
      {"too many devices", "HloModule toy, num_partitions=99999999999\n}\n",
       "x.hlo:1:31: error: expected a number of devices from 1 to 1048576\n"
       "   1 | HloModule toy, num_partitions=99999999999\n"
       "     |                               ^"},
      {"no devices", "HloModule toy, replica_count=0\n}\n",
       "x.hlo:1:30: error: expected a number of devices from 1 to 1048576\n"
       "   1 | HloModule toy, replica_count=0\n"
       "     |                              ^"},
      {"a cut alias", "HloModule toy, input_output_alias={ {0}: (0, {\n",
       "x.hlo:2:1: error: expected the number of a tuple element\n  the file may be cut"},
      {"an alias without parameter", "HloModule toy, input_output_alias={ {0}: (x) }\n}\n",
       "x.hlo:1:43: error: expected the number of a parameter\n"
       "   1 | HloModule toy, input_output_alias={ {0}: (x) }\n"
       "     |                                           ^"},
      {"an alias of a result that is not there",
       "HloModule toy, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}) }\n"
       "ENTRY %m {\n  %p = f32[] parameter(0)\n  ROOT %t = (f32[]) tuple(%p)\n}\n",
       "x.hlo:1:62: error: input_output_alias names a result that does not exist\n"
       "   1 | HloModule toy, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}) }\n"
       "     |                                                              ^"},
      {"an alias of a parameter that is not there",
       "HloModule toy, input_output_alias={ {}: (4294967295, {}) }\n"
       "ENTRY %m {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:1:37: error: input_output_alias names a parameter that does not exist\n"
       "   1 | HloModule toy, input_output_alias={ {}: (4294967295, {}) }\n"
       "     |                                     ^"},
      {"a donor that is not there",
       "HloModule toy, buffer_donor={ (1, {}) }\nENTRY %m {\n  %p = f32[] parameter(0)\n}\n",
       "x.hlo:1:31: error: buffer_donor names a parameter that does not exist\n"
       "   1 | HloModule toy, buffer_donor={ (1, {}) }\n"
       "     |                               ^"},
      {"a table with a row missing", "HloModule toy\nFileNames\n1 \"a\"\n3 \"b\"\n}\n",
       "x.hlo:4:1: error: expected row 2 of a table that is numbered 1, 2, 3\n"
       "   4 | 3 \"b\"\n"
       "     | ^"},
      {"a table of something else", "HloModule toy\nFileNames\n1 {a=1}\n}\n",
       "x.hlo:3:3: error: expected a string\n"
       "   3 | 1 {a=1}\n"
       "     |   ^"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(message_of(row.text) == row.expected);
  }
}

TEST_CASE("instructions") {
  struct Row {
    std::string name;
    std::string text;      ///< line 4 behind %p = f32[2] and %t = (f32[2], s32[])
    std::string expected;  ///< without "x.hlo:5:" and the excerpt
  };
  const Row rows[] = {
      {"an operand that is not defined", "%x = f32[2] add(%p, %q)",
       "24: error: 'q' is not defined before it is used"},
      {"an operand that is defined later", "%x = f32[2] negate(%y)\n  %y = f32[2] negate(%p)",
       "23: error: 'y' is not defined before it is used"},
      {"an operand that is itself", "%x = f32[2] negate(%x)",
       "23: error: 'x' is not defined before it is used"},
      {"a name twice", "%p = f32[2] negate(%p)", "4: error: 'p' is defined twice"},
      {"a tuple element that is not there", "%x = f32[2] negate(%t#2)",
       "23: error: tuple element 2 does not exist: the shape is (f32[2], s32[])"},
      {"an element of an array", "%x = f32[2] negate(%p#0)",
       "23: error: tuple element 0 does not exist: the shape is f32[2]"},
      {"an element beyond 64 bits", "%x = f32[2] negate(%t#99999999999999999999)",
       "25: error: expected the number of a tuple element"},
      {"an element without number", "%x = f32[2] negate(%t#x)",
       "25: error: expected the number of a tuple element"},
      {"an explicit element that is not there", "%x = f32[2] get-tuple-element(%t), index=7",
       "4: error: tuple element 7 does not exist: the shape is (f32[2], s32[])"},
      {"an explicit element below", "%x = f32[2] get-tuple-element(%t), index=-1",
       "4: error: get-tuple-element needs one operand and index="},
      {"an explicit element of another shape", "%x = f32[3] get-tuple-element(%t), index=0",
       "4: error: 'x' is f32[3], but the element it takes is f32[2]"},
      {"an explicit element without index", "%x = f32[2] get-tuple-element(%t)",
       "4: error: get-tuple-element needs one operand and index="},
      {"two roots", "ROOT %x = f32[2] negate(%p)\n  ROOT %y = f32[2] negate(%p)",
       "+1:9: error: a computation has one ROOT, not two"},
      {"no name", "= f32[2] negate(%p)", "3: error: expected an instruction"},
      {"no shape", "%x = %p", "8: error: expected a shape such as f32[8,128]"},
      {"an unknown type", "%x = f99[2] negate(%p)", "8: error: unknown element type 'f99'"},
      {"no operation", "%x = f32[2] (%p)", "15: error: expected an operation: add(…)"},
      {"no operands", "%x = f32[2] negate", "+1:1: error: expected '('"},
      {"operands without comma", "%x = f32[2] add(%p %p)", "22: error: expected ')'"},
      {"operands that end in a comma", "%x = f32[2] add(%p, )", "23: error: expected an operand"},
      {"an attribute without value",
       "%x = f32[2] negate(%p), kind=", "+1:1: error: expected a value"},
      {"an attribute without name", "%x = f32[2] negate(%p), =kLoop",
       "27: error: expected name=value"},
      {"a loop without body", "%x = f32[2] while(%p), condition=%p",
       "4: error: a while needs condition= and body="},
      {"a fusion of nothing", "%x = f32[2] fusion(%p), kind=kLoop",
       "4: error: fusion names no computation"},
      {"an async start of nothing", "%x = ((f32[2]), f32[2]) async-start(%p)",
       "4: error: async-start names no computation"},
      {"a fusion start of nothing", "%x = ((f32[2]), f32[2]) fusion-start(%p)",
       "4: error: fusion-start names no computation"},
      {"a slice start with the wrong shape", "%x = f32[2] slice-start(%p)",
       "4: error: slice-start has the shape ((operands), result, …)"},
      {"a parameter twice", "%x = f32[2] parameter(1)",
       "4: error: parameter 1 of 'main' is defined twice"},
      {"a parameter with a huge number", "%x = f32[2] parameter(999999)",
       "-3:8: error: parameter 2 of 'main' is missing"},
      {"a parameter with a number beyond all", "%x = f32[2] parameter(99999999999999999999)",
       "25: error: expected the number of a parameter"},
      {"a parameter with a negative number", "%x = f32[2] parameter(-1)",
       "25: error: expected the number of a parameter"},
      {"a parameter without number", "%x = f32[2] parameter()",
       "25: error: expected the number of a parameter"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string text = std::string(
                                 "HloModule toy\nENTRY %main {\n  %p = f32[2] parameter(0)\n"
                                 "  %t = (f32[2], s32[]) parameter(1)\n  ") +
                             row.text + "\n}\n";
    std::string message = message_of(text);
    message = message.substr(0, message.find('\n'));
    std::string expected = row.expected;
    std::string line = "5";
    if (expected.starts_with("+1:") || expected.starts_with("-3:")) {
      line = expected[0] == '+' ? "6" : "2";
      expected = expected.substr(3);
    }
    CHECK(message == "x.hlo:" + line + ":" + expected);
  }
}

TEST_CASE("names and lines of any length leave short messages") {
  const std::string name(1000000, 'n');
  const std::string message =
      message_of("HloModule toy\nENTRY %m {\n  %p = f32[2] negate(%" + name + ")\n}\n");
  CHECK(message == "x.hlo:3:23: error: '" + std::string(80, 'n') +
                       "…' is not defined before it is used\n"
                       "   3 |   %p = f32[2] negate(%" +
                       std::string(74, 'n') +
                       "…\n"
                       "     |                       ^");
  std::string shape = "(f32[2]";
  for (int i = 0; i < 10000; ++i) shape += ", f32[2]";
  CHECK(message_of("HloModule toy\nENTRY %m {\n  %p = " + shape +
                   ") parameter(0)\n  %x = f32[2] negate(%p#10001)\n}\n")
            .size() < 400);
}

}  // namespace
}  // namespace spillway
