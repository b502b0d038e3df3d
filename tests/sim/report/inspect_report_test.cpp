#include "sim/report/inspect_report.h"

#include <doctest/doctest.h>

#include "model/base/format.h"
#include "tests/model/residuals/toy_scan.h"
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
using testing::toy_program;

constexpr const char* kOnlyParameter = "ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n";
constexpr const char* kNothing = "ENTRY %main {\n  ROOT %t = () tuple()\n}\n";

TEST_CASE("the JSON of inspect keeps its contract") {
  struct Row {
    const char* dump;
    std::size_t residuals;
  };
  for (const Row& row : {Row{"keep", 6}, Row{"offload_qkv", 4}, Row{"offload_all", 6}}) {
    CAPTURE(row.dump);
    const Example example = read_example(row.dump);
    const InspectReport report = make_inspect_report(example.program, example.names);
    const Json json = Json::parse(render_json(report));
    testing::check_units(json);
    CHECK(json["schema"] == "spillway.inspect/1");
    check_fields(json, {{"program", Is::kObject},
                        {"memory", Is::kObject},
                        {"transfers", Is::kObject},
                        {"dot_flops_per_step", Is::kNumber},
                        {"flops_per_step", Is::kNumber},
                        {"xla_cost_analysis_flops", Is::kNumber},
                        {"residuals", Is::kList},
                        {"live_at_peak", Is::kList},
                        {"hbm_curve", Is::kList},
                        {"diagnostics", Is::kList}});
    check_fields(json["program"], {{"name", Is::kText},
                                   {"instructions", Is::kInteger},
                                   {"computations", Is::kInteger},
                                   {"scheduled", Is::kFlag}});
    check_fields(json["memory"], {{"argument_bytes", Is::kInteger},
                                  {"output_bytes", Is::kInteger},
                                  {"alias_bytes", Is::kInteger},
                                  {"temp_bytes", Is::kInteger},
                                  {"total_device_bytes", Is::kInteger},
                                  {"live_peak_bytes", Is::kInteger},
                                  {"no_fragmentation_bytes", Is::kInteger},
                                  {"minimal_order_bytes", Is::kInteger},
                                  {"largest_allocation_bytes", Is::kInteger},
                                  {"host_temp_bytes", Is::kInteger},
                                  {"host_argument_bytes", Is::kInteger},
                                  {"host_output_bytes", Is::kInteger}});
    check_fields(json["transfers"],
                 {{"d2h_bytes_per_step", Is::kInteger}, {"h2d_bytes_per_step", Is::kInteger}});
    CHECK(json["memory"]["minimal_order_bytes"] <= json["memory"]["total_device_bytes"]);
    CHECK(json["residuals"].size() == row.residuals);
    for (const Json& residual : json["residuals"]) {
      check_fields(residual, {{"id", Is::kText},
                              {"names", Is::kList},
                              {"layers", Is::kInteger},
                              {"bytes_per_layer", Is::kInteger},
                              {"total_bytes", Is::kInteger},
                              {"placement", Is::kText},
                              {"defined_at", Is::kInteger},
                              {"last_forward_use", Is::kInteger},
                              {"first_backward_use", Is::kInteger},
                              {"last_use", Is::kInteger}});
      CHECK((residual["placement"] == "device" || residual["placement"] == "pinned_host"));
      CHECK(residual["total_bytes"] == residual["layers"].get<std::int64_t>() *
                                           residual["bytes_per_layer"].get<std::int64_t>());
      CHECK(residual["defined_at"] <= residual["last_forward_use"]);
      CHECK(residual["last_forward_use"] < residual["first_backward_use"]);
      CHECK(residual["first_backward_use"] <= residual["last_use"]);
    }
    CHECK_FALSE(json["live_at_peak"].empty());
    std::int64_t live = 0;
    for (const Json& buffer : json["live_at_peak"]) {
      check_fields(buffer, {{"name", Is::kText},
                            {"bytes", Is::kInteger},
                            {"class", Is::kText},
                            {"layer", Is::kIntegerOrNull}});
      live += buffer["bytes"].get<std::int64_t>();
    }
    CHECK(live == json["memory"]["live_peak_bytes"]);
    std::int64_t highest = 0, before = -1;
    for (const Json& point : json["hbm_curve"]) {
      REQUIRE(point.size() == 2);
      REQUIRE(testing::has_type(point[0], Is::kInteger));
      REQUIRE(testing::has_type(point[1], Is::kInteger));
      CHECK(point[0] > before);
      before = point[0];
      highest = std::max(highest, point[1].get<std::int64_t>());
    }
    CHECK(highest == json["memory"]["live_peak_bytes"]);
    for (const Json& diagnostic : json["diagnostics"]) {
      check_fields(diagnostic,
                   {{"code", Is::kText}, {"severity", Is::kText}, {"message", Is::kText}});
      CHECK((diagnostic["severity"] == "info" || diagnostic["severity"] == "warning"));
    }
    // Text and JSON say the same.
    const std::string text = render_text(report);
    check_text(text);
    check_tables(text, {"HBM of one device", "Live at the peak", "Residuals", "What to know"});
    const std::string total = line_with(text, "total ");
    CHECK(total.ends_with(format_count(json["memory"]["total_device_bytes"].get<std::int64_t>()) +
                          " B"));
  }
}

