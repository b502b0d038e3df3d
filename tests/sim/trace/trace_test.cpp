// The structure of a trace; what Perfetto makes of it is asked by tests/perfetto.
#include "sim/trace/trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/hardware/read_profile.h"
#include "tests/golden.h"
#include "tests/model/diagnostics/annotated_scan.h"
#include "tests/model/hardware/toy_profile.h"

namespace spillway {
namespace {

using nlohmann::json;

struct Traced {
  Trace trace;
  json events;
  SimResult result;
  MemoryReport memory;
};

Traced trace_of(const Program& program, const TraceOptions& options = {}) {
  const auto profile = parse_profile(std::string(testing::kToyProfile), "toy.yaml");
  REQUIRE(profile.ok());
  const Schedule schedule = testing::toy_schedule(program);
  const MemoryAssignment memory = assign_memory(program, schedule);
  const Topology topology = make_topology(program.device_count(), *profile);
  const auto prepared = prepare_step(program, schedule, memory, *profile, topology);
  REQUIRE(prepared.ok());
  const auto result = simulate(program, memory, *profile, topology, *prepared);
  REQUIRE(result.ok());
  const auto trace = make_trace(program, memory, *profile, *prepared, *result,
                                find_residuals(program, memory, {}), options);
  REQUIRE(trace.ok());
  return {*trace, json::parse(trace->json)["traceEvents"], *result,
          make_memory_report(program, memory)};
}

/// Forward and backward of four layers; stack `a` goes to the host and back.
Program scan() {
  return testing::toy_program(testing::replaced(
      testing::annotated(testing::walk(768, -256)),
      "body=%forward, backend_config={\"known_trip_count\":{\"n\":\"4\"}}",
      "body=%forward, backend_config={\"known_trip_count\":{\"n\":\"4\"},\"known_init_step\":{"
      "\"init\":\"0\",\"step\":\"1\"},\"known_induction_variable\":{\"tuple_index\":\"0\"}}"));
}

std::vector<json> of_phase(const json& events, std::string_view phase) {
  std::vector<json> found;
  for (const json& event : events)
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

TEST_CASE("a trace stays as it is") {
  testing::check_golden("trace/scan.json", trace_of(scan()).trace.json);
}

TEST_CASE("in each row slices follow one another or lie inside one another") {
  const Traced traced = trace_of(scan());
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> rows;
  for (const json& slice : of_phase(traced.events, "X"))
    rows[{slice["pid"], slice["tid"]}].emplace_back(
        nanoseconds(slice["ts"]), nanoseconds(slice["ts"]) + nanoseconds(slice["dur"]));
  CHECK(rows.size() >= 6);  // loops, main, both copy streams; SMs, both copy engines
  for (auto& [row, slices] : rows) {
    CAPTURE(row.second);
    std::ranges::stable_sort(slices, {}, [](const auto& s) { return s.first; });
    std::vector<std::int64_t> open;
    for (const auto& [from, to] : slices) {
      CHECK(from <= to);
      while (!open.empty() && open.back() <= from) open.pop_back();
      if (!open.empty()) CHECK(to <= open.back());
      open.push_back(to);
    }
  }
}

TEST_CASE("every row and every process has a name") {
  const Traced traced = trace_of(scan());
  std::set<std::pair<int, int>> named;
  for (const json& event : of_phase(traced.events, "M"))
    named.insert({event["pid"], event.value("tid", 0)});
  for (const json& event : of_phase(traced.events, "X")) {
    CHECK(named.contains({event["pid"], event["tid"]}));
    CHECK(named.contains({event["pid"], 0}));
  }
}

TEST_CASE("each reload comes from the offload of its layer, and leads to who reads it") {
  const Traced traced = trace_of(scan());
  CHECK(traced.trace.flows == 4);
  std::map<std::int64_t, std::vector<json>> flows;
  for (const json& event : traced.events)
    if (event["ph"] == "s" || event["ph"] == "t" || event["ph"] == "f")
      flows[event["id"]].push_back(event);
  REQUIRE(flows.size() == 4);
  const auto slice_at = [&](const json& point) {
    for (const json& slice : of_phase(traced.events, "X"))
      if (slice["tid"] == point["tid"] && slice["ts"] == point["ts"] && slice["dur"] > 0)
        return slice;
    FAIL("a flow without a slice");
    return json();
  };
  std::set<std::int64_t> layers;
  for (const auto& [id, points] : flows) {
    REQUIRE(points.size() == 3);
    CHECK(points[2]["bp"] == "e");
    const json from = slice_at(points[0]), to = slice_at(points[1]), reader = slice_at(points[2]);
    CHECK(from["cat"] == "offload");
    CHECK(to["cat"] == "reload");
    CHECK(reader["cat"] == "kernel");
    CHECK(from["args"]["layer"] == to["args"]["layer"]);
    CHECK(from["args"]["iteration"].get<int>() + to["args"]["iteration"].get<int>() == 3);
    CHECK(reader["args"]["iteration"] == to["args"]["iteration"]);
    layers.insert(from["args"]["layer"].get<std::int64_t>());
  }
  CHECK(layers == std::set<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("counters: memory as it is assigned, the link as it is used") {
  const Traced traced = trace_of(scan());
  std::map<std::string, std::vector<std::pair<double, double>>> counters;
  for (const json& event : of_phase(traced.events, "C"))
    for (const auto& [unit, value] : event["args"].items())
      counters[event["name"].get<std::string>() + ", " + unit].emplace_back(
          event["ts"].get<double>() * 1e-6, value.get<double>());
  double most = 0;
  for (const auto& [at, bytes] : counters["HBM in use, bytes"]) most = std::max(most, bytes);
  CHECK(most == static_cast<double>(traced.memory.live_peak.value()));
  CHECK(counters.contains("pinned host memory in use, bytes"));
  // 256 B at 2 B/s and at 4 B/s are not seen at three decimals of a GB/s, but that they begin and
  // end is.
  CHECK(counters.contains("link, device to host, GB/s"));
  CHECK(counters.contains("link, host to device, GB/s"));
}

TEST_CASE("waits say what they are for, and why") {
  const Traced traced = trace_of(scan());
  double waited = 0;
  for (const json& slice : of_phase(traced.events, "X")) {
    if (slice["cat"] != "exposed") continue;
    CHECK(slice["name"].get<std::string>().starts_with("waits for "));
    CHECK_FALSE(slice["args"]["cause"].get<std::string>().empty());
    waited += slice["dur"].get<double>() * 1e-6;
  }
  CHECK(waited ==
        doctest::Approx(
            (traced.result.exposed_device_to_host + traced.result.exposed_host_to_device).value()));
}

TEST_CASE("long loops are cut, and the trace says how much") {
  std::string text = testing::annotated(testing::walk(768, -256));
  const Program whole = testing::toy_program(text);
  const Traced all = trace_of(whole), few = trace_of(whole, {.most_happenings = 1});
  CHECK(all.trace.left_out == 0);
  CHECK(few.trace.left_out > 0);
  CHECK(few.trace.slices < all.trace.slices);
  CHECK(json::parse(few.trace.json)["otherData"]["iterations_left_out"] == few.trace.left_out);
}

TEST_CASE("what the program says is JSON whatever it holds") {
  const Traced traced = trace_of(
      testing::read_entry("  %m = bf16[2,2] parameter(0)\n  ROOT %a = bf16[2,2] dot(%m, %m), "
                          "lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                          "metadata={op_name=\"\xff\"}\n"));
  CHECK(traced.trace.slices == 2);
}

}  // namespace
}  // namespace spillway
