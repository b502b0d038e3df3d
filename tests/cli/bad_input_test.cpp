// Files that are no program, no sidecar or no profile: one message that says where, exit code 3,
// and nothing on stdout, whichever command reads them.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::Run;
using testing::run_spillway;
using testing::TemporaryFolder;

constexpr const char* kKeep = "examples/jax/dumps/keep";

void check_refused(const std::string& arguments, const std::string& message) {
  testing::check_refused(arguments, 3, message);
}

std::string entry(const std::string& line) {
  return "HloModule toy, is_scheduled=true\nENTRY %m {\n" + line + "}\n";
}

/// The first bytes of a packed dump.
std::string cut_dump(std::size_t size) {
  return testing::read_text(
             testing::source_path("examples/jax/dumps/keep/jit_train_step.sm_10.0a_gpu_"
                                  "after_optimizations.txt.gz"))
      .substr(0, size);
}

TEST_CASE("what is no program is refused by every command in the same words") {
  const std::string deep(10000, '(');
  const std::string open(96, '(');
  const std::string give_text =
      "\n  give the …after_optimizations.txt that --xla_dump_hlo_as_text writes\n";
  struct Row {
    const char* name;
    std::string content;
    std::string message;  ///< behind the path
  };
  const Row rows[] = {
      {"an empty file", "", ": error: is empty\n"},
      {"rubbish", std::string("\x00\x01\x02\x7f\x80\xff\xfe\x00", 8),
       ": error: is binary, not HLO text" + give_text},
      {"StableHLO", "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n}\n",
       ": error: is StableHLO, which XLA has not compiled yet\n  compile with "
       "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" and give DIR\n"},
      {"a cut text", "HloModule toy\nENTRY %m {\n  %p = f32[2] parameter(0)\n  %n = f32[2] nega",
       ":4:19: error: expected '('\n   4 |   %n = f32[2] nega\n     |                   ^ the file "
       "may be cut\n"},
      {"a cut packed file", cut_dump(1000), ""},
      {"no entry", "HloModule toy\n%a {\n  ROOT %p = f32[] parameter(0)\n}\n",
       ":5:1: error: the module has no ENTRY computation\n  the file may be cut\n"},
      {"shapes beyond 64 bits", entry("  %p = f32[4294967296,4294967296] parameter(0)\n"),
       ":3:8: error: the size of a shape does not fit 64 bits\n"
       "   3 |   %p = f32[4294967296,4294967296] parameter(0)\n     |        ^\n"},
      {"a shape ten thousand deep",
       entry("  %p = " + deep + "f32[]" + std::string(10000, ')') + " parameter(0)\n"),
       ":3:72: error: a shape nests too deep\n   3 | …" + open + "…\n     | " +
           std::string(49, ' ') + "^\n"},
      {"brackets ten thousand deep, not closed",
       entry("  %p = f32[] parameter(0), odd=" + std::string(10000, '{') + "\n"), ""},
      {"an operand that is not there", entry("  %p = f32[] negate(%q)\n"),
       ":3:22: error: 'q' is not defined before it is used\n   3 |   %p = f32[] negate(%q)\n     "
       "|                      ^\n"},
      {"shapes that do not agree", entry("  %p = f32[2] parameter(0)\n  %n = f32[3] negate(%p)\n"),
       ""},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string path = folder.write("step.txt", row.content);
    const Run inspect = run_spillway("inspect " + path);
    CHECK(inspect.err.starts_with(path + ":"));
    CHECK(inspect.err.size() < 1000);
    if (row.message != "") CHECK(inspect.err == path + row.message);
    for (const char* command : {"inspect ", "inspect --json ", "simulate --hw gb200 ",
                                "plan --hw gb200 ", "plan --hw gb200 --json "})
      check_refused(command + path, inspect.err);
  }
}

TEST_CASE("brackets ten thousand deep in an attribute are read") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("step.txt", entry("  %p = f32[] parameter(0), odd=" + std::string(10000, '{') +
                                     std::string(10000, '}') + "\n"));
  CHECK(run_spillway("inspect " + path).exit_code == 0);
}

