#include "model/hlo/proto_reader.h"

#include <doctest/doctest.h>

#include "model/hlo/read_program.h"
#include "model/program/validate.h"
#include "tests/golden.h"
#include "tests/support/describe_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_proto.h"

namespace spillway {
namespace {

using testing::describe;
using testing::instruction;
using testing::toy_proto;

Program read(const pb::HloFile& file) {
  Result<Program> program = hlo::read_hlo_proto(testing::bytes_of(file), "toy.hlo.pb");
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : to_text(program.error())));
  return std::move(program).value();
}

/// The message without the path in front.
std::string message_of(const std::string& bytes) {
  const Result<Program> program =
      hlo::read_hlo_proto(std::make_shared<const std::string>(bytes), "x.hlo.pb");
  return program.ok() ? "" : to_text(program.error()).substr(std::string("x.hlo.pb: ").size());
}
std::string message_of(const pb::HloFile& file) { return message_of(file.SerializeAsString()); }

pb::HloInstruction& in_of(pb::HloFile& file, int computation, int instruction) {
  return *file.mutable_module()
              ->mutable_computations(computation)
              ->mutable_instructions(instruction);
}

TEST_CASE("a proto gives the program of its text") {
  const Program program = read(toy_proto());
  const Program text = testing::read_module(testing::kToyText);
  CHECK(testing::first_difference(describe(program), describe(text)) == "");
  CHECK(!validate(program));
  CHECK(program.text == nullptr);
  CHECK(!program.has_explicit_elements);
}

TEST_CASE("a module alone, without the HloProto around it") {
  const std::string bytes = toy_proto().module().SerializeAsString();
  const auto alone = hlo::read_hlo_proto(std::make_shared<const std::string>(bytes), "module.pb");
  REQUIRE(alone.ok());
  CHECK(describe(*alone) == describe(read(toy_proto())));
}

TEST_CASE("the schedule decides the order, where there is one") {
  pb::HloFile file = toy_proto();
  pb::Sequence& body =
      *file.mutable_module()->mutable_schedule()->mutable_sequences(1)->mutable_sequence();
  body.mutable_instruction_ids()->SwapElements(4, 5);
  const Program program = read(file);
  CHECK(program.is_scheduled);
  const Computation& computation = program[ComputationId(1)];
  CHECK(computation[InstructionIndex(2)].name == "twice");
  CHECK(computation[InstructionIndex(3)].name == "next");

  file.mutable_module()->mutable_schedule()->mutable_sequences()->RemoveLast();
  const Program unscheduled = read(file);
  CHECK(!unscheduled.is_scheduled);
  CHECK(unscheduled[ComputationId(1)][InstructionIndex(2)].name == "next");

  in_of(file, 1, 0);
  file.mutable_module()->mutable_computations(2)->set_is_fusion_computation(true);
  CHECK(read(file).is_scheduled);  // what is missing is a fusion's
}

TEST_CASE("the backend config: in the instruction, in its payload, in the table of the module") {
  pb::HloFile file = toy_proto();
  pb::HloInstruction& loop = in_of(file, 2, 3);
  const auto config = [&file] {
    const Program program = read(file);
    const InstructionId id = testing::find_instruction(program, "loop");
    return std::string(
        program[id.computation].attribute(id.instruction, "backend_config").value_or("none"));
  };
  loop.mutable_backend_config_payload()->set_value(R"({"a":"}"})");
  CHECK(config() == R"({"a":"}"})");
  file.mutable_module()->add_payloads("first");
  file.mutable_module()->add_payloads("says \"no JSON\"}");
  loop.mutable_backend_config_payload()->set_id(1);
  CHECK(config() == R"("says \"no JSON\"}")");
  loop.clear_backend_config_payload();
  CHECK(config() == R"({"known_trip_count":{"n":"4"}})");
  loop.clear_backend_config();
  CHECK(config() == "none");
}

TEST_CASE("calls by role") {
  struct Row {
    const char* opcode;
    std::initializer_list<std::int64_t> called;
    const char* text;
  };
  const Row rows[] = {
      {"call", {1}, "to_apply=%condition"},
      {"custom-call", {1, 2}, "called_computations={%condition, %body}"},
      {"conditional", {2, 1}, "branch_computations={%body, %condition}"},
      {"select-and-scatter", {1, 2}, "scatter=%body, select=%condition"},
      {"async-start", {1}, "calls=%condition"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.opcode));
    pb::HloFile file = toy_proto();
    pb::HloInstruction& out = in_of(file, 2, 4);
    out =
        instruction(14, "out", row.opcode, testing::array(testing::kF32, {8, 4}), {10}, row.called);
    const std::string text = describe(read(file));
    CHECK(text.find(row.text) != std::string::npos);
  }
  pb::HloFile file = toy_proto();
  *in_of(file, 2, 0).mutable_shape() = testing::array(testing::kPred, {});
  in_of(file, 2, 4) =
      instruction(14, "out", "conditional", testing::array(testing::kF32, {8, 4}), {10}, {2, 1});
  CHECK(describe(read(file)).find("false_computation=%condition, true_computation=%body") !=
        std::string::npos);
}

