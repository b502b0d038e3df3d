#include "model/hardware/read_profile.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

using testing::kToyProfile;
using testing::toy_with;

TEST_CASE("a profile is read whole") {
  const Result<HardwareProfile> read = parse_profile(std::string(kToyProfile), "toy.yaml");
  REQUIRE_MESSAGE(read.ok(), to_text(read.error()));
  const HardwareProfile& toy = *read;
  CHECK(toy.id == "toy");
  CHECK(toy.name == "Toy machine");
  CHECK(toy.device.compute_capability == "9.9");
  CHECK(toy.device.hbm_capacity.value == Bytes(1024));
  CHECK(toy.device.reserve.origin == Origin{OriginKind::kInferred, "toy"});
  CHECK(toy.link.kind == LinkKind::kPcie);
  CHECK(toy.link.both_directions ==
        Figure<BytesPerSecond>{BytesPerSecond(5), {OriginKind::kMeasured, "toy"}});
  CHECK_FALSE(toy.host.memory_bandwidth_read.has_value());
  CHECK(gpus_per_host(toy.host) == Count(2));
  CHECK(memory_per_gpu(toy.host) == Bytes(2048));
  REQUIRE(toy.scale_up.all_gather.fits.size() == 1);
  CHECK(toy.scale_up.all_gather.fits[0] == CollectiveFit{Count(2), Seconds(1), BytesPerSecond(8)});
  CHECK(toy.scale_out.latency.value == Seconds(2));
}

TEST_CASE("what may be left out is read where it is there") {
  std::string text = toy_with("  gemm_beside_collective:", R"(  gemm_power:
    f8: {value: 1.5 x, origin: measured, source: toy}
  gemm_shape:
    bf16: {overhead: 1 s, depth: 2 s, operands: 3 x, result: 4 x, origin: measured, source: toy}
  gemm_beside_collective:)");
  const std::string fit = "all_reduce: {origin: measured, source: toy, fits: [{gpus: 2, ";
  text.replace(text.find(fit), fit.size(),
               fit + "pipeline: 3 s, slow_bandwidth: 2 B/s, slow_up_to: 16 B, ");
  const Result<HardwareProfile> read = parse_profile(text, "toy.yaml");
  REQUIRE_MESSAGE(read.ok(), to_text(read.error()));
  REQUIRE(read->kernels.gemm_power.size() == 1);
  CHECK(read->kernels.gemm_power.at("f8").value == Factor(1.5));
  REQUIRE(read->kernels.gemm_shape.size() == 1);
  CHECK(read->kernels.gemm_shape.at("bf16") == GemmShape{.overhead = Seconds(1),
                                                         .depth = Seconds(2),
                                                         .operands = Factor(3),
                                                         .result = Factor(4),
                                                         .origin = {OriginKind::kMeasured, "toy"}});
  const CollectiveFit& all_reduce = read->scale_up.all_reduce.fits[0];
  CHECK(all_reduce.pipeline == Seconds(3));
  CHECK(all_reduce.few_channels == FewChannels{BytesPerSecond(2), Bytes(16)});
  const CollectiveFit& all_gather = read->scale_up.all_gather.fits[0];
  CHECK(all_gather.pipeline == Seconds(0));
  CHECK_FALSE(all_gather.few_channels.has_value());
}

TEST_CASE("figures are found by the names that XLA gives types") {
  const FigureTable<Factor> table = {
      {"bf16", {Factor(1), {}}}, {"f8", {Factor(2), {}}}, {"s8", {Factor(3), {}}}};
  CHECK(find_figure(table, "bf16")->value == Factor(1));
  CHECK(find_figure(table, "f8e4m3fn")->value == Factor(2));
  CHECK(find_figure(table, "f8e5m2")->value == Factor(2));
  CHECK(find_figure(table, "u8")->value == Factor(3));
  CHECK(find_figure(table, "f4e2m1fn") == nullptr);
  CHECK(find_figure(table, "pred") == nullptr);
  KernelCosts kernels;
  kernels.gemm = table;
  CHECK(gemm_factor(kernels, "f8e5m2").value == Factor(2));
  CHECK(gemm_factor(kernels, "tf32").value == Factor(1));
}

