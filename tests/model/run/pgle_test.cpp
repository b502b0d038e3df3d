#include "model/run/pgle.h"

#include <doctest/doctest.h>

#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// "a 1.5; b 2; a>b 3"
std::string describe(const ProfiledInstructions& profile) {
  std::string text;
  const auto add = [&](const std::string& name, double us) {
    const std::string number = std::to_string(us);
    text += (text.empty() ? "" : "; ") + name + " " + number.substr(0, number.find('.') + 2);
  };
  for (const auto& [name, us] : profile.cost_us) add(name, us);
  for (const auto& [names, us] : profile.latency_us) add(names.first + ">" + names.second, us);
  return text;
}

std::string parse(std::string_view text, std::string_view fingerprint = "") {
  const auto profile = parse_pgle(text, "step.pbtxt", fingerprint);
  return profile.ok() ? describe(*profile) : to_text(profile.error());
}

TEST_CASE("what XLA takes from a profile") {
  struct Row {
    const char* name;
    const char* text;
    const char* fingerprint;
    const char* expected;
  };
  const Row rows[] = {
      {"costs and latencies, on one line or on several",
       "costs { name: \"a\" cost_us: 1.5 }\ncosts {\n  name: \"b\"\n  cost_us: 2\n}\n"
       "latencies { source: \"a\" target: \"b\" latency_us: 3e0 }\n",
       "", "a 1.5; b 2.0; a>b 3.0"},
      {"a backslash stands before what would end the name",
       R"(costs { name: "a\"b\\c" cost_us: 1 })", "", R"(a"b\c 1.0)"},
      {"comments, colons and single quotes are protobuf, too",
       "# made by hand\ncosts: < name: 'a', cost_us: 1 >\n", "", "a 1.0"},
      {"the last of two costs counts",
       "costs { name: \"a\" cost_us: 1 } costs { name: \"a\" cost_us: 4 }", "", "a 4.0"},
      {"only this module's, and those of none",
       "costs { name: \"f1::a\" cost_us: 1 } costs { name: \"f2::b\" cost_us: 2 } "
       "costs { name: \"c\" cost_us: 3 } costs { name: \"f1::x::y\" cost_us: 4 }",
       "f1", "a 1.0; c 3.0"},
      {"clones are averaged into what they were cloned from; latencies are lost",
       "costs { name: \"a\" cost_us: 1 } costs { name: \"a.remat\" cost_us: 3 } "
       "costs { name: \"a.remat2\" cost_us: 5 } costs { name: \"b.rematx\" cost_us: 7 } "
       "latencies { source: \"a\" target: \"b\" latency_us: 9 }",
       "", "a 3.0; b.rematx 7.0"},
      {"an empty file is an empty profile", "  \n", "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(parse(row.text, row.fingerprint) == row.expected);
  }
}

TEST_CASE("the wire format says the same") {
  using namespace std::string_literals;
  const std::string wire =
      "\x0a\x0c\x0a\x01"
      "a\x11\0\0\0\0\0\0\xf8\x3f"s  // costs { a 1.5 }
      "\x12\x0f\x0a\x01"
      "a\x12\x01"
      "b\x19\0\0\0\0\0\0\x08\x40"s  // latencies { a b 3 }
      "\x18\x07"s;                  // a field that is not known
  const auto read = parse_pgle(wire, "step.pb");
  REQUIRE(read.ok());
  CHECK(describe(*read) == "a 1.5; a>b 3.0");
  CHECK(describe(parse_pgle(wire, "step").value()) == "a 1.5; a>b 3.0");  // by its bytes
}

TEST_CASE("what is wrong with a profile, and where") {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"costs { nam: \"a\" }",
       "step.pbtxt:1:9: error: a profile has no field 'nam'\n   1 | costs { nam: \"a\" }\n"
       "     |         ^ name, cost_us; source, target, latency_us"},
      {"costs { name: \"a\" cost_us: fast }",
       "step.pbtxt:1:28: error: a number expected\n   1 | costs { name: \"a\" cost_us: fast }\n"
       "     |                            ^"},
      {"costs { name: \"a }",
       "step.pbtxt:1:15: error: a string without an end\n   1 | costs { name: \"a }\n"
       "     |               ^"},
      {"entry { }",
       "step.pbtxt:1:1: error: 'costs' or 'latencies' expected\n   1 | entry { }\n"
       "     | ^ for example: costs { name: \"fusion.1\" cost_us: 12.5 }"},
      {"costs { name: \"a\"",
       "step.pbtxt:1:18: error: a field with a ':' expected\n   1 | costs { name: \"a\"\n"
       "     |                  ^"},
  };
  for (const Row& row : rows) CHECK(parse(row.text) == row.expected);
}

TEST_CASE("by its name a profile is text or binary, as to XLA") {
  const std::string text = "costs { name: \"a\" cost_us: 1 }";
  CHECK(describe(parse_pgle(text, "step").value()) == "a 1.0");
  const auto wrong = parse_pgle(text, "step.pb");
  REQUIRE_FALSE(wrong.ok());
  CHECK(
      to_text(wrong.error()) ==
      "step.pb: error: no profile in protobuf's wire format\n  XLA reads a .pb so; text goes into "
      "a .pbtxt");
}

TEST_CASE("instructions go by the name they had when XLA scheduled them") {
  const Program program = testing::read_entry(R"(
  %a = f32[2]{0} parameter(0)
  %renamed = f32[2]{0} negate(%a), metadata={op_name="f" scheduling_name="old.1"}
  %kept = f32[2]{0} negate(%renamed)
  %moved = f32[2]{0} copy(%kept), metadata={scheduling_name="get-tuple-element.4"}
  %fusion.2.remat3 = f32[2]{0} negate(%moved), metadata={scheduling_name="fusion.2"}
  ROOT %fusion.7.remat = f32[2]{0} negate(%fusion.2.remat3)
)");
  const Computation& entry = program.entry_computation();
  CHECK(scheduling_name(entry, InstructionIndex(1)) == "old.1");
  CHECK(scheduling_name(entry, InstructionIndex(2)) == "kept");
  CHECK(scheduling_name(entry, InstructionIndex(3)) == "moved");  // the name is of what was there
  CHECK(scheduling_name(entry, InstructionIndex(4)) == "fusion.2");
  CHECK(scheduling_name(entry, InstructionIndex(5)) == "fusion.7");  // what it was cloned from
}

}  // namespace
}  // namespace spillway
