// Each reader on a small text: the words of XLA, with what stands around them in real logs.
#include <doctest/doctest.h>

#include "model/log/read_log.h"

namespace spillway::log {
namespace {

Log read(const std::string& text) {
  Result<Log> log = find_in_log(text, "toy.txt");
  if (!log.ok()) FAIL(to_text(log.error()));
  return std::move(log).value();
}

TEST_CASE("sentences in which an allocation failed") {
  struct Row {
    const char* text;
    FailedIn where;
    std::int64_t bytes;
  };
  const Row rows[] = {
      {"XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.",
       FailedIn::kDevicePool, 6291456},
      {"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB. "
       "[executable_name='jit_step']",
       FailedIn::kDevicePool, std::int64_t{2} << 30},
      {"Out of host memory while trying to allocate 14.00GiB. Please set the environment variable "
       "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB to allocate larger host memory than the default 64 GB.",
       FailedIn::kHostPool, std::int64_t{14} << 30},
      {"Failed to allocate request for 80.16GiB (86071123456B) on device ordinal 0",
       FailedIn::kDevice, 86071123456},
      {"E cuda_executor.cc:1] failed to allocate 73.30GiB (78702055168 bytes) from device: "
       "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
       FailedIn::kDevice, 78702055168},
      {"gpu_async_0 cuMemAllocAsync failed to allocate 2147483648 bytes: CUDA_ERROR_OUT_OF_MEMORY",
       FailedIn::kDevice, 2147483648},
      {"failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
       FailedIn::kPinnedMemory, 2147483648},
      {"Failed to allocate 14.00GiB (15032385536 bytes) of pinned host memory: out of memory",
       FailedIn::kPinnedMemory, 15032385536},
      {"Failed to allocate 2.00GiB (2147483648 bytes) of host memory pinned to NUMA node 1",
       FailedIn::kPinnedMemory, 2147483648},
      {"INTERNAL: Failed to allocate a 4096-byte pinned host staging buffer for a device-to-host "
       "transfer. The pinned host pool may be exhausted or fragmented (see "
       "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB), or the underlying pinned allocation failed",
       FailedIn::kHostPool, 4096},
      {"could not allocate pinned host memory of size: 2147483648\n", FailedIn::kPinnedMemory,
       2147483648},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Log log = read(row.text);
    REQUIRE(log.out_of_memory.size() == 1);
    CHECK(log.out_of_memory[0].where == row.where);
    CHECK(log.out_of_memory[0].requested.value.value() == row.bytes);
    CHECK(log.out_of_memory[0].line == 1);
  }
  CHECK(read(rows[1].text).out_of_memory[0].executable == "jit_step");
}

TEST_CASE("the same failure on eight devices is one, eight times") {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += "(pid=" + std::to_string(i) + ") Out of memory while trying to allocate 512 bytes.\n";
  const Log log = read(text + "Out of memory while trying to allocate 256 bytes.\n");
  REQUIRE(log.out_of_memory.size() == 2);
  CHECK(log.out_of_memory[0].times == 8);
  CHECK(log.out_of_memory[1].line == 9);
}

constexpr const char* kStats =
    "(pid=7) BufferAssignment stats:\n"
    "(pid=7)              parameter allocation:    6.00MiB\n"
    "(pid=7)               constant allocation:         0B\n"
    "(pid=7)         maybe_live_out allocation:    6.00MiB\n"
    "(pid=7)      preallocated temp allocation:         0B\n"
    "(pid=7)   preallocated temp fragmentation:         0B (nan%)\n"
    "(pid=7)                  total allocation:   12.00MiB\n"
    "(pid=7)               total fragmentation:         0B (0.00%)\n";
constexpr const char* kPeak =
    "Peak buffers:\n\tBuffer 1:\n\t\tSize: 6.00MiB\n\t\tOperator: op_name=\"jit(f)/dot\" "
    "source_file=\"x.py\"\n\t\tXLA Label: fusion\n\t\tShape: f32[4096,128,3]\n"
    "\t\t==========================\n\n\tBuffer 2:\n\t\tSize: 384.0KiB\n"
    "\t\tEntry Parameter Subshape: f32[256,128,3]\n\t\t==========================\n\n";

TEST_CASE("statistics with peak buffers") {
  const Log log = read(std::string(kStats) + kPeak);
  REQUIRE(log.buffer_stats.size() == 1);
  const BufferStats& stats = log.buffer_stats[0];
  CHECK(stats.parameter->value == Bytes(6 << 20));
  CHECK(stats.constant->value == Bytes(0));
  CHECK(stats.temp->value == Bytes(0));
  CHECK(stats.temp_fragmentation->value == Bytes(0));
  CHECK(stats.total->value == Bytes(12 << 20));
  CHECK(stats.total_fragmentation->value == Bytes(0));
  CHECK_FALSE(stats.cut);
  REQUIRE(stats.peak.size() == 2);
  CHECK(stats.peak[0].op_name == "jit(f)/dot");
  CHECK(stats.peak[0].shape == "f32[4096,128,3]");
  CHECK(stats.peak[1].parameter);
  CHECK(stats.peak[1].size.value == Bytes(384 << 10));
}

TEST_CASE("statistics that are cut keep what is complete") {
  const std::string whole = std::string(kStats) + kPeak;
  const Log in_buffer = read(whole.substr(0, whole.find("\t\tEntry")));
  CHECK(in_buffer.buffer_stats[0].cut);
  CHECK(in_buffer.buffer_stats[0].peak.size() == 1);
  const Log in_block = read(whole.substr(0, whole.find("(pid=7)                  total")));
  CHECK(in_block.buffer_stats[0].cut);
  CHECK(in_block.buffer_stats[0].parameter);
  CHECK_FALSE(in_block.buffer_stats[0].total);
}

TEST_CASE("two blocks of statistics are two") {
  CHECK(read(std::string(kStats) + kStats).buffer_stats.size() == 2);
}

TEST_CASE("a message inside a quoted string has its lines") {
  const Log log = read(
      "e = 'RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64 "
      "bytes.\\nBufferAssignment "
      "stats:\\n             parameter allocation:    32B\\n                 total allocation:   "
      "96B\\n'");
  CHECK(log.out_of_memory.size() == 1);
  REQUIRE(log.buffer_stats.size() == 1);
  CHECK(log.buffer_stats[0].total->value == Bytes(96));
  CHECK(log.buffer_stats[0].line == 1);
}

TEST_CASE("pools: C34, two of them") {
  const Log log = read(
      "gpu_helpers.cc:136] XLA backend will use up to 6119489536 bytes on device 0 for "
      "BFCAllocator.\n"
      "gpu_helpers.cc:177] XLA backend will use up to 2040528896 bytes on device 0 for "
      "CollectiveBFCAllocator.\n");
  REQUIRE(log.pool_sizes.size() == 2);
  CHECK(log.pool_sizes[0].bytes == Bytes(6119489536));
  CHECK(log.pool_sizes[0].kind == PoolKind::kDevice);
  CHECK_FALSE(log.pool_sizes[0].preallocated);
  CHECK(log.pool_sizes[1].bytes == Bytes(2040528896));
  CHECK(log.pool_sizes[1].kind == PoolKind::kCollective);
  CHECK(read("XLA backend allocating 8 bytes on device 3 for BFCAllocator.").pool_sizes[0].device ==
        3);
}

TEST_CASE("requests that an allocator could not serve") {
  const Log log = read(
      "bfc_allocator.cc:479] Allocator (GPU_1_bfc) ran out of memory trying to allocate 27.93GiB "
      "(rounded to 29995136256)requested by op\n"
      "bfc_allocator.cc:501] Allocator (xla_gpu_host_bfc) ran out of memory trying to allocate "
      "14.00GiB from the lower end with freed_by_count=0.\n");
  REQUIRE(log.failed_requests.size() == 2);
  CHECK(log.failed_requests[0].allocator == "GPU_1_bfc");
  CHECK(log.failed_requests[0].requested == LoggedBytes{Bytes(29995136256)});
  CHECK(pool_kind(log.failed_requests[1].allocator) == PoolKind::kHost);
  CHECK(pool_kind("GPU_collectivememory_0_bfc") == PoolKind::kCollective);
}

constexpr const char* kDump =
    "I BFCAllocator dump for GPU_0_bfc\n"
    "I Bin (256): \tTotal Chunks: 3, Chunks in use: 2. 768B allocated for chunks. 512B in use.\n"
    "I InUse at 7f00 of size 512 next 2\n"
    "I Free  at 7f02 of size 256 next 3\n"
    "I Free  at 7f03 of size 1024 next 18446744073709551615\n"
    "I Sum Total of in-use chunks: 512B\n"
    "I total_region_allocated_bytes_: 1792 memory_limit_: 4096 available bytes: 2304 "
    "curr_region_allocation_bytes_: 8192\n"
    "I Stats: \nLimit:                  4096\nInUse:                   512\n"
    "MaxInUse:               1420\nNumAllocs:               455\nMaxAllocSize:            562\n";

TEST_CASE("the dump of a pool") {
  const Log log = read(kDump);
  REQUIRE(log.pool_dumps.size() == 1);
  const PoolDump& dump = log.pool_dumps[0];
  CHECK(dump.allocator == "GPU_0_bfc");
  CHECK(dump.limit->value == Bytes(4096));
  CHECK(dump.in_use->value == Bytes(512));
  CHECK(dump.max_in_use->value == Bytes(1420));
  CHECK(dump.max_alloc->value == Bytes(562));
  CHECK(dump.allocations == 455);
  CHECK(dump.pool->value == Bytes(1792));
  CHECK(dump.free_chunks == 2);
  CHECK(dump.free_in_chunks == Bytes(1280));
  CHECK(dump.largest_free->value == Bytes(1024));
  CHECK(dump.bins == 1);
  CHECK_FALSE(dump.cut);
}

TEST_CASE("a dump that is cut has no largest piece; statistics alone are a dump") {
  const std::string whole = kDump;
  const Log cut = read(whole.substr(0, whole.find("I Sum")));
  CHECK(cut.pool_dumps[0].cut);
  CHECK_FALSE(cut.pool_dumps[0].largest_free);
  const Log rounded = read(
      "Stats: \nLimit:   89.77GiB\nInUse:   81.00GiB\nMaxInUse: 81.00GiB\nNumAllocs: 3\n"
      "MaxAllocSize: 27.00GiB\nReserved: 0B\nPeakReserved: 0B\nLargestFreeBlock: 0B\n");
  CHECK(rounded.pool_dumps[0].in_use->value == Bytes(std::int64_t{81} << 30));
  CHECK_FALSE(rounded.pool_dumps[0].largest_free);
}

TEST_CASE("the newer summary of a pool") {
  const Log log = read(
      "Allocator memory summary: rounded request 4.00GiB, total free in pool 5.00GiB, largest free "
      "chunk usable by upper end 3.00GiB, unallocated bytes 0B, pool size 8.00GiB, pool limit "
      "8.00GiB\nLimit: 8.00GiB\nInUse: 3.00GiB\n");
  // A summary outside a dump opens none.
  CHECK(log.pool_dumps[0].limit->value == Bytes(std::int64_t{8} << 30));
  CHECK_FALSE(log.pool_dumps[0].largest_free);
  const Log inside = read(
      "BFCAllocator dump for GPU_0_bfc\nAllocator memory summary: rounded request 4.00GiB, total "
      "free in pool 5.00GiB, largest free chunk usable by upper end 3.00GiB, unallocated bytes 0B, "
      "pool size 8.00GiB, pool limit 8.00GiB\nLimit: 8.00GiB\nInUse: 3.00GiB\n");
  CHECK(inside.pool_dumps[0].largest_free->value == Bytes(std::int64_t{3} << 30));
  CHECK(inside.pool_dumps[0].pool->value == Bytes(std::int64_t{8} << 30));
}

TEST_CASE("C20: the warning of rematerialisation, in two versions") {
  for (const std::string prefix :
       {"W external/xla/xla/service/hlo_rematerialization.cc:3005] ",
        "W0000 00:00:1746712714.696550 3243293 hlo_rematerialization.cc:3204] "}) {
    const Log log = read(prefix +
                         "Can't reduce memory use below 10.64GiB (11428802214 bytes) by "
                         "rematerialization; only reduced to 71.27GiB (76523901244 bytes), down "
                         "from 73.51GiB (78931543988 bytes) originally\n");
    REQUIRE(log.remat_warnings.size() == 1);
    CHECK(log.remat_warnings[0].limit == LoggedBytes{Bytes(11428802214)});
    CHECK(log.remat_warnings[0].reached == LoggedBytes{Bytes(76523901244)});
    CHECK(log.remat_warnings[0].original == LoggedBytes{Bytes(78931543988)});
  }
  // Without exact figures, and cut behind them.
  const Log cut = read(
      "Can't reduce memory use below 2.00GiB by rematerialization; only reduced to "
      "3.00GiB");
  CHECK(cut.remat_warnings[0].reached.value == Bytes(std::int64_t{3} << 30));
  CHECK_FALSE(cut.remat_warnings[0].original);
}

TEST_CASE("what the scheduler says") {
  const Log log = read(
      "gpu_hlo_schedule.cc:868] The byte size of input/output arguments (86973087744) exceeds the "
      "base limit (81174881894). This indicates an error in the calculation!\n"
      "LatencyHidingScheduler current memory usage: 329000000000 bytes. Current limit: "
      "98000000000\n"
      "LatencyHidingScheduler current memory usage: 20 bytes, does not fit in limit: 10. Setting "
      "the "
      "new limit to 9\n");
  REQUIRE(log.scheduler_memory.size() == 3);
  CHECK(log.scheduler_memory[0].message == SchedulerMessage::kArguments);
  CHECK(log.scheduler_memory[0].bytes == Bytes(86973087744));
  CHECK(log.scheduler_memory[0].limit == Bytes(81174881894));
  CHECK(log.scheduler_memory[1].bytes == Bytes(329000000000));
  CHECK(log.scheduler_memory[2].limit == Bytes(10));
}

TEST_CASE("C07: memory_analysis() in every spelling") {
  for (const std::string text :
       {"CompiledMemoryStats(generated_code_size_in_bytes=0, argument_size_in_bytes=131072, "
        "output_size_in_bytes=65536, alias_size_in_bytes=65536, temp_size_in_bytes=512, "
        "host_generated_code_size_in_bytes=0, host_argument_size_in_bytes=0, "
        "host_output_size_in_bytes=0, host_alias_size_in_bytes=0, host_temp_size_in_bytes=0)",
        "argument_size_in_bytes: 131072\noutput_size_in_bytes: 65536\nalias_size_in_bytes: "
        "65536\ntemp_size_in_bytes: 512\n",
        "{\"argument_size_in_bytes\": 131072, \"output_size_in_bytes\": 65536,\n"
        "\"alias_size_in_bytes\": 65536, \"temp_size_in_bytes\": 512}",
        "{'argument_size_in_bytes': 131072, 'output_size_in_bytes': 65536, 'alias_size_in_bytes': "
        "65536, 'temp_size_in_bytes': 512}"}) {
    CAPTURE(text);
    const Log log = read(text);
    REQUIRE(log.memory_analyses.size() == 1);
    const MemoryAnalysis& analysis = log.memory_analyses[0];
    CHECK(analysis.available());
    CHECK(analysis.argument == 131072);
    CHECK(analysis.device_total() == Bytes(131584));
    CHECK(analysis.host_total() == Bytes(0));
    CHECK_FALSE(analysis.cut);
  }
}

TEST_CASE("an analysis of zeros or -1 is none; one that is cut keeps whole fields") {
  for (const std::string value : {"0", "-1"}) {
    const Log log = read(
        "CompiledMemoryStats(generated_code_size_in_bytes=2856, "
        "argument_size_in_bytes=" +
        value + ", output_size_in_bytes=" + value +
        ", alias_size_in_bytes=0, temp_size_in_bytes=" + value + ")");
    CHECK_FALSE(log.memory_analyses[0].available());
  }
  const Log cut = read("CompiledMemoryStats(argument_size_in_bytes=131072, temp_size_in_bytes=51");
  CHECK(cut.memory_analyses[0].cut);
  CHECK(cut.memory_analyses[0].argument == 131072);
  CHECK_FALSE(cut.memory_analyses[0].temp);
  CHECK(cut.half_number);
  const Log huge = read(
      "argument_size_in_bytes=9223372036854775807 output_size_in_bytes=1 "
      "temp_size_in_bytes=1\n");
  CHECK_FALSE(huge.memory_analyses[0].device_total());
}

constexpr const char* kReport =
    "Memory Space: default (color=0)\nTotal bytes: 1000 (1000B)\n"
    "  cumulative_size;       size;       offset; used_by_n_values; shapes_list\n  -----------\n"
    "    600B( 60%);    600B;            0;                2; 2\xc3\x97"
    "f32[150]\n"
    "    980B( 98%);    380B;          600;                1; f32[95]\n"
    "  The rest 7 values are less than 5% of the total size and not shown.\n\n"
    "Memory Space: vmem (color=1)\nTotal bytes: 30 (30B)\n\n"
    "Memory Space: smem (color=2)\nTotal bytes: 4 (4B)\n\n"
    "Memory Space: cmem (color=5)\nTotal bytes: 256 (256B)\n\n";

TEST_CASE("C03: a memory usage report by colours, not by names") {
  const Log log = read(kReport);
  REQUIRE(log.usage_reports.size() == 1);
  const UsageReport& report = log.usage_reports[0];
  CHECK(report.device_total() == LoggedBytes{Bytes(1034)});
  CHECK(report.host_total() == LoggedBytes{Bytes(256)});
  CHECK_FALSE(report.cut);
  REQUIRE(report.spaces.size() == 4);
  CHECK(report.spaces[3].xla_name == "cmem");
  REQUIRE(report.spaces[0].largest.size() == 2);
  CHECK(report.spaces[0].largest[1].offset == Bytes(600));
  CHECK(report.spaces[0].largest[0].values == 2);
}

TEST_CASE("the older report has one total over all memory spaces") {
  const Log log = read(
      "Total bytes used: 1256 (1.2KiB)\n\nAllocations sorted by size:\n\n"
      "cumulative_size; total_size - cumulative_size; allocation\n-----------\n"
      "   1000B( 80%);    256B; allocation 7: size 1000B, preallocated-temp:\n"
      "   1.2KiB(100%);     0B; allocation 8: size 256B, color 5, preallocated-temp:\n"
      "The rest 48 allocations are less than 5% of the total size and not shown.\n\n\n"
      "Allocations sorted by size with their values:\n"
      "allocation 8: size 256B, color 5, preallocated-temp:\n\n"
      "\tcumulative_size;       size;       offset; used_by_n_values; shapes_list\n");
  REQUIRE(log.usage_reports.size() == 1);
  CHECK(log.usage_reports[0].device_total() == LoggedBytes{Bytes(1000)});
  CHECK(log.usage_reports[0].host_total() == LoggedBytes{Bytes(256)});
  CHECK(log.usage_reports[0].unlisted == 48);
}

TEST_CASE("a report that is cut keeps its totals") {
  const std::string whole = kReport;
  const Log log = read(whole.substr(0, whole.find("380B;")));
  CHECK(log.usage_reports[0].cut);
  CHECK(log.usage_reports[0].device_total() == LoggedBytes{Bytes(1000)});
  CHECK(log.usage_reports[0].spaces[0].largest.size() == 1);
  const Log half = read(
      "Memory Space: cmem (color=5)\nTotal bytes: 905969664 (864.00MiB)\n\n"
      "Memory Space: default (color=0)\nTotal bytes: 12");
  CHECK(half.usage_reports[0].cut);
  CHECK(half.usage_reports[0].spaces.size() == 1);
  CHECK_FALSE(half.usage_reports[0].device_total());
}

TEST_CASE("settings are read where they are set, not where they are spoken of") {
  const Log log = read(
      "XLA_PYTHON_CLIENT_MEM_FRACTION=.92 python train.py\n"
      "os.environ['XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB'] = '128'\n"
      "set XLA_PYTHON_CLIENT_MEM_FRACTION 2 of 3\n"
      "Some donated buffers were not usable: f32[8]\n");
  REQUIRE(log.settings.size() == 2);
  CHECK(log.settings[0].value == 0.92);
  CHECK(log.settings[1].value == 128);
}

TEST_CASE("C31: the driver's view of the card") {
  const Log log = read(" Reported by CUDA: Free memory/Total memory: 4023189504/8370061312\n");
  REQUIRE(log.cuda_memory.size() == 1);
  CHECK(log.cuda_memory[0].free == Bytes(4023189504));
  CHECK(log.cuda_memory[0].total == Bytes(8370061312));
}

TEST_CASE("a text with nothing in it says what is recognised") {
  const Result<Log> log = find_in_log("hello\nworld\n", "x.txt");
  REQUIRE_FALSE(log.ok());
  CHECK(
      to_text(log.error()) ==
      "x.txt: error: holds nothing about memory that is known here\n  recognised are "
      "out-of-memory errors of XLA with their statistics, lines of the BFC allocator, warnings of "
      "rematerialisation and of the scheduler, -memory-usage-report.txt, and memory_analysis() "
      "printed");
}

}  // namespace
}  // namespace spillway::log