TEST_CASE("an error points at the line and says what would be right") {
  struct Row {
    const char* name;
    const char* from;
    const char* to;
    std::string expected;
  };
  const Row rows[] = {
      {"a key that is misspelt is reported, not the one that is missing because of it",
       "  hbm_bandwidth: {value: 32", "  hbm_bandwith: {value: 32",
       "toy.yaml:12:3: error: 'hbm_bandwith' of 'device' is not a known key\n"
       "  12 |   hbm_bandwith: {value: 32 B/s, origin: specification, source: toy}\n"
       "     |   ^ did you mean 'hbm_bandwidth'?"},
      {"a key nobody knows", "id: toy", "id: toy\nowner: me",
       "toy.yaml:3:1: error: 'owner' is not a known key\n"
       "   3 | owner: me\n"
       "     | ^ known are schema, id, name, device, kernels, link, host, fabric"},
      {"a key given twice", "  clock: {value: 4 Hz, origin: specification, source: toy}\n",
       "  clock: {value: 4 Hz, origin: specification, source: toy}\n"
       "  clock: {value: 5 Hz, origin: specification, source: toy}\n",
       "toy.yaml:9:3: error: 'clock' of 'device' is given twice\n"
       "   9 |   clock: {value: 5 Hz, origin: specification, source: toy}\n"
       "     |   ^ first in line 8"},
      {"a key given twice inside a figure", "{value: 16 B,", "{value: 16 B, value: 17 B,",
       "toy.yaml:10:30: error: 'value' of 'l2_capacity' is given twice\n"
       "  10 |   l2_capacity: {value: 16 B, value: 17 B, origin: specification, source: toy}\n"
       "     |                              ^ first in line 10"},
      {"a figure is missing", "  reserve: {value: 64 B, origin: inferred, source: toy}\n", "",
       "toy.yaml:4:1: error: 'reserve' of 'device' is missing\n"
       "   4 | device:\n"
       "     | ^ for example reserve: {value: \"480 GB\", origin: measured, source: \"who measured "
       "it, "
       "how\"}"},
      {"an origin is missing", "{value: 64 B, origin: inferred,", "{value: 64 B,",
       "toy.yaml:13:3: error: 'origin' of 'reserve' is missing\n"
       "  13 |   reserve: {value: 64 B, source: toy}\n"
       "     |   ^ for example origin: specification"},
      {"a source is empty", "{value: 64 B, origin: inferred, source: toy}",
       "{value: 64 B, origin: inferred, source: \"\"}",
       "toy.yaml:13:44: error: 'source' of 'reserve' needs a value\n"
       "  13 |   reserve: {value: 64 B, origin: inferred, source: \"\"}\n"
       "     |                                            ^ for example source: \"who measured it, "
       "how\""},
      {"an origin nobody knows", "{value: 64 B, origin: inferred,",
       "{value: 64 B, origin: guessed,",
       "toy.yaml:13:34: error: 'origin' of 'reserve' is 'guessed'\n"
       "  13 |   reserve: {value: 64 B, origin: guessed, source: toy}\n"
       "     |                                  ^ one of specification, measured, inferred"},
      {"a figure without origin", "{value: 1024 B, origin: specification, source: toy}", "1024 B",
       "toy.yaml:11:17: error: 'hbm_capacity' of 'device' needs a value and its origin\n"
       "  11 |   hbm_capacity: 1024 B\n"
       "     |                 ^ for example hbm_capacity: {value: \"480 GB\", origin: measured, "
       "source: "
       "\"who measured it, how\"}"},
      {"a number without unit", "{value: 32 B/s,", "{value: 32,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' needs a unit\n"
       "  12 |   hbm_bandwidth: {value: 32, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"the wrong unit", "{value: 32 B/s,", "{value: 32 B,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is in 'B', which is no unit of a rate\n"
       "  12 |   hbm_bandwidth: {value: 32 B, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"not a number", "{value: 32 B/s,", "{value: .nan,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is '.nan', not a rate\n"
       "  12 |   hbm_bandwidth: {value: .nan, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"not finite", "{value: 32 B/s,", "{value: 1e999 B/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is out of range\n"
       "  12 |   hbm_bandwidth: {value: 1e999 B/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"negative", "{value: 32 B/s,", "{value: -32 B/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is negative\n"
       "  12 |   hbm_bandwidth: {value: -32 B/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"zero where that cannot be", "{value: 32 B/s,", "{value: 0 B/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is zero\n"
       "  12 |   hbm_bandwidth: {value: 0 B/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"less than the engine can represent", "{value: 32 B/s,", "{value: 0.3 B/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is outside 1 B/s to 1000 TB/s\n"
       "  12 |   hbm_bandwidth: {value: 0.3 B/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"more than the engine can represent", "{value: 32 B/s,", "{value: 1e30 B/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is outside 1 B/s to 1000 TB/s\n"
       "  12 |   hbm_bandwidth: {value: 1e30 B/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"infinite once its unit counts", "{value: 32 B/s,", "{value: 1e300 TiB/s,",
       "toy.yaml:12:26: error: 'hbm_bandwidth' is out of range\n"
       "  12 |   hbm_bandwidth: {value: 1e300 TiB/s, origin: specification, source: toy}\n"
       "     |                          ^ for example \"4.8 TB/s\""},
      {"a duration beyond any", "gap: {value: 0 s,", "gap: {value: 1e9 s,",
       "toy.yaml:20:16: error: 'gap' is outside 0 s to 3600 s\n"
       "  20 |   gap: {value: 1e9 s, origin: inferred, source: toy}\n"
       "     |                ^ for example \"8 us\""},
      {"a count whose products overflow", "gpus_per_cpu: {value: 2,",
       "gpus_per_cpu: {value: 4000000000,",
       "toy.yaml:41:25: error: 'gpus_per_cpu' is outside 1 to 1000000\n"
       "  41 |   gpus_per_cpu: {value: 4000000000, origin: specification, source: toy}\n"
       "     |                         ^ for example \"132\""},
      {"a matrix product that a collective speeds up", "gemm_beside_collective: {value: 1 x,",
       "gemm_beside_collective: {value: 0.9 x,",
       "toy.yaml:24:35: error: 'gemm_beside_collective' is below 1\n"
       "  24 |   gemm_beside_collective: {value: 0.9 x, origin: inferred, source: toy}\n"
       "     |                                   ^ how many times as long as alone, for example "
       "\"1.6 "
       "x\""},
      {"a negative duration", "gap: {value: 0 s,", "gap: {value: -1 s,",
       "toy.yaml:20:16: error: 'gap' is negative\n"
       "  20 |   gap: {value: -1 s, origin: inferred, source: toy}\n"
       "     |                ^ for example \"8 us\""},
      {"a count that is no whole number", "gpus_per_cpu: {value: 2,", "gpus_per_cpu: {value: 2.5,",
       "toy.yaml:41:25: error: 'gpus_per_cpu' is '2.5', not a whole number\n"
       "  41 |   gpus_per_cpu: {value: 2.5, origin: specification, source: toy}\n"
       "     |                         ^ for example \"132\""},
      {"a rate above its cap", "device_to_host: {value: 2 B/s,", "device_to_host: {value: 450 B/s,",
       "toy.yaml:37:27: error: 'device_to_host' exceeds 'cap_per_direction', 4 B/s\n"
       "  37 |   device_to_host: {value: 450 B/s, origin: measured, source: toy}\n"
       "     |                           ^ a sustained rate is below what the wires carry"},
      {"a kind nobody knows", "  kind: pcie", "  kind: usb",
       "toy.yaml:34:9: error: 'kind' of 'link' is 'usb'\n"
       "  34 |   kind: usb\n"
       "     |         ^ one of nvlink-c2c, pcie"},
      {"a number type nobody knows", "    bf16: {value: 8 FLOP/s",
       "    fp8: {value: 8 FLOP/s, origin: inferred, source: toy}\n    bf16: {value: 8 FLOP/s",
       "toy.yaml:15:5: error: 'fp8' of 'matrix_peak' is not a known key\n"
       "  15 |     fp8: {value: 8 FLOP/s, origin: inferred, source: toy}\n"
       "     |     ^ did you mean 'f8'?"},
      {"a table without the type that every program needs", "    f32: {value: 8",
       "    f64: {value: 8",
       "toy.yaml:16:3: error: 'f32' of 'vector_peak' is missing\n"
       "  16 |   vector_peak:\n"
       "     |   ^ for example f32: {value: \"989.2 TFLOP/s\", origin: measured, source: \"who "
       "measured "
       "it, how\"}"},
      {"a section that is a scalar", "link:\n  kind: pcie\n", "link: pcie\nlonk:\n  kind: pcie\n",
       "toy.yaml:33:1: error: 'link' must be a mapping\n"
       "  33 | link: pcie\n"
       "     | ^ lines of the form 'key: value'"},
      {"a section left empty", "  scale_out:\n", "  scale_out:\n  scale_aut:\n",
       "toy.yaml:60:3: error: 'scale_out' must be a mapping\n"
       "  60 |   scale_out:\n"
       "     |   ^ lines of the form 'key: value'"},
      {"another schema", "spillway.hardware/1", "spillway.hardware/2",
       "toy.yaml:1:9: error: the schema 'spillway.hardware/2' is not known\n"
       "   1 | schema: spillway.hardware/2\n"
       "     |         ^ this version reads spillway.hardware/1"},
      {"no schema", "schema: spillway.hardware/1\n", "",
       "toy.yaml:1:1: error: 'schema' is missing\n"
       "   1 | id: toy\n"
       "     | ^ for example schema: spillway.hardware/1"},
      {"a shape that lacks one of its figures", "  gemm_beside_collective: {value: 1 x",
       "  gemm_shape:\n    bf16: {overhead: 1 s, depth: 1 s, operands: 1 x, origin: inferred, "
       "source: "
       "toy}\n  gemm_beside_collective: {value: 1 x",
       "toy.yaml:25:5: error: 'result' of 'bf16' is missing\n"
       "  25 |     bf16: {overhead: 1 s, depth: 1 s, operands: 1 x, origin: inferred, source: "
       "toy}\n"
       "     |     ^ for example result: \"1.25 x\""},
      {"a rate of few channels without its reach",
       "        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}\n",
       "        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s, slow_bandwidth: 1 B/s}\n",
       "toy.yaml:55:11: error: 'slow_up_to' of 'fits' is missing\n"
       "  55 |         - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s, slow_bandwidth: 1 B/s}\n"
       "     |           ^ for example slow_up_to: \"480 GB\""},
      {"a collective without fits",
       "      fits:\n        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}\n", "      fits: []\n",
       "toy.yaml:54:7: error: 'fits' must be a list with at least one group size\n"
       "  54 |       fits: []\n"
       "     |       ^ for example fits: [{gpus: 8, latency: \"20 us\", bus_bandwidth: \"319 "
       "GB/s\"}]"},
      {"group sizes out of order", "        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}\n",
       "        - {gpus: 2, latency: 1 s, bus_bandwidth: 8 B/s}\n"
       "        - {gpus: 2, latency: 2 s, bus_bandwidth: 8 B/s}\n",
       "toy.yaml:56:11: error: the group sizes of 'fits' must ascend\n"
       "  56 |         - {gpus: 2, latency: 2 s, bus_bandwidth: 8 B/s}\n"
       "     |           ^ sort the rows by 'gpus'"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<HardwareProfile> read = parse_profile(toy_with(row.from, row.to), "toy.yaml");
    REQUIRE_FALSE(read.ok());
    CHECK(to_text(read.error()) == row.expected);
    CHECK(read.error().kind == ErrorKind::kInput);
  }
}

TEST_CASE("a document that is no mapping") {
  for (const char* text : {"[1, 2]", "just words", "~", "- a\n- b\n"}) {
    CAPTURE(text);
    const Result<HardwareProfile> read = parse_profile(text, "x.yaml");
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().text == "a mapping is expected");
  }
}

TEST_CASE("a damaged profile is an error or a profile, never a crash") {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  const std::string_view rubbish = "{}[]:,\"'#&*!|>%@`-? \n\t\0x9\xff";
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    std::string text(kToyProfile);
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.resize(at + 1);
          break;
        case 1:
          text[at] = rubbish[random() % rubbish.size()];
          break;
        case 2:
          text.insert(at, 1, rubbish[random() % rubbish.size()]);
          break;
        default:
          text.erase(at, 1 + random() % 40);
          break;
      }
    }
    const Result<HardwareProfile> read = parse_profile(text, "damaged.yaml");
    if (!read) CHECK_FALSE(to_text(read.error()).empty());
  }
}

}  // namespace
}  // namespace spillway
