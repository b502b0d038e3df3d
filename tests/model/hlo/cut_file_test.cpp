// A real dump, cut at many places: always one message, which says so.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "model/base/read_file.h"
#include "model/hlo/read_program.h"
#include "model/hlo/text_reader.h"
#include "tests/golden.h"

namespace spillway {
namespace {

const std::string kDump = testing::source_path(
    "examples/jax/dumps/offload_qkv/"
    "jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz");

std::string message_of_cut(const std::string& text, std::size_t size) {
  const auto cut = std::make_shared<const std::string>(text.substr(0, size));
  const Result<Program> program = hlo::read_hlo_text(cut, "cut.txt");
  if (program.ok()) return "no error";
  return to_text(program.error());
}

TEST_CASE("a text cut anywhere is an error that says so") {
  const auto text = read_file(kDump);
  REQUIRE(text.ok());
  // Every place in the first and last five hundred bytes, and many between them.
  for (std::size_t size = 1; size + 2 < (*text)->size();
       size += size < 500 || size + 500 > (*text)->size() ? 1 : 1997) {
    const std::string message = message_of_cut(**text, size);
    CAPTURE(size);
    CAPTURE(message);
    const bool in_first_word = size < std::string_view("HloModule").size();
    CHECK(message.ends_with("the file may be cut") != in_first_word);
    CHECK(message.starts_with("cut.txt:"));
    CHECK(message.size() < 1000);
  }
}

TEST_CASE("a packed file cut anywhere is an error that says so") {
  const std::string packed = testing::read_text(kDump);
  const std::string path =
      (std::filesystem::temp_directory_path() / "spillway_cut_test.txt.gz").string();
  for (std::size_t size = 2; size < packed.size(); size += size < 100 ? 1 : 4999) {
    std::ofstream(path, std::ios::binary) << packed.substr(0, size);
    const Result<Program> program = read_program(path);
    REQUIRE_FALSE(program.ok());
    CHECK(
        to_text(program.error()).starts_with(path + ": error: is cut: its gzip data ends after "));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace spillway
