#include "sim/planner/pgle_advice.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

PgleCopy in_loop() { return {"wrapped_save", Bytes(64 << 20), Seconds(1), true}; }
PgleCopy straight() { return {"copy-start", Bytes(64 << 20), Seconds(1), false}; }

std::string flags_text(const PgleAdvice& advice) {
  std::string text;
  for (const Setting& flag : advice.flags)
    text += (text.empty() ? "" : " ") + flag.name + "=" + flag.value;
  return text;
}

FlagContext on(const char* capability, const char* name, const char* jaxlib = "0.12.0.1") {
  return {.jaxlib = parse_jaxlib_version(jaxlib).value(), .gpu = GpuModel{capability, name}};
}
FlagContext gb200() { return on("10.0", "NVIDIA GB200"); }
FlagContext a100() { return on("8.0", "NVIDIA A100-SXM4-80GB"); }

PgleAdvice advise(const std::vector<PgleCopy>& copies, const PgleSituation& situation) {
  const PgleProfile profile{
      .program = "p", .hardware = "hw", .costs = {}, .copies = copies, .link = {}};
  return advise_pgle(profile, situation, "p.pbtxt");
}

const std::string kProfile = "xla_gpu_pgle_profile_file_or_directory_path";
const std::string kFence = "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes";
const std::string kHiding = "xla_gpu_enable_latency_hiding_scheduler";

TEST_CASE("the profile is recommended where recompiling with it gained") {
  const std::string profile = kProfile + "=p.pbtxt", fence = kFence + "=1048576";
  const PgleSituation hidden{true, Seconds(4), Seconds(4), gb200(), {}};
  const PgleSituation link_bound{true, Seconds(4), Seconds(4.1), gb200(), {}};
  const PgleSituation other_policy{false, Seconds(4), Seconds(1), gb200(), {}};
  const std::vector<PgleCopy> scanned = {in_loop()};
  const std::vector<PgleCopy> unrolled = {in_loop(), straight()};
  struct Row {
    const char* name;
    std::vector<PgleCopy> copies;
    PgleSituation situation;
    bool recommended;
    std::string flags;
  };
  const Row rows[] = {
      {"another program", unrolled, other_policy, false, ""},
      {"nothing copied", {}, hidden, false, ""},
      {"scanned", scanned, hidden, true, profile},
      {"scanned, link-bound", scanned, link_bound, false, ""},
      {"unrolled", unrolled, hidden, true, fence + " " + profile},
      {"unrolled, link-bound", unrolled, link_bound, false, fence},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PgleAdvice advice = advise(row.copies, row.situation);
    CHECK(advice.recommended == row.recommended);
    CHECK(advice.text.starts_with(row.recommended ? "Recommended" : "Not recommended"));
    CHECK(flags_text(advice) == row.flags);
  }
}

TEST_CASE("the user's own flags and the device have a say") {
  const std::string profile = kProfile + "=p.pbtxt", fence = kFence + "=1048576";
  struct Row {
    const char* name;
    FlagContext context;
    FlagSettings users;
    bool recommended;
    std::string flags;
    const char* says;
  };
  const Row rows[] = {
      {"nothing set", gb200(), {}, true, fence + " " + profile, "together with memory fencing"},
      {"switched off: nobody reads it",
       gb200(),
       {{kHiding, "false"}},
       false,
       "",
       "with your --xla_gpu_enable_latency_hiding_scheduler=false XLA does not look at it"},
      {"fenced already", gb200(), {{kFence, "1048576"}}, true, profile, "together with"},
      {"fenced elsewhere",
       gb200(),
       {{kFence, "52428800"}},
       true,
       fence + " " + profile,
       "It takes the place of your "
       "--xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=52428800"},
      {"another profile",
       gb200(),
       {{kProfile, "mine.pbtxt"}},
       true,
       fence + " " + profile,
       "It takes the place of your --xla_gpu_pgle_profile_file_or_directory_path=mine.pbtxt"},
      {"off by default",
       a100(),
       {},
       true,
       fence + " " + profile,
       "It also switches latency hiding on, which is off otherwise"},
      {"off by default, asked for", a100(), {{kHiding, "true"}}, true, fence + " " + profile, ""},
      {"off by default, on by a profile alone",
       a100(),
       {{kProfile, "mine.pbtxt"}},
       true,
       fence + " " + profile,
       "It takes the place of your"},
      {"off by an estimator's flag",
       gb200(),
       {{"xla_gpu_enable_analytical_sol_latency_estimator", "false"}},
       true,
       fence + " " + profile,
       "It also switches latency hiding on"},
      {"no fencing in this version",
       on("9.0", "NVIDIA H200", "0.10.2"),
       {},
       false,
       "",
       "which jaxlib 0.10.2 has not"},
      {"no version that is known",
       on("9.0", "NVIDIA H200", "0.13.0"),
       {},
       false,
       "",
       "the flags of jaxlib 0.13.0 are not known here"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PgleAdvice advice =
        advise({straight()}, {true, Seconds(4), Seconds(4), row.context, row.users});
    CHECK(advice.recommended == row.recommended);
    CHECK(flags_text(advice) == row.flags);
    CAPTURE(advice.text);
    CHECK(advice.text.find(row.says) != std::string::npos);
  }
}

TEST_CASE("where latency hiding is off and copies take longer than kernels, that comes first") {
  const PgleSituation link_bound{true, Seconds(4), Seconds(4.1), a100(), {}};
  for (const PgleCopy& copy : {in_loop(), straight()}) {
    const PgleAdvice advice = advise({copy}, link_bound);
    CHECK_FALSE(advice.recommended);
    CHECK(advice.flags.empty());
    CHECK(advice.text.ends_with("try --xla_gpu_enable_latency_hiding_scheduler=true first"));
  }
}

}  // namespace
}  // namespace spillway
