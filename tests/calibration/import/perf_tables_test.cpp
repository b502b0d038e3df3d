#include "calibration/import/perf_tables.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "calibration/import/text_proto.h"
#include "tests/calibration/synthetic.h"
#include "tests/support/describe_measurements.h"

namespace spillway::calibration {
namespace {

using testing::describe_skipped;
using testing::shipped_profile;

/// In XLA's form; the numbers are ours.
const char* const kProducts = R"pb(
  # made by hand
  entries {
    key: "sm_90"
    value {
      entries {
        b: 1
        m: 256
        n: 512
        k: 1024
        flops { key: "bf16xbf16->bf16" value: 100000000000000 }
        flops { key: "f32xf32->f32" value: 50000000000000 }
        flops { key: "f8e4m3fnxf8e5m2->bf16" value: 200000000000000 }
        flops { key: "f8e4m3fnxf8e4m3fn->bf16" value: 9000000000000000 }
        flops { key: "u4xbf16->bf16" value: 1 }
      }
    }
  }
  entries {
    key: "sm_100_B200"
    value {
      entries {
        b: 2
        m: 64
        n: 64
        k: 64
        flops { key: "bf16xbf16->bf16" value: 1e12 }
      }
    }
  }
  entries {
    key: "sm_100_GB200"
    value {
      entries {
        b: 4
        m: 64
        n: 64
        k: 64
        flops { key: "bf16xbf16->bf16" value: 1e12 }
      }
    }
  }
)pb";

std::string entry(const std::string& opcode, const std::string& group, const char* rate) {
  return fmt::format(
      "entries {{ instruction {{ opcode: \"{}\" shape {{ element_type: F32 dimensions: 1024 "
      "dimensions: 4 }} {} }} fingerprint: \"x\" network_throughput_bytes_per_sec: {} }}\n",
      opcode, group, rate);
}

Result<Measurements> read(const std::string& text, const char* base) {
  return read_perf_table(text, "table.txtpb", shipped_profile(base));
}

TEST_CASE("matrix products of the device, by the type of their operands") {
  REQUIRE(is_perf_table(kProducts));
  const Result<Measurements> m = read(kProducts, "h100");
  REQUIRE(m.ok());
  std::string text;
  for (const GemmSample& gemm : m->gemms)
    text += fmt::format("{} {}x{}x{}x{} {:.3f} us\n", gemm.type, gemm.batch.value(), gemm.m.value(),
                        gemm.n.value(), gemm.k.value(), gemm.time.value() * 1e6);
  CHECK(text ==
        "bf16 1x256x512x1024 2.684 us\ntf32 1x256x512x1024 5.369 us\nf8 1x256x512x1024 1.342 us\n");
  CHECK(describe_skipped(*m) ==
        "products of u4xbf16->bf16: no type that profiles have\n"
        "1 products faster than the device's peak: of a product that becomes several kernels the "
        "table has the time of one\n");
}

TEST_CASE("of several devices of one capability the name decides") {
  CHECK(read(kProducts, "b200")->gemms.front().batch == Count(2));
  CHECK(read(kProducts, "gb200")->gemms.front().batch == Count(4));
  const Result<Measurements> none = read(kProducts, "a100");
  REQUIRE_FALSE(none.ok());
  CHECK(to_text(none.error()) ==
        "table.txtpb: error: has no table of a device with compute capability 8.0\n"
        "  it has sm_90, sm_100_B200, sm_100_GB200; --base names the machine");
}

TEST_CASE("collectives: the full tensor, the size of a group") {
  const std::string iota =
      "iota_collective_device_list { num_replica_groups: 4 num_devices_per_group: 2 }";
  const std::string text =
      "entries { key: \"sm_90\" value {\n" + entry("all-gather", iota, "1000000000") +
      entry("reduce-scatter", iota, "1000000000") +
      entry("all-reduce", "replica_groups { replica_ids: 0 replica_ids: 1 replica_ids: 2 }",
            "1e9") +
      entry("collective-permute",
            "source_target_pairs { target: 1 } source_target_pairs { source: 1 }", "1e9") +
      entry("all-to-all", iota, "0") + "} }\n";
  REQUIRE(is_perf_table(text));
  const Result<Measurements> m = read(text, "h100");
  REQUIRE(m.ok());
  std::string described;
  for (const CollectiveSample& c : m->collectives)
    described += fmt::format("{} of {}: {} B {:.3f} us\n", static_cast<int>(c.collective),
                             c.gpus.value(), c.bytes.value(), c.time.value() * 1e6);
  CHECK(described ==
        "0 of 2: 16384 B 16.384 us\n"
        "1 of 2: 32768 B 32.768 us\n"  // its shape is the part that stays on a GPU
        "2 of 3: 16384 B 16.384 us\n"
        "4 of 2: 16384 B 16.384 us\n");
  CHECK(describe_skipped(*m) == "1 entries: no collective, or without rate or group\n");
}

TEST_CASE("text protos that are damaged say where") {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row rows[] = {
      {"entries { key: \"sm_90", "t:1:16: error: a string without an end"},
      {"entries { key: \"a\" ", "t:1:20: error: the text ends inside a message"},
      {"a: 1 }", "t:1:6: error: a brace that closes nothing"},
      {"a: ]", "t:1:4: error: a value expected"},
      {"{", "t:1:1: error: the name of a field expected"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Result<ProtoNode> read = parse_text_proto(row.text, "t");
    REQUIRE_FALSE(read.ok());
    CHECK(to_text(read.error()).starts_with(row.expected));
  }
  std::string deep;
  for (int k = 0; k < 200; ++k) deep += "a { ";
  CHECK(parse_text_proto(deep, "t").error().text == "messages within messages, without end");
}

}  // namespace
}  // namespace spillway::calibration
