#include "sim/report/simulate_report.h"

#include <doctest/doctest.h>

#include <set>

#include "model/base/format.h"
#include "sim/report/exposed_text.h"
#include "tests/sim/planner/example.h"
#include "tests/sim/report/rendered.h"

namespace spillway {
namespace {

using testing::check_fields;
using testing::check_tables;
using testing::check_text;
using testing::Example;
using testing::Is;
using testing::Json;
using testing::line_with;
using testing::read_example;
using testing::toy_example;

SimResult run(const Example& e) {
  return testing::value_or_fail(
      simulate(e.program, e.schedule, assign_memory(e.program, e.schedule), e.profile, e.topology));
}

TEST_CASE("the JSON of simulate keeps its contract") {
  struct Row {
    const char* dump;
    const char* machine;
  };
  const Row rows[] = {{"keep", "gb200"}, {"offload_qkv", "gb200"}, {"offload_all", "h100"}};
  for (const Row& row : rows) {
    CAPTURE(row.dump);
    const Example example = read_example(row.dump, row.machine);
    const SimResult result = run(example);
    const Json json = Json::parse(render_json(example.program, example.profile, result));
    testing::check_units(json);
    CHECK(json["schema"] == "spillway.simulate/1");
    check_fields(json, {{"step_seconds", Is::kNumber},
                        {"compute_busy_seconds", Is::kNumber},
                        {"d2h_busy_seconds", Is::kNumber},
                        {"h2d_busy_seconds", Is::kNumber},
                        {"exposed_d2h_seconds", Is::kNumber},
                        {"exposed_h2d_seconds", Is::kNumber},
                        {"exposed_collective_seconds", Is::kNumber},
                        {"peak_device_bytes", Is::kInteger},
                        {"streams", Is::kList},
                        {"exposed", Is::kList},
                        {"assumptions", Is::kList}});
    CHECK(json["step_seconds"].get<double>() >= json["compute_busy_seconds"].get<double>());
    CHECK_FALSE(json["streams"].empty());
    for (const Json& use : json["streams"]) {
      check_fields(use, {{"instruction", Is::kText}, {"stream", Is::kText}});
      const std::string stream = use["stream"];
      CAPTURE(stream);
      CHECK((stream == "memcpy_d2h_stream" || stream == "memcpy_h2d_stream" ||
             stream.starts_with("computation_stream[") ||
             stream.starts_with("communication_stream[")));
    }
    CHECK_FALSE(json["exposed"].empty());
    const std::set<std::string> causes = {"link",        "fabric",     "queue",   "contention",
                                          "issued-late", "done-early", "latency", "synchronous"};
    double longest = json["exposed"][0]["seconds"];
    for (const Json& wait : json["exposed"]) {
      check_fields(wait,
                   {{"instruction", Is::kText}, {"seconds", Is::kNumber}, {"cause", Is::kText}});
      CHECK(causes.contains(wait["cause"].get<std::string>()));
      CHECK(wait["seconds"] > 0);
      CHECK(wait["seconds"] <= longest);
      longest = wait["seconds"];
    }
    for (const Json& assumption : json["assumptions"]) CHECK(assumption.is_string());

    const std::string text = render_text(example.program, example.profile, result);
    check_text(text);
    check_tables(text, {"Step", "Exposed"});
    CHECK(line_with(text, "Step ")
              .find(format_seconds(Seconds(json["step_seconds"].get<double>()))) !=
          std::string::npos);
    CHECK(line_with(text, "HBM ").find(format_bytes(result.memory.total_device)) !=
          std::string::npos);
  }
}

TEST_CASE("a step of no time has no rate") {
  const Example example = toy_example("ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n");
  const SimResult result = run(example);
  const std::string text = render_text(example.program, example.profile, result);
  check_text(text);
  CHECK(line_with(text, "Step") == "Step                  0 s  0 FLOP of matrix products");
  CHECK(line_with(text, "Nothing is exposed") != "");
  const Json json = Json::parse(render_json(example.program, example.profile, result));
  testing::check_units(json);
  CHECK(json["step_seconds"] == 0);
  CHECK(json["streams"].empty());
  CHECK(json["exposed"].empty());
}

TEST_CASE("what is exposed is listed, the longest first, and what is left out is counted") {
  // Three offloads of 12, 24 and 48 bytes, each waited for at once.
  std::string text = "ENTRY %main {\n";
  const char* const sizes[] = {"3", "6", "12"};
  for (int k = 0; k < 3; ++k) {
    const std::string n = std::to_string(k);
    const std::string array = "f32[" + std::string(sizes[k]) + "]{0";
    text += "  %x" + n + " = " + array + "} parameter(" + n + ")\n  %out" + n + " = (" + array +
            ":S(5)}, " + array + "}, u32[]) copy-start(%x" + n + ")\n  %done" + n + " = " + array +
            ":S(5)} copy-done(%out" + n + ")\n";
  }
  const Example example = toy_example(text + "  ROOT %t = () tuple()\n}\n");
  const SimResult result = run(example);
  const auto listed = [&](std::size_t rows) {
    std::vector<std::string> first_words;
    for (const std::string& line : testing::lines_of(exposed_text(example.program, result, rows)))
      first_words.push_back(line.substr(0, line.find(' ')));
    return first_words;
  };
  CHECK(listed(3) == std::vector<std::string>{"Exposed", "out2", "out1", "out0"});
  CHECK(listed(9) == listed(3));
  CHECK(listed(1) == std::vector<std::string>{"Exposed", "out2", "…"});
  CHECK(line_with(exposed_text(example.program, result, 1), "…") == "… 2 more");
  for (const ExposedWait& wait : result.exposed) CHECK(kind_of(wait) == "offload");
}

TEST_CASE("what was waited for is called by its kind") {
  struct Row {
    std::optional<TransferDirection> direction;
    bool collective;
    const char* expected;
  };
  const Row rows[] = {{TransferDirection::kDeviceToHost, false, "offload"},
                      {TransferDirection::kHostToDevice, false, "reload"},
                      {std::nullopt, true, "collective"},
                      {std::nullopt, false, "slice"}};
  for (const Row& row : rows) {
    ExposedWait wait;
    wait.direction = row.direction;
    wait.collective = row.collective;
    CHECK(kind_of(wait) == row.expected);
  }
  ExposedWait synchronous;
  synchronous.collective = true;
  synchronous.reason = StallReason::kSynchronous;
  CHECK(kind_of(synchronous) == "synchronous collective");
}

TEST_CASE("names that are no UTF-8 leave the JSON readable") {
  Example example = toy_example("ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n");
  example.program.path = "dump\xff.txt";
  const Json json = Json::parse(render_json(example.program, example.profile, run(example)));
  CHECK(json["program"]["path"] == "dump\ufffd.txt");
}

}  // namespace
}  // namespace spillway