TEST_CASE("programs that hold little are answered like others") {
  struct Row {
    const char* name;
    std::string text;
    std::int64_t total;
    std::size_t live;
  };
  const Row rows[] = {
      {"a parameter", kOnlyParameter, 32, 1},
      {"nothing", kNothing, 0, 0},
      {"a scan", testing::ToyScan{}.text(), -1, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = toy_program(row.text);
    const InspectReport report = make_inspect_report(program, {});
    const std::string text = render_text(report);
    CAPTURE(text);
    check_text(text);
    check_tables(text, {"HBM of one device", "  size  class", "Residuals", "What to know"});
    const Json json = Json::parse(render_json(report));
    testing::check_units(json);
    if (row.total >= 0) CHECK(json["memory"]["total_device_bytes"] == row.total);
    CHECK(json["live_at_peak"].size() >= row.live);
  }
}

TEST_CASE("what the order costs stands beside the total") {
  // Both of 2560 bytes at once as given; one would do at a time.
  const Program wasteful = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[640]{0} custom-call(%a), custom_call_target="f"
  %y = f32[640]{0} custom-call(%a), custom_call_target="f"
  %u = f32[64]{0} custom-call(%x), custom_call_target="f"
  %v = f32[64]{0} custom-call(%y), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%u, %v), custom_call_target="f"
)");
  const InspectReport report = make_inspect_report(wasteful, {});
  const Json memory = Json::parse(render_json(report))["memory"];
  CHECK(memory["total_device_bytes"] == 256 + 256 + 2 * 2560 + 256);
  CHECK(memory["minimal_order_bytes"] == 256 + 256 + 2560 + 2 * 256);
  CHECK(line_with(render_text(report), "in a memory-minimal order")
            .ends_with("the order costs 2.25 KiB (39.1 %), found by: list"));
  const Program best = toy_program(kOnlyParameter);
  const InspectReport nothing_better = make_inspect_report(best, {});
  CHECK(Json::parse(render_json(nothing_better))["memory"]["minimal_order_bytes"] == 32);
  CHECK(line_with(render_text(nothing_better), "in a memory-minimal order")
            .ends_with("no scheduler for memory found an order that needs less"));
}

TEST_CASE("a module without an order is read as far as that goes") {
  const Program program = testing::read_module(std::string("HloModule toy\n\n") + kOnlyParameter);
  const InspectReport report = make_inspect_report(program, {});
  const Json json = Json::parse(render_json(report));
  CHECK(json["program"]["scheduled"] == false);
  check_fields(json, {{"memory", Is::kNull},
                      {"transfers", Is::kNull},
                      {"dot_flops_per_step", Is::kNumber},
                      {"flops_per_step", Is::kNumber},
                      {"xla_cost_analysis_flops", Is::kNumber}});
  for (const char* list : {"residuals", "live_at_peak", "hbm_curve"}) CHECK(json[list].empty());
  REQUIRE(json["diagnostics"].size() == 1);
  CHECK(json["diagnostics"][0]["code"] == "not-scheduled");
  CHECK(json["diagnostics"][0]["severity"] == "warning");
  const std::string text = render_text(report);
  check_text(text);
  CHECK(text.find("HBM") == std::string::npos);
  CHECK(line_with(text, "warning").ends_with("not-scheduled"));
}

TEST_CASE("names that are no UTF-8 leave the JSON readable") {
  const Program program = toy_program(
      "ENTRY %main {\n  ROOT %p = f32[8]{0} parameter(0), metadata={op_name=\"a\xff\"}\n}\n");
  const Json json = Json::parse(render_json(make_inspect_report(program, {})));
  CHECK(json["live_at_peak"][0]["op_name"] == "a\ufffd");
}

}  // namespace
}  // namespace spillway
