#include "model/hlo/read_program.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/gzip.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::gzip;
using testing::TemporaryFolder;

std::string module_text(const std::string& name, int instructions = 1) {
  std::string text = "HloModule " + name + "\nENTRY %main {\n  %x0 = f32[] parameter(0)\n";
  for (int i = 1; i < instructions; ++i)
    text += "  %x" + std::to_string(i) + " = f32[] negate(%x" + std::to_string(i - 1) + ")\n";
  return text + "}\n";
}

/// The name of the module, or the message.
std::string name_of(const std::string& path) {
  const Result<Program> program = read_program(path);
  return program.ok() ? program->name : to_text(program.error());
}

TEST_CASE("a file") {
  const TemporaryFolder folder;
  const std::string path = folder.write("any_name", module_text("toy"));
  CHECK(name_of(path) == "toy");
  CHECK(read_program(path)->path == path);
}

TEST_CASE("of a folder, the training step is picked") {
  const TemporaryFolder folder;
  folder.write("module_0001.jit_init.sm_9.0_gpu_after_optimizations.txt", module_text("init", 9));
  CHECK(name_of(folder.path("")) == "init");
  folder.write("module_0002.jit_eval_step.sm_9.0_gpu_after_optimizations.txt",
               module_text("eval", 2));
  CHECK(name_of(folder.path("")) == "eval");  // a step before what is larger
  const std::string step = folder.write("module_0003.jit_step.sm_9.0_gpu_after_optimizations.txt",
                                        module_text("step", 3));
  CHECK(name_of(folder.path("")) == "step");  // of two steps the larger
  const std::string train = folder.write(
      "module_0004.jit_train_step.sm_9.0_gpu_after_optimizations.txt", module_text("train"));
  CHECK(name_of(folder.path("")) == "train");  // a training step before all
  CHECK(read_program(folder.path(""))->path == train);
  CHECK(read_program(folder.path(""))->modules_in_folder == 4);
  CHECK(read_program(train)->modules_in_folder == 1);
  // Neither other files of the dump, nor earlier stages, nor folders are taken.
  folder.write("module_0004.jit_train_step.before_optimizations.txt", module_text("before", 99));
  folder.write("jit_train_step.after_optimizations-buffer-assignment.txt", "BufferAssignment:");
  std::filesystem::create_directory(folder.path("jit_train_step.after_optimizations.txt"));
  CHECK(name_of(folder.path("")) == "train");
}

TEST_CASE("folders without a program") {
  const TemporaryFolder folder;
  const std::string advice = "\n  dump with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"";
  CHECK(name_of(folder.path("")) ==
        folder.path("") + ": error: holds no *after_optimizations.txt or .hlo.pb" + advice);
  folder.write("jit_train_step.before_optimizations.hlo.pb", "x");
  CHECK(name_of(folder.path("")) ==
        folder.path("") + ": error: holds no *after_optimizations.txt or .hlo.pb" + advice);
}

TEST_CASE("an error names the file that was picked") {
  const TemporaryFolder folder;
  const std::string path = folder.write("jit_step.after_optimizations.txt", "");
  CHECK(name_of(folder.path("")) == path + ": error: is empty");
}

TEST_CASE("other files of a dump are named for what they are, packed or not") {
  struct Row {
    std::string file, content, expected;
  };
  const std::string advice =
      "\n  give the …after_optimizations.txt that --xla_dump_hlo_as_text writes";
  const Row rows[] = {
      {"a.after_optimizations.hlo.pb", "Failed to serialize HLO module proto.",
       "holds XLA's message that the module is too large to be written as a proto, not the module"},
      {"a.after_optimizations-buffer-assignment.txt", "BufferAssignment:\nallocation 0: size 8",
       "is XLA's buffer assignment, not the program"},
      {"a.after_optimizations-live-range.txt", "HloLiveRange (max 7):\n  InstructionSequence:\n",
       "is XLA's list of live ranges, not the program"},
      {"a.after_optimizations-live-range.txt", "HloLiveRange not available (no schedule)",
       "is XLA's list of live ranges, not the program"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.content);
    const std::string path = folder.write(row.file, row.content);
    CHECK(name_of(path) == path + ": error: " + row.expected + advice);
    const std::string packed = folder.write(row.file + ".gz", gzip(row.content));
    CHECK(name_of(packed) == packed + ": error: " + row.expected + advice);
  }
  CHECK(name_of(folder.write("b.txt", gzip(module_text("by_its_bytes")))) == "by_its_bytes");
  CHECK(name_of(folder.write("c.txt.gz", module_text("not_packed"))) == "not_packed");
}

TEST_CASE("a text that is no program is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.txt",
      "HloModule toy\nENTRY %m {\n  %a = f32[2] parameter(0)\n  %b = f32[3] negate(%a)\n}\n");
  CHECK(name_of(path) == path +
                             ":4:4: error: negate 'b' works element by element, but makes f32[3] "
                             "and operand 0 is f32[2]\n"
                             "   4 |   %b = f32[3] negate(%a)\n"
                             "     |    ^ the file may be damaged");
}

}  // namespace
}  // namespace spillway
