// Inputs that are deep or long: no recursion, no time or memory out of proportion.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

#include "model/hlo/text_reader.h"
#include "model/program/validate.h"

namespace spillway {
namespace {

std::string outcome(std::string text) {
  const Result<Program> program =
      hlo::read_hlo_text(std::make_shared<const std::string>(std::move(text)), "x");
  if (!program.ok()) return program.error().text;
  const auto unsound = validate(*program);
  return unsound ? unsound->text : "sound";
}

std::string entry(const std::string& instructions) {
  return "HloModule toy, is_scheduled=true\nENTRY %main {\n" + instructions + "}\n";
}

std::string repeat(std::string_view piece, int times) {
  std::string text;
  text.reserve(piece.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST_CASE("nesting of ten thousand and more") {
  CHECK(outcome(entry("  %p = " + repeat("(", 10000) + "f32[]" + repeat(")", 10000) +
                      " parameter(0)\n")) == "a shape nests too deep");
  CHECK(outcome(entry("  %p = f32[] parameter(0), odd=" + repeat("{[(", 10000) +
                      repeat(")]}", 10000) + "\n")) == "sound");
  CHECK(outcome(entry("  %p = f32[] constant(" + repeat("{", 100000) + "1" + repeat("}", 100000) +
                      ")\n")) == "sound");
  CHECK(outcome(entry("  %p = f32[] parameter(0), odd=" + repeat("{", 1000000) + "\n")) ==
        "a bracket is not closed");
  CHECK(outcome("HloModule toy, odd=" + repeat("{", 100000) + repeat("}", 100000) + "\n" +
                "ENTRY %m (p: " + repeat("(", 100000) + repeat(")", 100000) +
                ") -> f32[] {\n  %p = f32[] parameter(0)\n}\n") == "sound");
}

TEST_CASE("a million instructions, each reading the one before") {
  std::string text = "  %x0 = f32[8]{0} parameter(0)\n";
  for (int i = 1; i < 1000000; ++i)
    text += "  %x" + std::to_string(i) + " = f32[8]{0} negate(%x" + std::to_string(i - 1) + ")\n";
  CHECK(outcome(entry(text)) == "sound");
}

TEST_CASE("ten thousand calls deep") {
  std::string text = "HloModule toy\n%c0 {\n  ROOT %p = s32[] parameter(0)\n}\n";
  for (int i = 1; i < 10000; ++i)
    text += "%c" + std::to_string(i) +
            " {\n  %p = s32[] parameter(0)\n  ROOT %c = s32[] call(%p), "
            "to_apply=%c" +
            std::to_string(i - 1) + "\n}\n";
  CHECK(outcome(text + "ENTRY %m {\n  %p = s32[] parameter(0)\n}\n") ==
        "computation 'c257' nests calls more than 256 deep");
}

TEST_CASE("a wide tuple, every element read") {
  constexpr int kWidth = 50000;
  std::string shape = "(f32[]";
  for (int i = 1; i < kWidth; ++i) shape += ", f32[]";
  std::string text = "  %t = " + shape + ") parameter(0)\n  %r = " + shape + ") tuple(%t#0";
  for (int i = 1; i < kWidth; ++i) text += ", %t#" + std::to_string(i);
  CHECK(outcome(entry(text + ")\n")) == "sound");
}

TEST_CASE("many names, many attributes, many operands") {
  std::string text = "  %p = f32[] parameter(0)\n  %c = f32[] custom-call(%p";
  for (int i = 0; i < 100000; ++i) text += ", %p";
  text += "), custom_call_target=\"x\"";
  for (int i = 0; i < 100000; ++i)
    text += ", a" + std::to_string(i) + "={" + std::to_string(i) + "}";
  CHECK(outcome(entry(text + "\n")) == "sound");
}

TEST_CASE("numbers that ask for very much") {
  CHECK(outcome(entry("  %p = f32[] parameter(999999999)\n")) ==
        "parameter 0 of 'main' is missing");
  CHECK(outcome(entry("  %p = f32[1000000000,1000000000] parameter(0)\n")) ==
        "the size of a shape does not fit 64 bits");
  CHECK(
      outcome(entry("  %p = s8[1000000000,1000000000] parameter(0)\n"
                    "  %n = s8[1000000000,1000000000] negate(%p)\n")) ==
      "computation 'main' runs 1 time(s) a step with 3e+18 bytes of arrays: more than can be added "
      "up");
  CHECK(outcome("HloModule toy, input_output_alias={ {99999999999}: (0, {}) }\n"
                "ENTRY %m {\n  %p = f32[] parameter(0)\n}\n") ==
        "input_output_alias names a result that does not exist");
}

}  // namespace
}  // namespace spillway
