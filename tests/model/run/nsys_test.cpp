#include "model/run/nsys.h"

#include <doctest/doctest.h>

#include "model/run/read_run.h"
#include "tests/support/describe_run.h"
#include "tests/support/nsys_fixture.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::describe_copies;
using testing::describe_instructions;
using testing::describe_modules;
using testing::describe_notes;
using testing::describe_streams;
using testing::TemporaryFolder;
using testing::two_steps;
using testing::write_database;

MeasuredRun read(const TemporaryFolder& folder, const std::string& sql) {
  static int count = 0;
  const std::string path = folder.path("run" + std::to_string(++count) + ".sqlite");
  Result<MeasuredRun> run = read_run(write_database(path, sql));
  REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : to_text(run.error())));
  return std::move(run).value();
}

TEST_CASE("kernels and copies go by the thunk that launched them") {
  const TemporaryFolder folder;
  const MeasuredRun run = read(folder, two_steps());
  CHECK(run.format == RunFormat::kNsightSystems);
  // fusion.1: from the start of its first kernel to the end of its second.
  CHECK(describe_instructions(run) ==
        "jit_step/gemm.2 2.000 us x2 (2 launches) on 13\n"
        "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n"
        "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n");
  CHECK(describe_copies(run) == "device to host, device to pinned: 2 of 200000 B at 50.00 GB/s\n");
  // The copy outlasts the kernel beside it by a quarter.
  CHECK(describe_streams(run) ==
        "0:13 kernels 5.400 us, copies 0.000 us, beside kernels 0.000 us\n"
        "0:14 kernels 0.000 us, copies 4.000 us, beside kernels 3.000 us\n");
  CHECK(describe_modules(run) == "jit_step x2 3.500 us, every 10.000 us\n");
  CHECK(describe_notes(run.notes) == "");
  CHECK(run.read == std::vector<std::string>{"6 kernels, 2 copies on 1 device",
                                             "3 instructions of 1 module by name",
                                             "8 NVTX ranges of XLA"});
}

TEST_CASE("an instruction that a loop repeats is several executions") {
  // The second execution follows at once, with the same kernels; ranges tell them apart.
  const TemporaryFolder folder;
  const std::string again =
      "UPDATE NVTX_EVENTS SET text='TSL:Thunk:#hlo_op=fusion.1#', textId=NULL WHERE textId=4;";
  const MeasuredRun run = read(folder, two_steps() + again);
  CHECK(describe_instructions(run).find("jit_step/fusion.1 0.800 us x4 (6 launches)") !=
        std::string::npos);
}

