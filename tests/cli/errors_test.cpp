// What goes wrong on the command line: nothing on stdout, one message, the right exit code.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/cli/run.h"
#include "tests/golden.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::check_refused;
using testing::Run;
using testing::run_spillway;

TEST_CASE("mistakes have one message and a code") {
  struct Row {
    const char* arguments;
    int exit_code;
    std::string_view message;
  };
  const Row rows[] = {
      {"", 2, "A subcommand is required\nRun with --help for more information.\n"},
      {"inspect", 2, "PROGRAM is required\nRun with --help for more information.\n"},
      {"inspect README.md --colour", 2,
       "The following argument was not expected: --colour\nRun with --help for more "
       "information.\n"},
      {"simulate examples/jax/dumps/keep", 2,
       "--hw is required\nRun with --help for more information.\n"},
      {"inspect examples/jax/dumps/keep --jaxlib newest", 2,
       "error: --jaxlib 'newest' is no version\n  for example --jaxlib 0.12.0.1\n"},
      {"inspect examples/jax/dumps/keep --hbm-limit 60GiB", 2,
       "--hbm-limit requires --hw\nRun with --help for more information.\n"},
      {"inspect nowhere.txt", 3,
       "nowhere.txt: error: cannot be opened: No such file or directory\n"},
      {"inspect README.md", 3,
       "README.md:1:1: error: expected 'HloModule'\n   1 | # Spillway\n     | ^ this does not look "
       "like HLO text\n"},
      {"inspect docs", 3,
       "docs: error: holds no *after_optimizations.txt or .hlo.pb\n  dump with "
       "XLA_FLAGS=\"--xla_dump_to=DIR "
       "--xla_dump_hlo_as_text\"\n"},
      {"inspect examples/jax/dumps/keep --names README.md", 3,
       "README.md:1: error: is not JSON\n  the names sidecar is written by spillway.jax.names\n"},
      {"simulate examples/jax/dumps/keep --hw gb200 --topology 3", 2,
       "error: --topology '3' is not hosts x GPUs\n  for example --topology 32x4\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --batch 4", 2,
       "error: --batch needs a second dump, of another batch\n  for example --second DUMP "
       "--batch-of-dumps 1,2\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --second examples/jax/dumps/keep", 2,
       "error: --second is there for --batch or --seq\n  for example --second DUMP "
       "--batch-of-dumps 1,2 --batch 4\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --second examples/jax/dumps/keep --seq 4096 "
       "--seq-of-dumps 8192",
       2,
       "error: --seq-of-dumps must say how large it is in PROGRAM and in --second\n  for example "
       "--seq-of-dumps 1,2\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --second examples/jax/dumps/keep "
       "--batch-of-dumps 1,2",
       2, "error: --second is there for a batch to ask about\n  for example --batch 4\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --second examples/jax/dumps/keep "
       "--batch-of-dumps 1,2 --batch 4 --seq 4096",
       2,
       "error: two dumps differ in batch or in sequence, not in both\n  first one, then the "
       "other\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --second examples/jax/dumps/keep "
       "--batch-of-dumps 1,2 --batch 4",
       3,
       "examples/jax/dumps/keep/jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz: error: has "
       "arguments of the same sizes as the first program\n  two dumps that differ in batch\n"},
      {"whatif examples/jax/dumps/keep --hw gb200 --accumulation 4", 3,
       "examples/jax/dumps/keep/jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz: error: has "
       "no loop around forward and backward, so that it does not accumulate gradients\n  compile "
       "the step with two micro batches or more, scanned; a batch without accumulation is "
       "--batch\n"},
      {"flags --jaxlib newest", 2,
       "error: --jaxlib 'newest' is no version\n  for example --jaxlib 0.12.0.1\n"},
      {"flags --jaxlib 0.4.20", 2,
       "error: jaxlib 0.4.20 is not known here: it is older than 0.4.31\n  known are "
       "0.4.31 to 0.12.0.1\n"},
      {"flags --xla_gpu_graph_levl", 2,
       "The following argument was not expected: --xla_gpu_graph_levl\nRun with --help for more "
       "information.\n"},
      {"flags xla_gpu_graph_levl", 2,
       "error: no jaxlib from 0.4.31 to 0.12.0.1 knows a flag 'xla_gpu_graph_levl', or one "
       "with that in its name\n  did you mean 'xla_gpu_graph_level'?\n"},
      {"simulate examples/jax/dumps/keep --hw gb200 --jaxlib 0.13.0", 2,
       "error: jaxlib 0.13.0 is not known here: it is newer than 0.12.0.1\n  known are 0.4.31 to "
       "0.12.0.1\n"},
      {"inspect examples/jax/dumps/keep --jaxlib 0.13.0", 2,
       "error: jaxlib 0.13.0 is not known here: it is newer than 0.12.0.1\n  known are 0.4.31 to "
       "0.12.0.1\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --jaxlib 0.12-1", 2,
       "error: --jaxlib '0.12-1' is no version\n  for example --jaxlib 0.12.0.1\n"},
      {"flags xla_gpu_graph_level --check --xla_a=1", 2,
       "NAME excludes --check\nRun with --help for more information.\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --xla-flags nowhere", 2,
       "error: XLA would take 'nowhere' for a file of flags, and there is none\n  flags begin with "
       "two dashes: --xla_dump_to=DIR\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --hbm-limit 60", 2,
       "error: --hbm-limit '60' needs a unit\n  for example 60GiB\n"},
      {"plan examples/jax/dumps/keep --hw gb200 --hbm-limit 0GiB", 2,
       "error: --hbm-limit '0GiB' must be above zero\n  for example 60GiB\n"},
  };
  for (const Row& row : rows) check_refused(row.arguments, row.exit_code, row.message);
}

