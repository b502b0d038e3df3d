// capacity on the command line: what it reads, refuses and writes, in one run and in parts.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/run/sqlite_file.h"
#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_refused;
using testing::read_text;
using testing::Run;
using testing::run_spillway;

const std::string kQuestion =
    "capacity llama3.1-8b gemma-2b --hw gb200,h100 --devices 8,12,64 --batch 0.5,1,16 "
    "--seq 2048,8192 --offload-state";

TEST_CASE("the parts put together are the answer of one run, in every form") {
  const testing::TemporaryFolder folder;
  const auto forms = [&](const std::string& name) {
    return " --html " + folder.path(name + ".html") + " --csv " + folder.path(name + ".csv") +
           " --sqlite " + folder.path(name + ".sqlite") + " --markdown " +
           folder.path(name + ".md");
  };
  const Run whole = run_spillway(kQuestion + " --json" + forms("whole"));
  CHECK(whole.exit_code == 0);
  CHECK(whole.err == "");
  for (const int count : {1, 2, 5, 80}) {  // of 72 cells: some parts are empty
    CAPTURE(count);
    std::string files;
    for (int index = count; index >= 1; --index) {
      const std::string path = folder.path("part" + std::to_string(index));
      const Run part = run_spillway(kQuestion + " --json --shard " + std::to_string(index) + "/" +
                                    std::to_string(count));
      REQUIRE(part.exit_code == 0);
      std::ofstream(path) << part.out;
      files += " " + path;
    }
    const Run merged = run_spillway("merge" + files + forms("merged"));
    CHECK(merged.exit_code == 0);
    CHECK(merged.out == whole.out);
    for (const std::string form : {".html", ".csv", ".sqlite", ".md"}) {
      CAPTURE(form);
      CHECK(read_text(folder.path("merged" + form)) == read_text(folder.path("whole" + form)));
    }
  }
}

TEST_CASE("parts of grids with other values are refused") {
  const testing::TemporaryFolder folder;
  const std::string grid = "capacity llama3.1-8b --hw gb200 --devices 8,16 --batch 1 --json ";
  const auto make = [&](const std::string& command, const std::string& file) {
    const Run part = run_spillway(command);
    REQUIRE(part.exit_code == 0);
    return folder.write(file, part.out);
  };
  const std::string first = make(grid + "--seq 4096 --shard 1/2", "first");
  const std::string second = make(grid + "--seq 8192 --shard 2/2", "second");
  check_refused("merge " + first + " " + second, 3,
                second + ": error: answers another question than '" + first +
                    "'\n  all parts need the same files and options, in the same order\n");
  std::string broken = read_text(first);
  broken.replace(broken.find("\"step_seconds\": ") + 16, 1, "\"abc\", \"other\": 1");
  const std::string damaged = folder.write("damaged", broken);
  check_refused("merge " + damaged + " " + make(grid + "--seq 4096 --shard 2/2", "second"), 3,
                damaged + ": error: is no answer of capacity\n  make it with capacity --json\n");
}