TEST_CASE("tables and columns of other versions, and those that are not there") {
  struct Row {
    const char* name;
    const char* change;
    const char* instructions;
    const char* notes;
  };
  const char* const kUnnamedNote =
      "6 kernels have no HLO name: 5.4 us of 5.4 us: they count as busy time of their stream, not "
      "as an instruction's; kernels in CUDA graphs lose their names: profile with "
      "--xla_gpu_enable_command_buffer= (empty)\n";
  const std::string without_nvtx =
      "no table NVTX_EVENTS: kernels and copies are not known by HLO instruction: profile with "
      "nsys --trace=cuda,nvtx\n" +
      std::string(kUnnamedNote);
  const std::string without_runtime =
      "no table CUPTI_ACTIVITY_KIND_RUNTIME: which range a kernel was launched in is not known\n" +
      std::string(kUnnamedNote);
  const Row rows[] = {
      {"a later version's name",
       "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V3;"
       "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_KERNEL_V2;",
       "jit_step/gemm.2 2.000 us x2 (2 launches) on 13\n"
       "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n"
       "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n",
       ""},
      {"no NVTX", "DROP TABLE NVTX_EVENTS;", "", without_nvtx.c_str()},
      {"no launches", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;", "", without_runtime.c_str()},
      {"copies alone", "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;",
       "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n",
       "no table CUPTI_ACTIVITY_KIND_KERNEL: what instructions took, and what copies ran beside, "
       "is not known\n"},
      {"kernels alone", "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;",
       "jit_step/gemm.2 2.000 us x2 (2 launches) on 13\n"
       "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n",
       "no table CUPTI_ACTIVITY_KIND_MEMCPY: nothing was copied across the link, or copies were "
       "not traced\n"},
      {"a file without names of strings", "DROP TABLE StringIds;",
       "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n"
       "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n",
       "2 kernels have no HLO name: 4.0 us of 5.4 us: they count as busy time of their stream, "
       "not as an instruction's; kernels in CUDA graphs lose their names: profile with "
       "--xla_gpu_enable_command_buffer= (empty)\n"},
      {"copies that do not say their memory",
       "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN srcKind;",
       "jit_step/gemm.2 2.000 us x2 (2 launches) on 13\n"
       "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n"
       "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n",
       "CUPTI_ACTIVITY_KIND_MEMCPY has no column srcKind: whether those copies are pinned, or how "
       "fast, is not known\n"},
      {"kernels of graphs",
       "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId=5 WHERE shortName=3;",
       "jit_step/gemm.2 2.000 us x2 (2 launches) on 13\n"
       "jit_step/copy-start.3 2.000 us x2 (2 launches) on 14\n"
       "jit_step/fusion.1 0.800 us x2 (4 launches) on 13\n",
       "2 kernels ran in CUDA graphs: their instructions' names are those of the graph: profile "
       "with --xla_gpu_enable_command_buffer= (empty)\n"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const MeasuredRun run = read(folder, two_steps() + row.change);
    CHECK(describe_instructions(run) == row.instructions);
    CHECK(describe_notes(run.notes) == row.notes);
  }
}

TEST_CASE("the file's own names of kinds come before CUPTI's numbers") {
  const TemporaryFolder folder;
  const MeasuredRun run = read(
      folder, two_steps() +
                  "CREATE TABLE ENUM_CUDA_MEM_KIND (id INT, name TEXT, label TEXT);"
                  "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1,'CUDA_MEMKIND_PAGEABLE','Pageable'),"
                  "(2,'CUDA_MEMKIND_PINNED','Pinned'),(3,'CUDA_MEMKIND_DEVICE','Device');"
                  "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INT, name TEXT, label TEXT);"
                  "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (2,'CUDA_MEMCPY_KIND_HTOD',"
                  "'Host-to-Device');");
  CHECK(describe_copies(run) ==
        "host to device, pinned to pageable: 2 of 200000 B at 50.00 GB/s\n");
}

TEST_CASE("processes number their devices from 0, each for itself") {
  const TemporaryFolder folder;
  const std::string second_process =
      "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid=" + std::to_string(8 * 0x1000000LL) +
      " WHERE start > 10000;";
  const MeasuredRun run = read(folder, two_steps() + second_process);
  CHECK(describe_streams(run).find("1:13 kernels 2.700 us") != std::string::npos);
}

TEST_CASE("copies among kernels of a stream never overlap with them") {
  const TemporaryFolder folder;
  const MeasuredRun run =
      read(folder, two_steps() + "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET streamId=13;");
  CHECK(describe_notes(run.notes) ==
        "stream 13 of device 0 runs 2 host copies among its kernels: they do not overlap with "
        "those: the step waits for each\n");
}

TEST_CASE("what is no export of Nsight Systems") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) {
    const auto run = read_run(path);
    REQUIRE_FALSE(run.ok());
    return run.error().text + " | " + run.error().advice;
  };
  CHECK(refused(write_database(folder.path("a"), "CREATE TABLE t (a INT);")) ==
        "no kernel and no copy in this database | give what nsys export --type sqlite writes");
  CHECK(refused(write_database(folder.path("b"), "CREATE TABLE StringIds (id INT, value TEXT);")) ==
        "no kernel and no copy in this database | profile with nsys --trace=cuda,nvtx");
  CHECK(refused(
            write_database(folder.path("c"), "CREATE TABLE StringTable (_id_ INT, value TEXT);")) ==
        "is an export of nvprof, whose tables are others | profile with nsys, and export with "
        "nsys export --type sqlite");
  CHECK(refused(folder.write("d", "SQLite format 3\0 and no more")).starts_with("SQLite says: "));
  const std::string report = folder.write("run.nsys-rep", "\x01\x02\x03");
  CHECK(refused(report) ==
        "is a report of Nsight Systems, which only that program reads | export it: nsys export "
        "--type sqlite " +
            report);
}

TEST_CASE("a database that is cut keeps what can be read") {
  const TemporaryFolder folder;
  std::string sql = std::string(testing::kKernelTable) + testing::kStringTable;
  for (int k = 0; k < 2000; ++k)
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(10 * k) + "," +
           std::to_string(10 * k + 5) + ",0,1,13," + std::to_string(k) + ",0,1,1,NULL);";
  const std::string path = write_database(folder.path("cut"), "BEGIN;" + sql + "COMMIT;");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto run = read_run(path);
  REQUIRE(run.ok());
  std::int64_t kernels = 0;
  for (const MeasuredStream& stream : run->streams) kernels += stream.kernels;
  CHECK(kernels > 100);
  CHECK(kernels < 2000);
  CHECK(describe_notes(run->notes).find("what stands before is read") != std::string::npos);
}

}  // namespace
}  // namespace spillway