TEST_CASE("a flag that cannot be tried is refused") {
  const std::string these =
      "\n  these can: xla_gpu_enable_analytical_latency_estimator, "
      "xla_gpu_enable_analytical_sol_latency_estimator, xla_gpu_enable_latency_hiding_scheduler, "
      "xla_gpu_enable_pipelined_host_offloading, "
      "xla_gpu_experimental_collective_start_as_early_as_possible, "
      "xla_gpu_experimental_parallel_async_compute_limit, "
      "xla_gpu_experimental_parallel_collective_overlap_limit, "
      "xla_gpu_experimental_scheduler_memory_fencing_slack_windows, "
      "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes, "
      "xla_gpu_memory_limit_slop_factor, xla_gpu_pgle_profile_file_or_directory_path\n";
  struct Row {
    const char* arguments;
    std::string message;
  };
  const Row rows[] = {
      {"",
       "error: nothing is asked\n  give --set NAME=CHOICE, --flag NAME=VALUE, --batch or --seq "
       "with "
       "--second, or --accumulation\n"},
      {"--flag xla_gpu_memory_limit_slop_factor",
       "error: --flag 'xla_gpu_memory_limit_slop_factor' is not NAME=VALUE\n  for example --flag "
       "xla_gpu_enable_pipelined_host_offloading=true\n"},
      {"--flag xla_gpu_enable_latency_hidng_scheduler=true",
       "error: --flag: jaxlib 0.12.0.1 knows no flag "
       "'--xla_gpu_enable_latency_hidng_scheduler=true'.\n  Did you mean "
       "--xla_gpu_enable_latency_hiding_scheduler?\n"},
      {"--flag xla_gpu_memory_limit_slop_factor=90,95%",
       "error: --flag: --xla_gpu_memory_limit_slop_factor: '95%' is no whole number.\n  It takes a "
       "whole number.\n"},
      {"--flag xla_gpu_memory_limit_slop_factor=0",
       "error: --flag xla_gpu_memory_limit_slop_factor=0 cannot be simulated\n  it begins at 1\n"},
      {"--flag xla_gpu_autotune_level=0",
       "error: what --flag xla_gpu_autotune_level does cannot be simulated" + these},
      {"--flag xla_gpu_memory_limit_slop_factor=90 --flag xla_gpu_memory_limit_slop_factor=80",
       "error: --flag xla_gpu_memory_limit_slop_factor stands there twice\n  values to compare "
       "have "
       "commas between: --flag xla_gpu_memory_limit_slop_factor=1,2\n"},
      {"--flag xla_gpu_memory_limit_slop_factor=90 --jaxlib 0.4.20",
       "error: jaxlib 0.4.20 is not known here: it is older than 0.4.31\n  known are "
       "0.4.31 to 0.12.0.1\n"},
  };
  for (const Row& row : rows)
    check_refused(std::string("whatif examples/jax/dumps/keep --hw gb200 ") + row.arguments, 2,
                  row.message);
}

