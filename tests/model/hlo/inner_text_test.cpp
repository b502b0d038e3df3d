// What people write inside an instruction and XLA never prints: operations in place of operands,
// computations in place of their names, operations without a shape.
#include "model/hlo/inner_text.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "model/hlo/text_reader.h"
#include "model/program/validate.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::read_module;

/// A computation in one line: "0 f32[2] parameter(0); 1 f32[2] negate(0)", operands by position,
/// callees by name.
std::string listing(const Program& program, ComputationId id) {
  const Computation& computation = program[id];
  std::string text;
  for (const InstructionIndex i : computation.instructions()) {
    const Instruction& in = computation[i];
    text += (text.empty() ? "" : "; ") + std::to_string(i.index) + " " + to_string(in.shape) + " " +
            std::string(in.opcode_text) + "(" + std::string(in.literal);
    const char* separator = "";
    for (const Operand& operand : computation.operands(i)) {
      text += separator + std::to_string(operand.instruction.index);
      if (operand.node > 0) text += "#" + std::to_string(operand.node);
      separator = " ";
    }
    text += ")";
    for (const ComputationId called : computation.called(i))
      text += " " + std::string(program[called].name());
  }
  return text;
}

std::string error_of(const std::string& text) {
  const Result<Program> program =
      hlo::read_hlo_text(std::make_shared<const std::string>(text), "x.hlo");
  if (program.ok()) return "accepted";
  const std::string message = to_text(program.error());
  return message.substr(0, message.find('\n'));
}

