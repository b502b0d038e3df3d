#include "sim/report/measured_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/hardware/read_profile.h"
#include "tests/golden.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

/// An offload beside a kernel, a loop of three trips around another.
Program step() {
  return testing::read_module(
      "HloModule jit_step, is_scheduled=true\n\n"
      "%body {\n  %p = (s32[], f32[1000000]) parameter(0)\n"
      "  %i = s32[] get-tuple-element(%p), index=0\n"
      "  %x = f32[1000000] get-tuple-element(%p), index=1\n"
      "  %y = f32[1000000] negate(%x)\n"
      "  ROOT %next = (s32[], f32[1000000]) tuple(%i, %y)\n}\n\n"
      "%condition {\n  %q = (s32[], f32[1000000]) parameter(0)\n"
      "  ROOT %less = pred[] constant(true)\n}\n\n"
      "ENTRY %main {\n  %a = f32[1000000] parameter(0)\n  %zero = s32[] parameter(1)\n"
      "  %exp.1 = f32[1000000] exponential(%a)\n"
      "  %out = (f32[1000000]{0:S(5)}, f32[1000000], u32[]) copy-start(%exp.1)\n"
      "  %in = (s32[], f32[1000000]) tuple(%zero, %exp.1)\n"
      "  %loop = (s32[], f32[1000000]) while(%in), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"3\"}}\n"
      "  %out.done = f32[1000000]{0:S(5)} copy-done(%out)\n"
      "  %result = f32[1000000] get-tuple-element(%loop), index=1\n"
      "  ROOT %r = (f32[1000000], f32[1000000]{0:S(5)}) tuple(%result, %out.done)\n}\n");
}

struct Simulated {
  Program program;
  HardwareProfile profile;
  PreparedStep prepared;
  engine::EngineResult run;
};

Simulated simulated() {
  Program program = step();
  HardwareProfile profile = read_profile(testing::source_path("hw_profiles/h100.yaml")).value();
  const Schedule schedule = testing::toy_schedule(program);
  const MemoryAssignment memory = assign_memory(program, schedule);
  PreparedStep prepared =
      prepare_step(program, schedule, memory, profile, make_topology(1, profile)).value();
  engine::EngineResult run = run_step(program, prepared).value();
  return {std::move(program), std::move(profile), std::move(prepared), std::move(run)};
}

MeasuredRun measured(std::initializer_list<std::pair<const char*, double>> times) {
  MeasuredRun run;
  run.path = "run.sqlite";
  run.format = RunFormat::kNsightSystems;
  run.read = {"4 kernels, 1 copy on 1 device"};
  for (const auto& [name, us] : times) {
    MeasuredInstruction in;
    in.name = name;
    in.module = "jit_step";
    in.time = Seconds(us * 1e-6);
    in.count = 1;
    run.instructions.push_back(in);
  }
  MeasuredModule module;
  module.name = "jit_step";
  module.executions = 5;
  module.time = Seconds(200e-6);
  run.modules.push_back(module);
  return run;
}

TEST_CASE("time lost counts every execution, and sorts") {
  const Simulated s = simulated();
  const MeasuredReport report = make_measured_report(
      s.program, s.prepared, s.run, measured({{"exp.1", 40}, {"y", 20}, {"out", 400}}));
  REQUIRE(report.instructions.size() == 3);
  std::string names;
  for (const MeasuredAgainst& row : report.instructions) {
    names += std::string(s.program[row.id].name) + fmt::format(" x{} ", row.runs);
    CHECK(row.lost().value() ==
          doctest::Approx((row.measured - row.predicted).value() * static_cast<double>(row.runs)));
  }
  CHECK(names == "out x1 y x3 exp.1 x1 ");
  const MeasuredAgainst& copy = report.instructions[0];
  CHECK(copy.direction == TransferDirection::kDeviceToHost);
  CHECK(copy.bytes == Bytes(4000000));
  // The predicted time is the engine's, not the table's: latency is in it.
  CHECK(copy.predicted > copy.bytes / s.profile.link.device_to_host.value);
  CHECK(report.predicted_step == to_seconds(s.run.makespan));
  REQUIRE(report.step.has_value());
  CHECK(report.unmeasured == 0);
}

TEST_CASE("what was not measured, and names that nobody has") {
  const Simulated s = simulated();
  const MeasuredReport report =
      make_measured_report(s.program, s.prepared, s.run, measured({{"exp.1", 10}, {"gone.7", 3}}));
  CHECK(report.instructions.size() == 1);
  CHECK(report.unmeasured == 2);
  CHECK(report.unmatched == 1);
  CHECK(report.unmeasured_time > Seconds(0));
}

TEST_CASE("the run of another program says so") {
  const Simulated s = simulated();
  const MeasuredReport report =
      make_measured_report(s.program, s.prepared, s.run, measured({{"gone.7", 3}}));
  const std::string text = measured_text(s.program, report);
  CHECK(text.find("No instruction of the program is in that run") != std::string::npos);
}

TEST_CASE("measured as predicted loses nothing") {
  const Simulated s = simulated();
  MeasuredReport report = make_measured_report(s.program, s.prepared, s.run,
                                               measured({{"exp.1", 1}, {"y", 1}, {"out", 1}}));
  MeasuredRun exact = measured({});
  for (const MeasuredAgainst& row : report.instructions) {
    MeasuredInstruction in;
    in.name = s.program[row.id].name;
    in.module = "jit_step";
    in.time = row.predicted;
    in.count = 1;
    exact.instructions.push_back(in);
  }
  report = make_measured_report(s.program, s.prepared, s.run, exact);
  for (const MeasuredAgainst& row : report.instructions)
    CHECK(row.lost().value() == doctest::Approx(0));
  for (const MeasuredClass& entry : report.classes)
    CHECK(entry.predicted.value() == doctest::Approx(entry.measured.value()));
}

}  // namespace
}  // namespace spillway