TEST_CASE("a topology is hosts x GPUs, as many as the program has devices") {
  for (const std::string text :
       {"3", "x", "8x", "x8", "0x8", "-1x-8", "2x4x", "2x4 ", "2*4", "99999999999999999999x1"}) {
    for (const char* command : {"simulate", "plan"}) {
      CAPTURE(text);
      const Run run = run_spillway(std::string(command) +
                                   " examples/jax/dumps/keep --hw gb200 '--topology=" + text + "'");
      CHECK(run.exit_code == 2);
      CHECK(run.out == "");
      CHECK(run.err == "error: --topology '" + text +
                           "' is not hosts x GPUs\n  for example --topology 32x4\n");
    }
  }
  for (const std::string text : {"1x1", "2x3", "4294967296x4294967296"}) {
    CAPTURE(text);
    const Run run = run_spillway("simulate examples/jax/dumps/keep --hw gb200 --topology " + text);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.starts_with("error: " + text + " GPUs are not the 8 of the program\n"));
  }
  CHECK(run_spillway("simulate examples/jax/dumps/keep --hw gb200 --topology 2x4").exit_code == 0);
}

TEST_CASE("a budget that is no budget is refused") {
  const std::string help = "\nRun with --help for more information.\n";
  const auto out_of_range = [&](const std::string& text) {
    return "--mem-fraction: Value " + text + " not in range 0.010000 to 1.000000" + help;
  };
  const std::string example = "\n  for example 60GiB\n";
  struct Row {
    const char* arguments;
    std::string message;
  };
  const Row rows[] = {
      {"--mem-fraction 0", out_of_range("0")},
      {"--mem-fraction -0.5", out_of_range("-0.5")},
      {"--mem-fraction 1.5", out_of_range("1.5")},
      {"--mem-fraction inf", out_of_range("inf")},
      {"--mem-fraction most", out_of_range("most")},
      {"--mem-fraction nan", "error: --mem-fraction must be a number\n  for example 0.9\n"},
      {"--mem-fraction 0.5 --hbm-limit 60GiB", "--hbm-limit excludes --mem-fraction" + help},
      {"--hbm-limit -60GiB", "error: --hbm-limit '-60GiB' must be above zero" + example},
      {"--hbm-limit 1e300GiB", "error: --hbm-limit '1e300GiB' is out of range" + example},
      {"--hbm-limit 185GiB",
       "error: --hbm-limit 185.00 GiB is above the HBM of gb200, 184.31 GiB\n  leave it out for "
       "JAX's share of the HBM, or give what the step may allocate\n"},
      {"--host-limit 200", "error: --host-limit '200' needs a unit" + example},
      {"--host-limit 0B", "error: --host-limit '0B' must be above zero" + example},
  };
  for (const Row& row : rows)
    check_refused(std::string("plan examples/jax/dumps/keep --hw gb200 ") + row.arguments, 2,
                  row.message);
}

TEST_CASE("rates that no copy has, and answers that leave out what is asked, are refused") {
  const std::string rates =
      " is no rate of copies\n  from 1 MB/s to 10 TB/s, for example 1.4GB/s\n";
  const std::string help = "\nRun with --help for more information.\n";
  struct Row {
    const char* arguments;
    std::string message;
  };
  const Row rows[] = {
      {"--pageable-copies 1e-300GB/s", "error: --pageable-copies '1e-300GB/s'" + rates},
      {"--pageable-copies 0GB/s", "error: --pageable-copies '0GB/s'" + rates},
      {"--pageable-copies 1e9GB/s", "error: --pageable-copies '1e9GB/s'" + rates},
      {"--explain q --need", "--explain excludes --need" + help},
      {"--explain q --sensitivity", "--explain excludes --sensitivity" + help},
  };
  for (const Row& row : rows)
    check_refused(std::string("plan examples/jax/dumps/keep --hw gb200 ") + row.arguments, 2,
                  row.message);
}

TEST_CASE("a name that nobody knows cannot be explained") {
  for (const std::string form : {"", " --json"}) {
    const Run run = run_spillway(
        "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 "
        "--explain mlpwi0" +
        form);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.starts_with(
        "error: --explain knows no name 'mlpwi0'\n  did you mean 'mlpwi_0'? known are "));
  }
}