TEST_CASE("old protos are known by what their comparisons lack") {
  pb::HloFile file = toy_proto();
  in_of(file, 0, 3).clear_comparison_order();
  CHECK(read(file).has_explicit_elements);
}

TEST_CASE("what is no program says so") {
  struct Row {
    const char* what;
    void (*damage)(pb::HloFile&);
    const char* message;
  };
  const Row rows[] = {
      {"operand nowhere", [](pb::HloFile& f) { in_of(f, 2, 2).set_operand_ids(0, 77); },
       "instruction 'start' reads instruction 77, which is not there"},
      {"operand of another computation",
       [](pb::HloFile& f) { in_of(f, 2, 2).set_operand_ids(0, 3); },
       "instruction 'start' reads instruction 3, which is not there"},
      {"circle of operands",
       [](pb::HloFile& f) { in_of(f, 1, 4).set_operand_ids(0, testing::kHigh + 6); },
       "instruction 'next' reads 'b.out', which comes after it"},
      {"its own operand",
       [](pb::HloFile& f) { in_of(f, 1, 4).set_operand_ids(0, testing::kHigh + 4); },
       "instruction 'next' reads 'next', which comes after it"},
      {"call nowhere", [](pb::HloFile& f) { in_of(f, 2, 3).set_called_computation_ids(0, 9); },
       "the module calls computation 9, which is not there"},
      {"while without condition",
       [](pb::HloFile& f) { in_of(f, 2, 3).mutable_called_computation_ids()->RemoveLast(); },
       "while 'loop' calls 1 computation(s): it needs a body and a condition"},
      {"control nowhere", [](pb::HloFile& f) { in_of(f, 2, 3).add_control_predecessor_ids(-1); },
       "instruction 'loop' waits for instruction -1, which is not there"},
      {"payload nowhere",
       [](pb::HloFile& f) { in_of(f, 2, 3).mutable_backend_config_payload()->set_id(3); },
       "instruction 'loop' has payload 3 as its backend_config, of 0 in all"},
      {"id twice", [](pb::HloFile& f) { in_of(f, 2, 1).set_id(10); },
       "two instructions of computation 'main' have the id 10"},
      {"computation id twice",
       [](pb::HloFile& f) { f.mutable_module()->mutable_computations(0)->set_id(2); },
       "two computations have the id 2"},
      {"no root",
       [](pb::HloFile& f) { f.mutable_module()->mutable_computations(0)->set_root_id(99); },
       "the root of computation 'condition' is instruction 99, which is not there"},
      {"no entry", [](pb::HloFile& f) { f.mutable_module()->set_entry_computation_id(8); },
       "the entry is computation 8, which is not there"},
      {"name with a brace", [](pb::HloFile& f) { in_of(f, 2, 1).set_name("x} %y"); },
       "an instruction has the name 'x} %y', which HLO does not allow"},
      {"no operation", [](pb::HloFile& f) { in_of(f, 2, 1).clear_opcode(); },
       "instruction 'x' has the operation '', which is no name of one"},
      {"schedule of another module",
       [](pb::HloFile& f) {
         f.mutable_module()->mutable_schedule()->mutable_sequences(0)->set_computation_id(70);
       },
       "the schedule names computation 70, which is not there"},
      {"schedule with a stranger",
       [](pb::HloFile& f) {
         f.mutable_module()
             ->mutable_schedule()
             ->mutable_sequences(0)
             ->mutable_sequence()
             ->set_instruction_ids(0, 12);
       },
       "the schedule of computation 'condition' names instruction 12, which is not there"},
      {"schedule too short",
       [](pb::HloFile& f) {
         f.mutable_module()
             ->mutable_schedule()
             ->mutable_sequences(0)
             ->mutable_sequence()
             ->mutable_instruction_ids()
             ->RemoveLast();
       },
       "the schedule of computation 'condition' leaves out 1 of its 4 instructions"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    pb::HloFile file = toy_proto();
    row.damage(file);
    CHECK(message_of(file) == "error: " + std::string(row.message) + "\n  the file may be damaged");
  }
}

TEST_CASE("what the reader of text refuses has no place in a text that nobody has") {
  pb::HloFile file = toy_proto();
  in_of(file, 2, 1).mutable_shape()->set_element_type(99);
  CHECK(message_of(file) == "error: unknown element type 'type99'");
  file = toy_proto();
  in_of(file, 2, 1).set_name("zero");
  CHECK(message_of(file) == "error: 'zero' is defined twice");
  file = toy_proto();
  in_of(file, 2, 1).mutable_shape()->set_dimensions(0, -9);
  CHECK(message_of(file) ==
        "error: a dimension without bound has no size\n  XLA compiles for GPUs once it is known");
}

TEST_CASE("files that hold no module") {
  const std::string whole = toy_proto().SerializeAsString();
  const std::string advice =
      "\n  give the …after_optimizations.hlo.pb that --xla_dump_hlo_as_proto writes, or the text "
      "beside it";
  CHECK(message_of(whole.substr(0, whole.size() / 2)) ==
        "error: is a proto that ends too early\n  the file may be cut");
  CHECK(message_of(std::string("\x0b\x01\x02", 3)) == "error: is binary, but no HloProto" + advice);
  CHECK(message_of(pb::HloFile()) == "error: is a proto, but holds no HLO module" + advice);
  std::string wrong_type = toy_proto().SerializeAsString();
  wrong_type +=
      std::string("\x1a\x02\x0a\x7f", 4);  // a field inside that is longer than its parent
  CHECK(message_of(wrong_type) ==
        "error: is a HloProto that cannot be parsed: it is damaged, or nests too deep" + advice);
  pb::HloFile deep = toy_proto();
  pb::Shape* shape = in_of(deep, 2, 1).mutable_shape();
  for (int i = 0; i < 2'000; ++i) {
    shape->set_element_type(testing::kTuple);
    shape = shape->add_tuple_shapes();
  }
  CHECK(message_of(deep) ==
        "error: is a HloProto that cannot be parsed: it is damaged, or nests too deep" + advice);
}

TEST_CASE("a name that is repeated a million times does not fill memory") {
  pb::HloFile file = toy_proto();
  in_of(file, 2, 1).set_name(std::string(100'000, 'x'));
  for (int i = 0; i < 1'000'000; ++i) in_of(file, 2, 2).add_operand_ids(11);
  CHECK(message_of(file) ==
        "error: repeats its names and payloads beyond all reason\n  the file may be damaged");
}

TEST_CASE("which files are protos is seen, not named") {
  const testing::TemporaryFolder folder;
  const std::string proto = toy_proto().SerializeAsString();
  const auto name_of = [](const std::string& path) {
    const Result<Program> program = read_program(path);
    return program.ok() ? program->name : to_text(program.error());
  };
  CHECK(name_of(folder.write("any_name", proto)) == "toy");
  CHECK(name_of(folder.write("text.hlo.pb", testing::kToyText)) == "toy");
  const std::string failed = folder.write("big.hlo.pb", "Failed to serialize HLO module proto.");
  CHECK(
      name_of(failed).starts_with(failed + ": error: holds XLA's message that the module is too"));
  // Of a folder, text comes first.
  const std::string step =
      folder.write("jit_train_step.sm_9.0_gpu_after_optimizations.hlo.pb", proto);
  CHECK(read_program(folder.path(""))->path == step);
  const std::string text =
      folder.write("jit_init.sm_9.0_gpu_after_optimizations.txt", testing::kToyText);
  CHECK(read_program(folder.path(""))->path == text);
}

TEST_CASE("the dump in examples/: text and proto are the same program") {
  const std::string stem = testing::source_path(
      "examples/jax/dumps/offload_qkv/jit_train_step.sm_10.0a_gpu_after_optimizations");
  const Result<Program> text = read_program(stem + ".txt.gz");
  const Result<Program> proto = read_program(stem + ".hlo.pb.gz");
  REQUIRE(text.ok());
  REQUIRE_MESSAGE(proto.ok(), (proto.ok() ? "" : to_text(proto.error())));
  const std::set<std::string_view> not_read = {"sharding", "origin"};
  CHECK(testing::first_difference(describe(*text, not_read), describe(*proto, not_read)) == "");
  CHECK(text->has_explicit_elements == proto->has_explicit_elements);
  CHECK(text->xla_assignment == nullptr);
  CHECK(proto->xla_assignment != nullptr);
}

}  // namespace
}  // namespace spillway
