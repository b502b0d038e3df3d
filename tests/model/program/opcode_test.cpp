#include "model/program/opcode.h"

#include <doctest/doctest.h>

#include <string>

namespace spillway {
namespace {

constexpr std::size_t kOpcodes = static_cast<std::size_t>(Opcode::kUnknown);

TEST_CASE("every opcode is found by its name") {
  for (std::size_t i = 0; i < kOpcodes; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    CAPTURE(opcode_name(opcode));
    CHECK(find_opcode(opcode_name(opcode)) == opcode);
  }
  CHECK(opcode_name(Opcode::kDynamicUpdateSlice) == "dynamic-update-slice");
  CHECK(opcode_name(Opcode::kUnknown) == "unknown");
}

TEST_CASE("other names are unknown") {
  for (const char* name : {"", "a", "ad", "adds", "Add", "unknown", "dynamic_slice", "add ", "-"})
    CHECK(find_opcode(name) == Opcode::kUnknown);
  CHECK(find_opcode(std::string(100000, 'x')) == Opcode::kUnknown);
}

TEST_CASE("kinds of opcodes") {
  struct Row {
    std::string name;
    bool elementwise, collective, start, done;
  };
  const Row rows[] = {
      {"add", true, false, false, false},
      {"copy", true, false, false, false},
      {"select", true, false, false, false},
      {"fusion", false, false, false, false},
      {"dynamic-update-slice", false, false, false, false},
      {"all-gather", false, true, false, false},
      {"reduce-scatter", false, true, false, false},
      {"all-gather-start", false, false, true, false},
      {"copy-start", false, false, true, false},
      {"send", false, false, true, false},
      {"async-start", false, false, true, false},
      {"async-update", false, false, false, false},
      {"async-done", false, false, false, true},
      {"recv-done", false, false, false, true},
      {"copy-done", false, false, false, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Opcode opcode = find_opcode(row.name);
    CHECK(is_elementwise(opcode) == row.elementwise);
    CHECK(is_collective(opcode) == row.collective);
    CHECK(is_async_start(opcode) == row.start);
    CHECK(is_async_done(opcode) == row.done);
  }
}

TEST_CASE("which opcodes run what they call") {
  for (std::size_t i = 0; i <= kOpcodes; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const std::string_view name = opcode_name(opcode);
    CAPTURE(name);
    const bool controls = name == "while" || name == "call" || name == "conditional";
    CHECK(is_control_flow(opcode) == controls);
    CHECK(runs_what_it_calls(opcode) == (controls || name == "async-start"));
    CHECK(is_renaming(opcode) == (name == "bitcast" || name == "reshape"));
  }
}

}  // namespace
}  // namespace spillway
