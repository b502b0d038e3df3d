// Logs that people really had, in small: the numbers of the case and the answer that was right.
#include "sim/report/log_report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/fuzz/mutate.h"
#include "tests/golden.h"

namespace spillway {
namespace {

LogReport judge(const std::string& text, const LogWishes& wishes = {}) {
  const Result<log::Log> log = log::find_in_log(text, "toy.txt");
  if (!log.ok()) FAIL(to_text(log.error()));
  return make_log_report(*log, wishes);
}

const LogFinding* find(const LogReport& report, const std::string& code) {
  const auto at = std::ranges::find(report.findings, code, &LogFinding::code);
  return at == report.findings.end() ? nullptr : &*at;
}

std::string stats(const std::string& parameter, const std::string& live_out,
                  const std::string& temp, const std::string& total) {
  return "BufferAssignment stats:\n             parameter allocation:    " + parameter +
         "\n              constant allocation:         0B\n        maybe_live_out allocation:    " +
         live_out + "\n     preallocated temp allocation:         " + temp +
         "\n                 total allocation:   " + total + "\n";
}

std::string dump(const std::string& limit, const std::string& in_use, const std::string& more = "",
                 const std::string& name = "GPU_0_bfc") {
  return "BFCAllocator dump for " + name + "\n" + more + "Stats: \nLimit:   " + limit +
         "\nInUse:   " + in_use + "\nMaxInUse:   " + in_use +
         "\nNumAllocs:   3\nMaxAllocSize:   8\n";
}

std::string failed(const std::string& bytes) {
  return "RESOURCE_EXHAUSTED: Out of memory while trying to allocate " + bytes + " bytes.\n";
}

std::string analysis(const std::string& argument, const std::string& output,
                     const std::string& alias, const std::string& temp,
                     const std::string& more = "") {
  return "CompiledMemoryStats(argument_size_in_bytes=" + argument +
         ", output_size_in_bytes=" + output + ", alias_size_in_bytes=" + alias +
         ", temp_size_in_bytes=" + temp + more + ")\n";
}

constexpr const char* kRemat =
    "hlo_rematerialization.cc:3005] Can't reduce memory use below 10.64GiB (11428802214 bytes) by "
    "rematerialization; only reduced to 71.27GiB (76523901244 bytes), down from 73.51GiB "
    "(78931543988 bytes) originally\n";

struct Case {
  const char* name;
  std::string text;
  const char* code;
  bool decides;
  std::vector<std::string> says;
};

void check_cases(const std::vector<Case>& cases, const LogWishes& wishes = {}) {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const LogReport report = judge(c.text, wishes);
    const LogFinding* finding = find(report, c.code);
    REQUIRE(finding != nullptr);
    CHECK(finding->decides == c.decides);
    CAPTURE(finding->message);
    for (const std::string& words : c.says) {
      CAPTURE(words);
      CHECK(finding->message.find(words) != std::string::npos);
    }
  }
}

TEST_CASE("handed cases: the number that decides") {
  check_cases({
      {"C02: the scheduler's limit is none",
       "LatencyHidingScheduler current memory usage: 329000000000 bytes. Current limit: "
       "100000000000\n",
       "scheduler-limit",
       false,
       {"93.13 GiB did not hold it back", "306.41 GiB", "Scan the layers", "fencing_threshold"}},
      {"C02: arguments above the limit",
       "The byte size of input/output arguments (86973087744) exceeds the base limit "
       "(81174881894). This indicates an error in the calculation!\n",
       "arguments-above-limit",
       true,
       {"81.00 GiB", "75.60 GiB", "no order of operations helps"}},
      {"C03: colour 5 is no HBM, whatever its name",
       "Memory Space: default (color=0)\nTotal bytes: 4096 (4.0KiB)\n\nMemory Space: cmem "
       "(color=5)\nTotal bytes: 905969664 (864.00MiB)\n\n",
       "host-in-report",
       false,
       {"864.00 MiB", "pinned host memory", "not HBM"}},
      {"C04: host memory",
       "Out of host memory while trying to allocate 14.00GiB. Please set the environment variable "
       "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than the default 64 GB.\n",
       "host-limit",
       true,
       {"not HBM", "each device has for itself", "64 GiB by default",
        "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=65 or more", "every one of its GPUs"}},
      {"C04, C06: with the pool's state, and a region of a power of two",
       "Out of host memory while trying to allocate 14.00GiB.\n" +
           dump("68719476736", "59055800320", "", "xla_gpu_host_bfc"),
       "host-limit",
       true,
       {"55.00 GiB of its 64.00 GiB", "LIMIT_GB=69", "14.00 GiB in one piece pins 16.00 GiB"}},
      {"C06: just above a power of two",
       "Out of host memory while trying to allocate 33.00GiB.\n",
       "host-limit",
       true,
       {"33.00 GiB in one piece pins 64.00 GiB"}},
      {"C04: the limit that was set did not do",
       "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=128\nOut of host memory while trying to allocate "
       "14.00GiB.\n",
       "host-limit",
       true,
       {"stated limit of 128 GiB", "LIMIT_GB=129"}},
      {"C07: nothing known is not nothing used",
       analysis("0", "0", "0", "0"),
       "analysis-unavailable",
       false,
       {"not available"}},
      {"C07: -1", analysis("-1", "-1", "-1", "-1"), "analysis-unavailable", false, {}},
      {"C07: the peak counts host memory",
       analysis("100", "50", "50", "1000",
                ", host_temp_size_in_bytes=900, "
                "peak_memory_in_bytes=2000"),
       "peak-counts-host",
       false,
       {"1.07 KiB", "counts host buffers"}},
      {"C16: one block is most of it",
       failed("57058672640") + stats("7.49GiB", "7.49GiB", "53.14GiB", "60.63GiB"),
       "contiguous-block",
       true,
       {"53.14 GiB", "temporaries", "one contiguous block"}},
      {"C20: a limit is no lower bound",
       kRemat,
       "remat-limit",
       true,
       {"10.64 GiB is the limit", "no lower bound", "60.62 GiB more", "pinned host memory"}},
      {"C21: fits by sum, fails by block",
       failed("4000000000") + stats("1.00GiB", "1.00GiB", "3.73GiB", "4.73GiB") +
           dump("9000000000", "4000000000",
                "Free  at 7f of size 2500000000 next 1\nFree  at 8f of size 2500000000 next 2\n"
                "total_region_allocated_bytes_: 9000000000 memory_limit_: 9000000000\n"),
       "fragmentation",
       true,
       {"4.66 GiB are free by sum", "largest free piece has 2.33 GiB", "one piece"}},
      {"C22: one request is the whole block",
       failed("35701941112") + stats("1.00GiB", "1.00GiB", "33.25GiB", "34.25GiB"),
       "contiguous-block",
       true,
       {"33.25 GiB (the program's temporaries"}},
      {"C31: the driver does not pin",
       "could not allocate pinned host memory of size: 2147483648\n",
       "pinning-refused",
       true,
       {"2.00 GiB", "WSL", "charged to the card"}},
      {"C34: the second pool",
       "Allocator (GPU_collectivememory_0_bfc) ran out of memory trying to allocate 6.0MiB "
       "(rounded "
       "to 6291456)requested by op\n",
       "collective-pool",
       true,
       {"6.00 MiB failed in the second pool", "COLLECTIVE_MEM_SIZE_MB=7", "MEM_FRACTION"}},
      {"C34: the budget is the first pool",
       "XLA backend will use up to 6119489536 bytes on device 0 for BFCAllocator.\nXLA backend "
       "will "
       "use up to 2040528896 bytes on device 0 for CollectiveBFCAllocator.\n",
       "two-pools",
       false,
       {"budget is 5.70 GiB", "1.90 GiB are for collectives"}},
      {"C36: the module is innocent",
       failed("6291456") + stats("6.00MiB", "6.00MiB", "0B", "12.00MiB"),
       "outside-program",
       true,
       {"The module needs 12.00 MiB in all", "innocent", "lives outside it"}},
      {"C42: a message in place of a program",
       "Failed to serialize HLO module proto.",
       "no-proto",
       false,
       {"2 GB", "--xla_dump_hlo_as_text"}},
      {"a graph beside the pool",
       "Underlying backend ran out of memory trying to instantiate command buffer with 8\n",
       "command-buffer",
       true,
       {"beside the pool"}},
      {"C23: compute on the host",
       "host_offloader.cc] Found an instruction (\"x\") which does device compute in host memory "
       "space. Converting into host compute.\n",
       "host-compute",
       false,
       {"very slowly"}},
      {"C24: a result that the host keeps",
       "E1200: Tensor which is moved to host (starting from tuple.64) is returned from the entry "
       "computation but the layout for this output is not set to host memory.\n",
       "host-result",
       true,
       {"refuses to compile (E1200)", "memory_kind=\"pinned_host\""}},
  });
}

TEST_CASE("a pool too full, to the byte") {
  // In use 60 of 100 GiB; 40 GiB are free.
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const auto verdict = [](std::int64_t request) {
    return judge(failed(std::to_string(request)) +
                 dump(std::to_string(100 * kGiB), std::to_string(60 * kGiB)));
  };
  CHECK(find(verdict(40 * kGiB + 1), "pool-full") != nullptr);
  CHECK(find(verdict(40 * kGiB), "fragmentation") != nullptr);
  CHECK(find(verdict(100 * kGiB), "pool-full") != nullptr);
  CHECK(find(verdict(100 * kGiB + 1), "larger-than-pool") != nullptr);
}

TEST_CASE("a pool that may still grow was refused by the driver") {
  check_cases({{"grown to 3 of 8",
                failed("4000") + dump("8000", "2000",
                                      "total_region_allocated_bytes_: 3000 memory_limit_: 8000\n"),
                "growth-refused",
                true,
                {"only 2.93 KiB of the 7.81 KiB", "other processes"}},
               {"grown to 5 of 8: what is left is too small",
                failed("4000") + dump("8000", "2000",
                                      "total_region_allocated_bytes_: 5000 memory_limit_: 8000\n"),
                "fragmentation",
                true,
                {}}});
}

TEST_CASE("C35: the sum fits the card but not the pool's share") {
  constexpr std::int64_t kGB = 1'000'000'000;
  const auto fraction_of = [](std::int64_t total) {
    return judge(
        "Memory Space: default (color=0)\nTotal bytes: " + std::to_string(total) + " (x)\n\n",
        {.hbm = Bytes(100 * kGB), .hbm_origin = "the HBM of toy"});
  };
  const LogReport above = fraction_of(91 * kGB + 1);
  REQUIRE(above.fraction);
  CHECK(above.fraction->smallest == 0.92);
  REQUIRE(find(above, "above-pool") != nullptr);
  CHECK(find(above, "above-pool")->message.find("the card but not the pool") != std::string::npos);
  CHECK(find(above, "above-pool")->message.find("--mem-fraction 0.92") != std::string::npos);
  CHECK(fraction_of(91 * kGB).fraction->smallest == 0.91);
  CHECK(find(fraction_of(75 * kGB), "above-pool") == nullptr);
  CHECK(find(fraction_of(75 * kGB + 1), "above-pool") != nullptr);
  const LogReport none = fraction_of(101 * kGB);
  CHECK(find(none, "above-pool")->message.find("No fraction of the card") != std::string::npos);
}

TEST_CASE("a program that JAX's default pool of the card would hold is not to blame") {
  const std::string text =
      failed("4770354232") + stats("372.76MiB", "9.64GiB", "4.44GiB", "14.44GiB");
  const auto with = [&text](std::int64_t card) {
    return judge(text, {.hbm = Bytes(card), .hbm_origin = "the HBM of toy"});
  };
  CHECK(find(with(80'000'000'000), "outside-program") != nullptr);
  CHECK(find(with(20'000'000'000), "outside-program") == nullptr);
  CHECK(find(with(20'000'000'000), "above-pool") != nullptr);
  CHECK(find(judge(text), "contiguous-block") != nullptr);
}

TEST_CASE("the card is known from the log in several ways") {
  const std::string program = analysis("7000000000", "0", "0", "0");
  const std::string pool =
      "XLA backend allocating 6000000000 bytes on device 0 for BFCAllocator.\n";
  struct Row {
    const char* name;
    std::string text;
    std::int64_t card;
    double smallest;
  };
  const Row rows[] = {
      {"JAX's default share", pool + program, 8000000000, 0.88},
      {"a share that was set", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.6\n" + pool + program, 10000000000,
       0.70},
      {"both pools",
       pool +
           "XLA backend will use up to 4000000000 bytes on device 0 for CollectiveBFCAllocator.\n" +
           program,
       10000000000, 0.70},
      {"the compiler, which takes 0.8 of it",
       pool +
           "The byte size of input/output arguments (8800000000) exceeds the base limit "
           "(8000000000). This indicates\n" +
           program,
       10000000000, 0.70},
      {"the driver", pool + "Free memory/Total memory: 5/14000000000\n" + program, 14000000000,
       0.50},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const LogReport report = judge(row.text);
    REQUIRE(report.fraction);
    CHECK(report.fraction->card == Bytes(row.card));
    CHECK(report.fraction->smallest == row.smallest);
  }
  CHECK_FALSE(judge(program).fraction);
}

TEST_CASE("numbers of several parts stand side by side") {
  const LogReport grown =
      judge(analysis("8000", "0", "0", "15000") + "later\n" + analysis("8000", "0", "0", "54060"));
  const auto of = [](const LogReport& report, const std::string& quantity) {
    const auto at = std::ranges::find(report.comparisons, quantity, &LogComparison::quantity);
    REQUIRE(at != report.comparisons.end());
    return *at;
  };
  // C16: the same step after an upgrade.
  CHECK_FALSE(of(grown, "temporaries").agree);
  CHECK(of(grown, "temporaries").verdict.find("3.60 times") != std::string::npos);
  // The statistics count pinned host memory; memory_analysis() keeps it apart.
  const LogReport host = judge(
      stats("8.00GiB", "0B", "30.00GiB", "38.00GiB") +
      analysis("8589934592", "0", "0", "8589934592", ", host_temp_size_in_bytes=23622320128"));
  CHECK_FALSE(of(host, "program in HBM").agree);
  CHECK(of(host, "program in HBM").verdict.find("count pinned host memory") != std::string::npos);
  const LogReport equal = judge(stats("8.00GiB", "0B", "30.00GiB", "38.00GiB") +
                                analysis("8589934592", "0", "0", "32212254720"));
  CHECK(of(equal, "program in HBM").agree);
}

TEST_CASE("what is cut is said to be") {
  const LogReport report = judge(
      "Memory Space: default (color=0)\nTotal bytes: 4096 (4.0KiB)\n  "
      "cumulative_size;  size; offset; used_by_n_values; shapes_list\n  "
      "  600B( 60%);    600B;   0;  2; f32[1");
  REQUIRE(report.notes.size() == 2);
  CHECK(report.notes[0] == "memory usage report at line 1 is cut: what is complete was kept");
  CHECK(render_text(report).find(", cut\n") != std::string::npos);
}

TEST_CASE("text and JSON, whatever happens to a log") {
  const std::string whole =
      testing::read_text(testing::source_path("examples/logs/oom.txt")) + kRemat +
      "Memory Space: default (color=0)\nTotal bytes: 4096 (4.0KiB)\n\nMemory Space: cmem "
      "(color=5)\nTotal bytes: 905969664 (864.00MiB)\n\nOut of host memory while trying to "
      "allocate "
      "14.00GiB.\n" +
      dump("68719476736", "59055800320", "", "xla_gpu_host_bfc");
  std::size_t read = 0;
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    const std::string text = testing::mutate(whole, seed);
    const Result<log::Log> log = log::find_in_log(text, "mutated.txt");
    if (!log.ok()) {
      CHECK(log.error().where.path == "mutated.txt");
      continue;
    }
    ++read;
    const LogReport report = make_log_report(*log, {});
    CHECK_FALSE(render_text(report).empty());
    CHECK(nlohmann::json::accept(render_json(report)));
  }
  CHECK(read > 2000);
}

TEST_CASE("a log cut anywhere is read or refused") {
  const std::string whole = testing::read_text(testing::source_path("examples/logs/oom.txt"));
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    CAPTURE(size);
    const Result<log::Log> log = log::find_in_log(whole.substr(0, size), "cut.txt");
    if (log.ok()) CHECK_FALSE(render_text(make_log_report(*log, {})).empty());
  }
}

}  // namespace
}  // namespace spillway