TEST_CASE("a topology that is stated counts, for the hosts' memory too") {
  struct Row {
    const char* arguments;
    const char* hosts;
    bool shares;
  };
  const Row rows[] = {
      {"--hw gb200 --topology 1x8", ", 8 a host as stated (gb200 has 4), ", true},
      {"--hw gb200 --topology 2x4", ", 4 a host, ", true},
      {"--hw h100 --topology 8x1", ", 1 a host, ", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Run run =
        run_spillway(std::string("simulate examples/jax/dumps/offload_all ") + row.arguments);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find(row.hosts) != std::string::npos);
    CHECK((run.out.find("share its memory") != std::string::npos) == row.shares);
  }
}

TEST_CASE("an answer that cannot be written is none") {
  const testing::TemporaryFolder folder;
  const std::string err = folder.path("err");
  // An output opened for reading only takes no byte, on every system and for every user.
  const int status = std::system(("'" SPILLWAY_BINARY "' hw list 1<README.md 2>" + err).c_str());
  CHECK(WEXITSTATUS(status) == 74);
  CHECK(testing::read_text(err) == "error: the answer could not be written\n");
}

TEST_CASE("a path that cannot be written to is found before anything is done") {
  const testing::TemporaryFolder folder;
  const std::string good = folder.path("good"), old = folder.write("old", "old");
  const std::string nowhere = folder.path("nowhere/x");
  const std::string step =
      " examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 ";
  const std::string grid = " llama3.1-8b --hw gb200 --devices 8 --batch 1 --seq 4096 ";
  // Each writes its first file first, where it writes any.
  const std::string commands[] = {
      "plan" + step + "--pgle " + good + ".pbtxt --out " + nowhere,
      "whatif" + step + "--set query_proj=offload --out " + nowhere,
      "simulate" + step + "--trace " + nowhere,
      "capacity" + grid + "--html " + good + " --csv " + nowhere,
      "capacity" + grid + "--html " + old + " --csv " + nowhere,
  };
  for (const std::string& command : commands) {
    CAPTURE(command);
    check_refused(command, 74, nowhere + ": error: cannot be written: No such file or directory\n");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path("")),
                        std::filesystem::directory_iterator()) == 1);
    CHECK(testing::read_text(old) == "old");
  }
  check_refused("capacity" + grid + "--csv " + folder.path(""), 74,
                folder.path("") + ": error: cannot be written: Is a directory\n");
  check_refused("capacity" + grid + "--csv " + old + "/x", 74,
                old + "/x: error: cannot be written: Not a directory\n");
}

TEST_CASE("an unknown machine is answered with those known") {
  for (const std::string command : {"simulate", "plan"}) {
    CAPTURE(command);
    const Run run = run_spillway(command + " examples/jax/dumps/keep --hw gb2000");
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.starts_with(
        "error: no hardware profile is called 'gb2000'\n  did you mean 'gb200'? known are "));
  }
}

TEST_CASE("help and version are answers") {
  for (const char* arguments : {"--help", "plan --help", "--version"}) {
    CAPTURE(arguments);
    const Run run = run_spillway(arguments);
    CHECK(run.exit_code == 0);
    CHECK_FALSE(run.out.empty());
    CHECK(run.err == "");
  }
}

TEST_CASE("a plan for which nothing fits answers no, in every form") {
  const std::string plan =
      "plan examples/jax/dumps/keep --names examples/jax/dumps/keep/names.json --hw gb200 ";
  for (const std::string form :
       {"", " --json", " --explain mlpwi_0", " --explain mlpwi_0 --json"}) {
    CAPTURE(form);
    const Run run = run_spillway(plan + "--hbm-limit 10GiB" + form);
    CHECK(run.exit_code == 1);
    CHECK(run.out != "");
    CHECK(run.err == "");
  }
  struct Row {
    const char* budget;
    bool fits;
  };
  const Row rows[] = {{"--mem-fraction 0.08", false},
                      {"--mem-fraction 0.14", true},
                      {"--hbm-limit 47GiB --host-limit 1MiB", true},
                      {"--hbm-limit 45GiB --host-limit 1MiB", false}};
  for (const Row& row : rows) {
    CAPTURE(row.budget);
    const Run run = run_spillway(plan + row.budget);
    CHECK(run.exit_code == (row.fits ? 0 : 1));
    CHECK((run.out.find("NOTHING FITS") == std::string::npos) == row.fits);
  }
}

}  // namespace
}  // namespace spillway
