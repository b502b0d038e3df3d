// Which scheduler, and by which costs. The truth is what jaxlib 0.12.0.1 compiled for these devices
// under these flags: whether it dumped a schedule of latency hiding, and the costs in it.
#include "model/flags/scheduler_choice.h"

#include <doctest/doctest.h>

#include "model/hardware/read_profile.h"
#include "tests/golden.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

GpuModel gpu(const char* id) {
  const std::string path = testing::source_path("hw_profiles/" + std::string(id) + ".yaml");
  return gpu_model(read_profile(path).value().device);
}

std::string describe(const std::optional<SchedulerChoice>& choice) {
  if (!choice) return "not known";
  if (!choice->hides_latencies) return "off";
  const auto name = [](const std::optional<BelievedCosts>& costs) {
    return costs ? std::string(name_of(*costs)) : std::string("?");
  };
  std::string text = name(choice->costs);
  if (choice->costs != choice->rest) text += ", else " + name(choice->rest);
  return text + (choice->lacks_table ? ", no table" : "");
}

TEST_CASE("as XLA chose, by device and flags") {
  struct Row {
    const char* machine;
    SchedulerFlags flags;
    const char* expected;
  };
  const Row rows[] = {
      {"h100", {}, "speed of light"},
      {"h200", {}, "speed of light"},
      {"gh200", {}, "speed of light"},
      {"b200", {}, "speed of light"},
      {"gb200", {}, "fixed costs, no table"},
      {"gb300", {}, "fixed costs, no table"},
      {"vr200", {}, "fixed costs, no table"},
      {"rtxpro6000", {}, "off"},
      {"a100", {}, "off"},
      {"h100", {.latency_hiding = true}, "speed of light"},
      {"b200", {.latency_hiding = true}, "speed of light"},
      {"gb200", {.latency_hiding = true}, "fixed costs, no table"},
      {"rtxpro6000", {.latency_hiding = true}, "fixed costs"},
      {"a100", {.latency_hiding = true}, "fixed costs"},
      {"h100", {.latency_hiding = false}, "off"},
      {"gb200", {.latency_hiding = false}, "off"},
      {"h100", {.speed_of_light = false}, "off"},
      {"h100", {.latency_hiding = true, .speed_of_light = false}, "fixed costs"},
      {"h100", {.analytical = true}, "analytical"},
      {"gb200", {.analytical = true}, "analytical"},
      {"gb200", {.speed_of_light = false, .analytical = true}, "off"},
      {"a100", {.analytical = true}, "off"},
      {"h100", {.has_profile = true}, "a profile, else speed of light"},
      {"gb200", {.has_profile = true}, "a profile, else fixed costs, no table"},
      {"a100", {.has_profile = true}, "a profile, else fixed costs"},
      {"rtxpro6000", {.has_profile = true}, "a profile, else fixed costs"},
      {"h100", {.speed_of_light = false, .has_profile = true}, "a profile, else fixed costs"},
      // The flag goes before the profile, on every device.
      {"h100", {.latency_hiding = false, .has_profile = true}, "off"},
      {"a100", {.latency_hiding = false, .has_profile = true}, "off"},
      {"gb200", {.latency_hiding = false, .has_profile = true}, "off"},
      // From the sources alone.
      {"h100", {.analytical = true, .has_profile = true}, "a profile, else speed of light"},
      {"a100", {.optimization_level = 1}, "fixed costs"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.machine);
    CAPTURE(row.expected);
    CHECK(describe(choose_scheduler(row.flags, gpu(row.machine))) == row.expected);
  }
}

TEST_CASE("of a device that is not known nothing is guessed") {
  struct Row {
    SchedulerFlags flags;
    const char* expected;
  };
  const Row rows[] = {
      {{}, "not known"},
      {{.latency_hiding = false}, "off"},
      {{.latency_hiding = true}, "?"},
      {{.latency_hiding = true, .speed_of_light = false}, "fixed costs"},
      {{.latency_hiding = true, .analytical = true}, "analytical"},
      {{.has_profile = true}, "a profile, else ?"},
      {{.speed_of_light = false}, "off"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    CHECK(describe(choose_scheduler(row.flags, std::nullopt)) == row.expected);
  }
}

TEST_CASE("XLA asks the program before it takes speed of light by itself") {
  const auto with = [](const std::string& line) {
    return testing::read_entry("  %x = f32[8]{0} parameter(0)\n  " + line + "\n");
  };
  struct Row {
    const char* line;
    bool common;
  };
  const Row rows[] = {
      {"ROOT %y = f32[8]{0} all-to-all(%x), replica_groups={{0,1}}, dimensions={0}", true},
      {"ROOT %y = f32[8]{0} collective-broadcast(%x), replica_groups={{0,1}}", false},
      {"ROOT %y = f32[8]{0} negate(%x), backend_config={\"device_type\":\"DEVICE_TYPE_HOST\"}",
       false},
      {"ROOT %y = f32[8]{0} negate(%x)", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    CHECK(has_only_common_parts(with(row.line)) == row.common);
  }
  CHECK(describe(choose_scheduler({}, gpu("h100"), false)) == "off");
  CHECK(describe(choose_scheduler({.latency_hiding = true}, gpu("h100"), false)) == "fixed costs");
  CHECK(describe(choose_scheduler({.latency_hiding = true}, std::nullopt, false)) == "fixed costs");
}

TEST_CASE("keys of XLA's tables") {
  CHECK(table_key(gpu("gb200")) == "sm_100_GB200");
  CHECK(table_key(gpu("b200")) == "sm_100_B200");
  CHECK(table_key(gpu("gb300")) == "sm_103");
  CHECK(table_key(gpu("h200")) == "sm_90");
}

}  // namespace
}  // namespace spillway