TEST_CASE("all forms hold the same cells") {
  const testing::TemporaryFolder folder;
  const Run run = run_spillway(kQuestion + " --json --csv " + folder.path("a.csv") + " --sqlite " +
                               folder.path("a.sqlite"));
  const auto json = nlohmann::json::parse(run.out);
  REQUIRE(json["cells"].size() == 72);
  CHECK(json["schema"] == "spillway.capacity/1");
  for (const char* key : {"machines", "needs", "answers", "assumptions"}) CHECK(json.contains(key));
  const auto file = SqliteFile::open(folder.path("a.sqlite"));
  REQUIRE(file.ok());
  std::size_t at = 0;
  CHECK_FALSE(
      file->each("SELECT hbm_bytes, policy, impossible FROM cells", [&](const SqliteRow& row) {
        const auto& cell = json["cells"][at++];
        if (cell.contains("impossible")) {
          CHECK(row.text(2) == cell["impossible"].get<std::string>());
        } else {
          CHECK(row.integer(0) == cell["hbm_bytes"].get<std::int64_t>());
          CHECK(row.text(1) == cell["policy"].get<std::string>());
        }
      }));
  CHECK(at == 72);
  const std::string csv = read_text(folder.path("a.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 73);
}

TEST_CASE("a YAML says what the command line does not") {
  const testing::TemporaryFolder folder;
  const std::string run =
      folder.write("tp.yml",
                   "model_name: llama3.1-8b\nici_tensor_parallelism: 2\nici_fsdp_parallelism: -1\n"
                   "per_device_batch_size: 2\nmax_target_length: 4096\nremat_policy: minimal\n");
  const Run as_given =
      run_spillway("capacity " + run + " --hw gb200 --devices 8 --policy configured --json");
  const auto given = nlohmann::json::parse(as_given.out)["cells"][0];
  CHECK(given["model"] == "tp");
  CHECK(given["batch_sequences_per_device"] == 2);
  CHECK(given["sequence_tokens"] == 4096);
  CHECK(given["policy"] == "configured");
  // The same run said on the command line.
  const std::string other = folder.write("other.yml",
                                         "model_name: llama3.1-8b\nici_tensor_parallelism: 2\n"
                                         "ici_fsdp_parallelism: -1\n");
  const Run said = run_spillway("capacity " + other +
                                " --hw gb200 --devices 8 --batch 2 --seq 4096 --policy minimal "
                                "--json");
  const auto cell = nlohmann::json::parse(said.out)["cells"][0];
  CHECK(cell["step_seconds"] == given["step_seconds"]);
  CHECK(cell["hbm_bytes"] == given["hbm_bytes"]);
  // And of a model by its name, with the settings of the run in a file.
  const std::string settings =
      folder.write("settings.yml", "ici_tensor_parallelism: 2\nici_fsdp_parallelism: -1\n");
  const Run named = run_spillway("capacity llama3.1-8b --settings " + settings +
                                 " --hw gb200 --devices 8 --batch 2 --seq 4096 --policy minimal "
                                 "--json");
  CHECK(nlohmann::json::parse(named.out)["cells"][0]["step_seconds"] == given["step_seconds"]);
}

TEST_CASE("a config.json is a model, too") {
  const Run run = run_spillway(
      "capacity examples/models/qwen3-8b.json --hw gb200 --devices 8 --batch 1 --seq 4096 --json");
  CHECK(run.exit_code == 0);
  const auto cell = nlohmann::json::parse(run.out)["cells"][0];
  CHECK(cell["model"] == "qwen3-8b");
  const Run named =
      run_spillway("capacity qwen3-8b --hw gb200 --devices 8 --batch 1 --seq 4096 --json");
  CHECK(nlohmann::json::parse(named.out)["cells"][0] == cell);
  check_refused("capacity examples/models/qwen3-8b.json --hw gb200 --devices 8 --batch 1", 2,
                "error: nothing says how long the sequences of qwen3-8b are\n  for example --seq "
                "4096,8192\n");
}

TEST_CASE("nothing fits is an answer, and the answer is no") {
  const Run run = run_spillway("capacity llama3.1-405b --hw h100 --devices 8 --batch 1 --seq 8192");
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("Nothing fits.") != std::string::npos);
  CHECK(run.err == "");
  CHECK(run_spillway("capacity llama3.1-405b --hw h100 --devices 8 --batch 1 --seq 8192 --json")
            .exit_code == 1);
}

TEST_CASE("mistakes have one message and a code") {
  const testing::TemporaryFolder folder;
  const std::string no_size = folder.write("a.yml", "model_name: llama3.1-8b\nhead_dim: x\n");
  const std::string where = "capacity llama3.1-8b --hw gb200 --devices 8 ";
  struct Row {
    std::string arguments;
    int exit_code;
    std::string message;
  };
  const Row rows[] = {
      {where + "--seq 8192", 2,
       "error: nothing says how many sequences of llama3.1-8b a device takes\n  for example "
       "--batch 1,2,4\n"},
      {where + "--batch 1", 2,
       "error: nothing says how long the sequences of llama3.1-8b are\n  for example --seq "
       "4096,8192\n"},
      {where + "--batch 1 --seq 8192 --policy most", 2,
       "error: there is no remat_policy 'most'\n  known are configured, full, save_out_proj, "
       "save_qkv_proj, save_dot_except_mlp, save_dot_with_context_except_mlp, "
       "save_dot_except_mlpwi, minimal, minimal_with_context, minimal_flash, "
       "minimal_with_quantization, minimal_with_context_and_quantization, qkv_proj_offloaded, "
       "minimal_offloaded\n"},
      {where + "--batch 1,1 --seq 8192", 2,
       "error: --batch has a value twice\n  each makes cells of its own\n"},
      {where + "--batch 0 --seq 8192", 2,
       "error: --batch must be above zero\n  for example --batch 1,2,4\n"},
      {where + "--batch 1 --seq 8192 --shard 1/2", 2,
       "error: parts of an answer are for merge, which reads JSON\n  give --json alone; merge "
       "writes the other forms\n"},
      {where + "--batch 1 --seq 8192 --largest-block 1GiB", 2,
       "error: --largest-block needs a program\n  a configuration has no order of arrays\n"},
      {"capacity nowhere.yml --hw gb200 --devices 8", 3,
       "nowhere.yml: error: cannot be opened: No such file or directory\n"},
      {"capacity " + no_size + " --settings " + no_size + " --hw gb200 --devices 8", 2,
       "error: --settings is for models that say nothing of a run\n  '" + no_size +
           "' says it all itself\n"},
      {"capacity llama3.1-8b --hw gb201 --devices 8 --batch 1 --seq 8192", 2,
       "error: no hardware profile is called 'gb201'\n  did you mean 'gb200'? known are a100, "
       "b200, gb200, gb300, gh200, h100, h200, rtxpro6000, vr200; or give a path to a .yaml "
       "file\n"},
      {"merge " + no_size + " --csv " + no_size, 2,
       "error: --csv '" + no_size + "' is the file that is read as '" + no_size +
           "', and would be overwritten\n  give it another name\n"},
  };
  for (const Row& row : rows) check_refused(row.arguments, row.exit_code, row.message);
}

}  // namespace
}  // namespace spillway
