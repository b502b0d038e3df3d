#include "model/run/chrome_trace.h"

#include <doctest/doctest.h>

#include "model/base/gzip.h"
#include "model/run/read_run.h"
#include "tests/support/describe_run.h"
#include "tests/support/temporary_folder.h"

namespace spillway {
namespace {

using testing::describe_copies;
using testing::describe_instructions;
using testing::describe_notes;

/// The process and its threads are named last, which is as good.
const std::string kEvents = R"json(
  {"ph":"X","pid":1,"tid":13,"ts":1.0,"dur":2.0,"name":"k",
   "args":{"hlo_op":"gemm.2","hlo_module":"jit_step"}},
  {"ph":"X","pid":1,"tid":14,"ts":1.5,"dur":2,"name":"MemcpyD2H",
   "args":{"hlo_op":"copy-start.3","hlo_module":"jit_step",
           "memcpy_details":"kind_src:device kind_dst:pinned size:100000 dest:0 async:1"}},
  {"ph":"X","pid":701,"tid":1,"ts":0,"dur":9,"name":"python"},
  {"ph":"X","pid":1,"tid":99,"ts":1.0,"dur":2.0,"name":"gemm.2","args":{}},
  {"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:3"}},
  {"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
  {"ph":"M","pid":1,"tid":13,"name":"thread_name","args":{"name":"Stream #13(Compute)"}},
  {"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14(MemcpyD2H)"}},
  {"ph":"M","pid":1,"tid":99,"name":"thread_name","args":{"name":"XLA Ops"}})json";

TEST_CASE("slices of a device's streams") {
  const testing::TemporaryFolder folder;
  const std::string whole = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + kEvents + "]}";
  const std::string texts[] = {whole, " \n" + whole, "[" + kEvents + "]", gzip(whole)};
  for (const std::string& text : texts) {
    const auto run = read_run(folder.write("trace", text));
    REQUIRE(run.ok());
    CHECK(run->format == RunFormat::kChromeTrace);
    CHECK(describe_instructions(*run) ==
          "jit_step/gemm.2 2.000 us x1 (1 launches) on Stream #13(Compute)\n"
          "jit_step/copy-start.3 2.000 us x1 (1 launches) on Stream #14(MemcpyD2H)\n");
    CHECK(describe_copies(*run) ==
          "device to host, device to pinned: 1 of 100000 B at 50.00 GB/s\n");
    CHECK(run->streams[0].device == 3);
    CHECK(run->streams[1].copies_beside_kernels.value() == doctest::Approx(1.5e-6));
    CHECK(describe_notes(run->notes) == "");
  }
}

TEST_CASE("a text that ends in the middle keeps what stands before") {
  const std::string names = R"json(
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
    {"ph":"M","pid":1,"tid":13,"name":"thread_name","args":{"name":"Stream #13(Compute)"}},)json";
  const auto run = parse_chrome_trace("{\"traceEvents\":[" + names + kEvents.substr(0, 200), "t");
  REQUIRE(run.ok());
  CHECK(describe_instructions(*run) ==
        "jit_step/gemm.2 2.000 us x1 (1 launches) on Stream #13(Compute)\n");
  CHECK(describe_notes(run->notes) ==
        "the text ends or breaks after 3 events: what stands before is read\n");
}

TEST_CASE("what is no trace of a GPU") {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"{\"a\": 1}",
       "t: error: is JSON, but has no traceEvents\n  give the .trace.json.gz or the "
       ".xplane.pb of jax.profiler"},
      {"{\"traceEvents\": []}",
       "t: error: no GPU ran anything in this trace\n  give a trace of jax.profiler from a machine "
       "with a GPU"},
      {"{oops", "t:1:2: error: no JSON of a trace\n   1 | {oops\n     |  ^"},
  };
  for (const Row& row : rows) {
    const auto run = parse_chrome_trace(row.text, "t");
    REQUIRE_FALSE(run.ok());
    CHECK(to_text(run.error()) == row.expected);
  }
}

}  // namespace
}  // namespace spillway