std::string repeat(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST_CASE("operations in place of operands") {
  struct Row {
    std::string name;
    std::string text;  ///< of the entry
    std::string expected;
  };
  const Row rows[] = {
      {"parameters and products, as XLA's tests write them",
       "ROOT x = add(f32[10] parameter(0), multiply(f32[10] parameter(1), f32[10]{0} "
       "parameter(2)))",
       "0 f32[10] parameter(0); 1 f32[10] parameter(1); 2 f32[10] parameter(2); "
       "3 f32[10] multiply(1 2); 4 f32[10] add(0 3)"},
      {"between operands that have names",
       "p = f32[2] parameter(0) q = f32[2] parameter(1) "
       "x = f32[2] custom-call(p, negate(q), %q, add(p, negate(q)), f32[2] p)",
       "0 f32[2] parameter(0); 1 f32[2] parameter(1); 2 f32[2] negate(1); 3 f32[2] negate(1); "
       "4 f32[2] add(0 3); 5 f32[2] custom-call(0 2 1 4 0)"},
      {"constants", "x = f32[] add(f32[] constant(1), f32[] constant(-inf))",
       "0 f32[] constant(1); 1 f32[] constant(-inf); 2 f32[] add(0 1)"},
      {"tuples",
       "t = (f32[2], s32[]) parameter(0) x = f32[2] custom-call(((f32[2], s32[]), f32[1]) "
       "tuple(t, f32[1] parameter(1)), t#1)",
       "0 (f32[2], s32[]) parameter(0); 1 f32[1] parameter(1); "
       "2 ((f32[2], s32[]), f32[1]) tuple(0 1); 3 f32[2] custom-call(2 0#2)"},
      {"a pair in the shorter spelling",
       "p = f32[2] parameter(0) x = f32[2] negate-done(((f32[2]), f32[2]) negate-start(p))",
       "0 f32[2] parameter(0); 1 ((f32[2]), f32[2]) negate-start(0) negate-start; "
       "2 f32[2] negate-done(1)"},
      {"with comments and line ends",
       "p = f32[2] parameter(0)\rx = f32[2] negate( /* of p ( */ negate(p // so )\n))",
       "0 f32[2] parameter(0); 1 f32[2] negate(0); 2 f32[2] negate(1)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_module("HloModule toy ENTRY e {\n" + row.text + "\n}\n");
    CHECK(listing(program, program.entry) == row.expected);
    CHECK(program.entry_computation().root_instruction().name == "x");
    CHECK(validate(program) == std::nullopt);
  }
}

TEST_CASE("operations inside others that cannot be read") {
  struct Row {
    std::string name;
    std::string text;  ///< behind p = f32[2] parameter(0), in line 4
    std::string expected;
  };
  const Row rows[] = {
      {"an element needs its index", "x = f32[2] negate(f32[2] get-tuple-element(p))",
       "x.hlo:4:26: error: get-tuple-element needs one operand and index="},
      {"a call needs what it calls", "x = f32[2] negate(f32[2] call(p))",
       "x.hlo:4:26: error: call names no computation"},
      {"attributes belong outside", "x = f32[2] negate(f32[2] negate(p), kind=kLoop)",
       "x.hlo:4:37: error: 'kind' is not defined before it is used"},
      {"a shape that does not follow", "x = pred[2] not(compare(p, p))",
       "x.hlo:4:17: error: the shape of 'compare' does not follow from its operands"},
      {"nothing to infer a shape from", "x = negate()",
       "x.hlo:4:5: error: the shape of 'negate' does not follow from its operands"},
      {"a parameter without shape", "x = parameter(1)",
       "x.hlo:4:5: error: the shape of 'parameter' does not follow from its operands"},
      {"too deep", "x = f32[2] " + repeat("negate(", 66) + "p" + repeat(")", 66),
       "x.hlo:4:467: error: operations nest too deep"},
      {"very much too deep", "x = f32[2] " + repeat("negate(", 100000),
       "x.hlo:4:467: error: operations nest too deep"},
      {"in an instruction that is cut", "x = f32[2] add(p, negate(p",
       "x.hlo:5:1: error: expected ')'"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(error_of("HloModule toy\nENTRY e {\n  p = f32[2] parameter(0)\n" + row.text + "\n}\n") ==
          row.expected);
  }
  CHECK(error_of("HloModule toy\nENTRY e {\n  p = f32[2] parameter(0)\n  x = f32[2] " +
                 repeat("negate(", 65) + "p" + repeat(")", 65) + "\n}\n") == "accepted");
}

TEST_CASE("many operations between many operands") {
  std::string text =
      "HloModule toy\nENTRY e {\n  p = f32[2] parameter(0)\n  x = f32[2] custom-call(p";
  for (int i = 0; i < 50000; ++i) text += ", negate(p), p";
  const Program program = read_module(text + ")\n}\n");
  CHECK(program.entry_computation().size() == 50002);
  CHECK(program.entry_computation().operands(InstructionIndex(50001)).size() == 100001);
}

TEST_CASE("shapes that follow from the operands") {
  struct Row {
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"x = add(a, b)", "f32[2]"},
      {"x = select(c, a, b)", "f32[2]"},
      {"x = clamp(s, a, s)", "f32[2]"},
      {"x = copy(t#1)", "s32[3]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Program program = read_module(
        "HloModule toy ENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n"
        "  c = pred[2] parameter(2)\n  s = f32[] parameter(3)\n  t = (f32[], s32[3]) parameter(4)\n"
        "  " +
        row.text + "\n}\n");
    CHECK(to_string(program[find_instruction(program, "x")].shape) == row.expected);
    CHECK(validate(program) == std::nullopt);
  }
}

TEST_CASE("computations in place of their names") {
  struct Row {
    std::string name;
    std::string text;      ///< behind p = f32[2], i = s32[], b = pred[] and %n, which negates
    std::string expected;  ///< of what x calls
  };
  const std::string sum =
      "{ l = f32[] parameter(0)\n    r = f32[] parameter(1)\n    ROOT s = f32[] add(l, r) }";
  const std::string negate = "{ p = f32[2] parameter(0) ROOT x = f32[2] negate(p) }";
  const std::string negates = "0 f32[2] parameter(0); 1 f32[2] negate(0)";
  const Row rows[] = {
      {"of a reduction", "x = f32[] reduce(p, f32[] constant(0)), dimensions={0}, to_apply=" + sum,
       "x: 0 f32[] parameter(0); 1 f32[] parameter(1); 2 f32[] add(0 1)"},
      {"and attributes behind it",
       "x = f32[2] all-reduce(p), to_apply=" + sum + ", replica_groups={{0,1}}, channel_id=1",
       "x: 0 f32[] parameter(0); 1 f32[] parameter(1); 2 f32[] add(0 1)"},
      {"of a loop, the body first",
       "x = f32[2] while(p), body=" + negate +
           ", condition={ p = f32[2] parameter(0) ROOT c = pred[] constant(true) }",
       "x: 0 f32[2] parameter(0); 1 pred[] constant(true) | x: " + negates},
      {"of a branch by truth",
       "x = f32[2] conditional(b, p, p), false_computation=%n, true_computation=" + negate,
       "x: " + negates + " | n: " + negates},
      {"of branches by number, mixed with names",
       "x = f32[2] conditional(i, p, p, p), branch_computations={ " + negate + ", %n, " + negate +
           "}",
       "x: " + negates + " | n: " + negates + " | x: " + negates},
      {"of a fusion", "x = f32[2] fusion(p), kind=kLoop, calls=" + negate, "x: " + negates},
      {"of a fusion, the name in braces", "x = f32[2] fusion(p), kind=kLoop, calls={%n}",
       "n: " + negates},
      {"of a custom call",
       "x = f32[2] custom-call(p), called_computations={" + negate + "}, custom_call_target=\"f\"",
       "x: " + negates},
      {"with %, and strings and braces in its attributes",
       "%x = f32[2] call(%p), to_apply={ %p = f32[2] parameter(0), metadata={op_name=\"}\"} /* } "
       "*/ "
       "ROOT %y = f32[2] negate(%p), sharding={replicated} }, metadata={op_name=\"x\"}",
       "x: " + negates},
      {"over lines with line ends of old Macs",
       "x = f32[2] call(p), to_apply={\r  p = f32[2] parameter(0)\r  y = f32[2] negate(p)\r}",
       "x: " + negates},
      {"inside another",
       "x = f32[2] call(p), to_apply={ q = f32[2] parameter(0) ROOT z = f32[2] call(q), to_apply=" +
           negate + "}",
       "x: 0 f32[2] parameter(0); 1 f32[2] call(0) z"},
      {"with an operation in place of an operand",
       "x = f32[2] call(p), to_apply={ ROOT y = f32[2] negate(f32[2] parameter(0)) }",
       "x: " + negates},
      {"that calls by name",
       "x = f32[2] call(p), to_apply={ q = f32[2] parameter(0) "
       "y = f32[2] call(q), to_apply=%later }",
       "x: 0 f32[2] parameter(0); 1 f32[2] call(0) later"},
      {"of a start in the shorter spelling",
       "x = ((f32[2]), f32[2], u32[]) call-start(p), to_apply=" + negate,
       "x: 0 f32[2] parameter(0); 1 f32[2] call(0) x"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = read_module(
        "HloModule toy\n%n {\n  q = f32[2] parameter(0)\n  ROOT m = f32[2] negate(q)\n}\n"
        "ENTRY e {\n  p = f32[2] parameter(0)\n  i = s32[] parameter(1)\n"
        "  b = pred[] parameter(2)\n  ROOT " +
        row.text + "\n}\n%later {\n  q = f32[2] parameter(0)\n}\n");
    CHECK(validate(program) == std::nullopt);
    const Computation& entry = program.entry_computation();
    std::string found;
    for (const ComputationId called : entry.called(entry.root().instruction))
      found += (found.empty() ? "" : " | ") + std::string(program[called].name()) + ": " +
               listing(program, called);
    CHECK(found == row.expected);
    CHECK(entry.parameters().size() == 3);
  }
}

TEST_CASE("computations inside instructions that cannot be read") {
  struct Row {
    std::string name;
    std::string text;  ///< behind p = f32[2] parameter(0), in line 4
    std::string expected;
  };
  const Row rows[] = {
      {"a name in braces where one computation belongs", "x = f32[2] call(p), to_apply={%nope}",
       "x.hlo:4:30: error: expected the name of a computation, or its instructions in braces"},
      {"nothing in braces", "x = f32[2] call(p), to_apply={}",
       "x.hlo:4:30: error: expected the name of a computation, or its instructions in braces"},
      {"nothing that is called", "x = f32[2] fusion(p), kind=kLoop, calls={}",
       "x.hlo:4:1: error: fusion names no computation"},
      {"outer names are not known inside", "x = f32[2] call(p), to_apply={ y = f32[2] negate(p) }",
       "x.hlo:4:50: error: 'p' is not defined before it is used"},
      {"inner names are not known outside",
       "x = f32[2] call(p), to_apply={ y = f32[2] parameter(0) }\n  z = f32[2] negate(y)",
       "x.hlo:5:21: error: 'y' is not defined before it is used"},
      {"a parameter is missing", "x = f32[2] call(p), to_apply={ y = f32[2] parameter(1) }",
       "x.hlo:4:1: error: parameter 0 of 'x' is missing"},
      {"two roots",
       "x = f32[2] call(p), to_apply={ ROOT y = f32[2] parameter(0) ROOT z = f32[2] negate(y) }",
       "x.hlo:4:66: error: a computation has one ROOT, not two"},
      {"a list that holds something else",
       "x = f32[2] conditional(p, p), branch_computations={%a; %b}",
       "x.hlo:4:54: error: expected a computation"},
      {"too deep",
       repeat("x = f32[2] call(p), to_apply={ p = f32[2] parameter(0) ", 66) + repeat("}", 66),
       "x.hlo:4:3550: error: computations nest too deep"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(error_of("HloModule toy\nENTRY e {\n  p = f32[2] parameter(0)\n" + row.text + "\n}\n") ==
          row.expected);
  }
  CHECK(error_of("HloModule toy\n%a {\n  p = f32[2] parameter(0)\n  x = f32[2] call(p), to_apply={ "
                 "q = f32[2] parameter(0) y = f32[2] call(q), to_apply=%a }\n}\nENTRY e {\n"
                 "  p = f32[2] parameter(0)\n}\n") ==
        "x.hlo:4:88: error: computation 'a' calls itself");
}

}  // namespace
}  // namespace spillway