TEST_CASE("places that hold no file") {
  const TemporaryFolder folder;
  check_refused(
      "plan --hw gb200 " + folder.path("nowhere.txt"),
      folder.path("nowhere.txt") + ": error: cannot be opened: No such file or directory\n");
  check_refused("simulate --hw gb200 " + folder.path(""),
                folder.path("") +
                    ": error: holds no *after_optimizations.txt or .hlo.pb\n  dump with "
                    "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"\n");
  check_refused("inspect /dev/null",
                "/dev/null: error: is a device, not a file\n  write it to a file first\n");
}

TEST_CASE("a broken sidecar of names is refused by every command in the same words") {
  const std::string schema = R"({"schema": "spillway.names/1", )";
  const std::string list =
      " has no list 'names'\n  the names sidecar has schema spillway.names/1\n";
  struct Row {
    const char* name;
    std::string content;
    std::string message;  ///< behind the path
  };
  const Row rows[] = {
      {"an empty file", "", ": error: is empty\n"},
      {"no JSON", "{\n\"names\": [\n}",
       ":3: error: is not JSON\n  the names sidecar is written by spillway.jax.names\n"},
      {"no UTF-8", "{\"schema\": \"\xff\"}",
       ":1: error: is not JSON\n  the names sidecar is written by spillway.jax.names\n"},
      {"no object", "[]", ": error:" + list},
      {"no names", "{}", ": error:" + list},
      {"names that are no list", schema + R"("names": {}})", ": error:" + list},
      {"another schema", R"({"schema": "spillway.names/2", "names": []})",
       ": error: is not of schema spillway.names/1\n"},
      {"no devices", schema + R"("devices": 0, "names": []})",
       ": error: has damaged 'devices'\n  a whole number from 1 on\n"},
      {"an entry that is no object", schema + R"("names": [3]})",
       ": error: entry 0 is not an object\n"},
      {"a shape below zero",
       schema + R"("names": [{"name": "a", "shape": [8, -1], "dtype": "float32"}]})",
       ": error: entry 0 'a' has a damaged shape\n"},
      {"an unknown type", schema + R"("names": [{"name": "a", "shape": [8], "dtype": "f9"}]})",
       ": error: entry 0 'a' has no known dtype\n"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string path = folder.write("names.json", row.content);
    for (const char* command : {"inspect ", "plan --hw gb200 "})
      check_refused(std::string(command) + kKeep + " --names " + path, path + row.message);
  }
  check_refused(std::string("plan --hw gb200 ") + kKeep + " --names " + folder.path("no.json"),
                folder.path("no.json") + ": error: cannot be opened: No such file or directory\n");
}

TEST_CASE("a machine on which the step would take for ever is no bug of ours") {
  const TemporaryFolder folder;
  std::string slow = testing::read_text(testing::source_path("hw_profiles/gb200.yaml"));
  const std::string rate = "host_to_device: {value: \"200.7 GB/s\"";
  slow.replace(slow.find(rate), rate.size(), "host_to_device: {value: \"1 kB/s\"");
  const std::string path = folder.write("slow.yaml", slow);
  for (const std::string command : {"simulate ", "plan "}) {
    CAPTURE(command);
    const Run run = run_spillway(command + "examples/jax/dumps/offload_all --hw " + path);
    CHECK(run.exit_code == 3);
    CHECK(run.out == "");
    CHECK(run.err.find(" cannot be simulated: task ") != std::string::npos);
    CHECK(run.err.find("is a rate of the machine far too low") != std::string::npos);
  }
}

TEST_CASE("a broken profile is refused where it is broken") {
  const TemporaryFolder folder;
  std::string gb200 = testing::read_text(testing::source_path("hw_profiles/gb200.yaml"));
  const std::string key = "hbm_capacity:";
  gb200.insert(gb200.find(key), "colour: blue\n  ");
  const std::string path = folder.write("mine.yaml", gb200);
  for (const std::string command : {"simulate", "plan"}) {
    CAPTURE(command);
    const Run run = run_spillway(command + " " + kKeep + " --hw " + path);
    CHECK(run.exit_code == 3);
    CHECK(run.out == "");
    CHECK(run.err.starts_with(path + ":"));
    CHECK(run.err.find(": error: ") != std::string::npos);
    CHECK(run.err.find("| "
                       "  colour: blue\n") != std::string::npos);
    check_refused(
        command + " " + kKeep + " --hw " + folder.path("no.yaml"),
        folder.path("no.yaml") + ": error: cannot be opened: No such file or directory\n");
  }
}

}  // namespace
}  // namespace spillway
