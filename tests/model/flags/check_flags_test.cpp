// What is said about a line of flags. Whether XLA takes a line was asked of the parser of 0.12.0.1.
#include "model/flags/check_flags.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace spillway {
namespace {

FlagContext context_of(const char* jaxlib, const char* capability = "10.0") {
  FlagContext context{.jaxlib = parse_jaxlib_version(jaxlib).value()};
  if (*capability != '\0') context.gpu = GpuModel{capability, "NVIDIA B200"};
  return context;
}

std::vector<Diagnostic> check(const std::string& text, const char* jaxlib = "0.12.0.1",
                              const char* capability = "10.0") {
  return check_flags(read_flags(text), context_of(jaxlib, capability));
}

/// "code code …", in the order in which they are said.
std::string codes(const std::vector<Diagnostic>& findings) {
  std::string out;
  for (const Diagnostic& d : findings) out += (out.empty() ? "" : " ") + d.code;
  return out;
}

constexpr const char* kHiding = "--xla_gpu_enable_latency_hiding_scheduler";

TEST_CASE("what ends the process is an error, and what XLA takes is none") {
  const std::string hiding = kHiding;
  struct Row {
    std::string text;
    const char* codes;
  };
  const Row rows[] = {
      {"", ""},
      {"--xla_gpu_autotune_level=0", ""},
      {hiding + "=1", "no-effect"},
      {hiding + "=TRUE", "no-effect"},
      {hiding, "no-effect"},
      {hiding + "=0", ""},
      {hiding + "=yes", "bad-value"},
      {hiding + "=", "bad-value"},
      {hiding + "=true,", "bad-value"},
      {hiding + "=true;--xla_b", "bad-value"},
      {hiding + "-false", "unknown-flag"},
      {"-xla_gpu_enable_latency_hiding_scheduler=true", "unknown-flag"},
      {"--XLA_gpu_memory_limit_slop_factor=95", "unknown-flag"},
      {"--xla_gpu_memory_limit_slop_factor", "bad-value"},
      {"--xla_gpu_memory_limit_slop_factor=", "bad-value"},
      {"--xla_gpu_memory_limit_slop_factor=95%", "bad-value"},
      {"--xla_gpu_memory_limit_slop_factor=95.5", "bad-value"},
      {"--xla_gpu_memory_limit_slop_factor=99999999999", "bad-value odd-limit"},
      {"--xla_gpu_memory_limit_slop_factor=-5", "odd-limit"},
      {"--xla_gpu_memory_limit_slop_factor=150", "odd-limit"},
      {"--xla_gpu_all_reduce_combine_threshold_bytes=99999999999", ""},
      {"--xla_gpu_all_reduce_combine_threshold_bytes=1e9", "bad-value"},
      {"--xla_gpu_all_reduce_combine_threshold_bytes=1GB", "bad-value"},
      {"--xla_gpu_autotune_gemm_rtol=abc", "bad-value"},
      {"--xla_gpu_autotune_gemm_rtol=0.2", ""},
      {"--xla_gpu_enable_command_buffer=", ""},
      {"--xla_gpu_enable_command_buffer=''", ""},
      {"--xla_gpu_enable_command_buffer=fusion,CUBLAS", ""},
      {"--xla_gpu_enable_command_buffer=FUSION,+CUBLAS", "bad-value"},
      {"--xla_gpu_enable_while_loop_unrolling=full", "bad-value"},
      {"--xla_gpu_enable_while_loop_unrolling=while_loop_unrolling_full_unroll", ""},
      {"--xla_gpu_pgle_accuracy_checker=off", "bad-value no-effect"},
      {"--xla_gpu_pgle_accuracy_checker=PGLE_STRICTNESS_LEVEL_OFF", "no-effect"},
      {"--xla_gpu_pipeline_all_gather=true", ""},
      {"--xla_disable_hlo_passes=algsimp", ""},
      {"--xla_disable_hlo_passes=algsimp,rematerialization", ""},
      {"--xla_disable_hlo_passes=remat", "no-such-pass"},
      {"--xla_gpu_analytical_latency_estimator_options=rtt_us=3,foo=4", "no-effect"},
      {"--xla_tpu_enable_latency_hiding_scheduler=true", "unknown-flag"},
      {"--xla_dump_to=d \\ --xla_nope", "flags-not-read"},
      {"--xla_gpu_autotune_level = 0", "bad-value flags-not-read"},
      {"--xla_gpu_autotune_level=0 --xla_gpu_autotune_level=1", "repeated-flag"},
      {"--xla_gpu_autotune_level=0 --xla_gpu_autotune_level=0", "repeated-flag"},
      {"--xla_disable_hlo_passes=a --xla_disable_hlo_passes=b", ""},
      {"--xla_gpu_autotune_level=4", "default"},
      {"--xla_gpu_enable_pipelined_all_gather=true", "old-flag"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto findings = check(row.text);
    CHECK(codes(findings) == row.codes);
    const std::string first = findings.empty() ? "" : findings.front().code;
    CHECK(has_error(findings) == (first == "bad-value" || first == "unknown-flag" ||
                                  first == "flags-not-read" || first == "removed-flag"));
  }
}

TEST_CASE("an unknown name is answered with what was meant") {
  struct Row {
    const char* text;
    const char* advice;
  };
  const Row rows[] = {
      {"--xla_gpu_enable_latency_hidng_scheduler=true",
       "Did you mean --xla_gpu_enable_latency_hiding_scheduler?"},
      {"--xla-gpu-enable-latency-hiding-scheduler=true",
       "Did you mean --xla_gpu_enable_latency_hiding_scheduler?"},
      {"--xla_gpu_parallel_async_compute_limit=8",
       "Did you mean --xla_gpu_experimental_parallel_async_compute_limit?"},
      {"--xla_gpu_enable_latency_hiding_scheduler-false",
       "An '=' is missing: --xla_gpu_enable_latency_hiding_scheduler=false."},
      {"--xla_tpu_megacore=1", "Flags of TPUs belong into LIBTPU_INIT_ARGS."},
      {"-xla_dump_to=d", "Flags begin with two dashes."},
      {"--something_else_altogether=1", "Leave it out."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto findings = check(row.text);
    REQUIRE(codes(findings) == "unknown-flag");
    CHECK(findings[0].advice == row.advice);
    CHECK(findings[0].what == "jaxlib 0.12.0.1 knows no flag '" + std::string(row.text) + "'.");
  }
}

TEST_CASE("flags of another version") {
  const auto early = check("--xla_gpu_enable_pipelined_host_offloading=true", "0.7.2");
  REQUIRE(codes(early) == "later-flag");
  CHECK(early[0].what ==
        "jaxlib 0.7.2 has no flag --xla_gpu_enable_pipelined_host_offloading yet (since 0.8.3).");
  const auto between = check("--xla_gpu_enable_pipelined_host_offloading=true", "0.8.1");
  CHECK(codes(between) == "unsure-flag");
  CHECK_FALSE(has_error(between));
  const auto gone = check("--xla_gpu_simplify_all_fp_conversions=false");
  REQUIRE(codes(gone) == "removed-flag");
  CHECK(gone[0].advice == "In its place: xla_allow_excess_precision, which is on by default.");
}

TEST_CASE("versions whose parsers nobody asked are refused") {
  struct Row {
    const char* jaxlib;
    bool refused;
  };
  for (const Row& row : {Row{"0.4.30", true}, Row{"0.4.31", false}, Row{"0.6.1", false},
                         Row{"0.12.0.1", false}, Row{"0.13.0", true}}) {
    CAPTURE(row.jaxlib);
    CHECK(check_version(*parse_jaxlib_version(row.jaxlib)).has_value() == row.refused);
  }
  CHECK(to_text(*check_version(*parse_jaxlib_version("0.13.0"))) ==
        "error: jaxlib 0.13.0 is not known here: it is newer than 0.12.0.1\n"
        "  known are 0.4.31 to 0.12.0.1");
}

TEST_CASE("latency hiding where no flag says so") {
  struct Row {
    const char* jaxlib;
    const char* capability;
    std::optional<bool> on;
  };
  const Row rows[] = {
      {"0.12.0.1", "9.0", true},   {"0.12.0.1", "10.0", true}, {"0.12.0.1", "10.3", true},
      {"0.12.0.1", "8.0", false},  {"0.7.2", "9.0", true},     {"0.7.0", "9.0", false},
      {"0.12.0.1", "12.0", false}, {"0.12.0.1", "", {}},       {"0.7.0", "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.jaxlib);
    CAPTURE(row.capability);
    CHECK(hides_latencies_unset(context_of(row.jaxlib, row.capability)) == row.on);
  }
}

TEST_CASE("latency hiding said to be what it is has no effect on your version") {
  const std::string hiding = kHiding;
  struct Row {
    std::string text;
    const char* jaxlib;
    const char* capability;
    const char* codes;
  };
  const Row rows[] = {
      {hiding + "=true", "0.12.0.1", "10.0", "no-effect"},
      {hiding + "=true", "0.12.0.1", "9.0", "no-effect"},
      {hiding + "=false", "0.12.0.1", "9.0", ""},  // really turns it off
      {hiding + "=true", "0.12.0.1", "8.0", ""},
      {hiding + "=false", "0.12.0.1", "8.0", "no-effect"},
      {hiding + "=true", "0.7.0", "9.0", ""},
      {hiding + "=true", "0.12.0.1", "12.0", ""},
      {hiding + "=false", "0.12.0.1", "12.0", "no-effect"},
      {hiding + "=true", "0.12.0.1", "", ""},  // who knows
      {hiding + "=false", "0.12.0.1", "", ""},
      {hiding + "=false", "0.7.0", "", "no-effect"},  // off everywhere
      {hiding + "=true --xla_gpu_enable_analytical_sol_latency_estimator=false", "0.12.0.1", "9.0",
       ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CAPTURE(row.capability);
    CHECK(codes(check(row.text, row.jaxlib, row.capability)) == row.codes);
  }
  CHECK(check(hiding + "=true")[0].message() ==
        "--xla_gpu_enable_latency_hiding_scheduler=true has no effect on your version. jaxlib "
        "0.12.0.1 has latency hiding on for compute capability 10.0 when the flag is not set, and "
        "off when it is false. Leave it out.");
}

TEST_CASE("contradictions are named") {
  const std::string off = std::string(kHiding) + "=false ";
  struct Row {
    const char* name;
    std::string text;
    const char* codes;
  };
  const Row rows[] = {
      {"pipelining", off + "--xla_gpu_enable_pipelined_host_offloading=true", "contradiction"},
      {"limits", off + "--xla_gpu_experimental_parallel_async_compute_limit=8", "contradiction"},
      {"fencing", off + "--xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=1048576",
       "contradiction"},
      {"the estimator turned off with it",
       off + "--xla_gpu_enable_analytical_sol_latency_estimator=false", ""},
      {"the estimator off alone", "--xla_gpu_enable_analytical_sol_latency_estimator=false",
       "estimator-turns-off-hiding"},
      {"and pipelining",
       "--xla_gpu_enable_analytical_sol_latency_estimator=false "
       "--xla_gpu_enable_pipelined_host_offloading=true",
       "estimator-turns-off-hiding contradiction"},
      {"two estimators",
       "--xla_gpu_enable_analytical_sol_latency_estimator=true "
       "--xla_gpu_enable_analytical_latency_estimator=true",
       "contradiction likely-crash default"},
      {"slack without fencing", "--xla_gpu_experimental_scheduler_memory_fencing_slack_windows=2",
       "no-effect"},
      {"slack with it",
       "--xla_gpu_experimental_scheduler_memory_fencing_slack_windows=2 "
       "--xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=1048576",
       ""},
      {"offloading by a pass that is off",
       "--xla_gpu_enable_host_memory_offloading=true --xla_disable_hlo_passes=rematerialization",
       "contradiction"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(codes(check(row.text)) == row.codes);
  }
}

TEST_CASE("a profile that latency hiding off or its own name keep from being read") {
  const std::string profile = "--xla_gpu_pgle_profile_file_or_directory_path=";
  const std::string off = std::string(kHiding) + "=false ";
  struct Row {
    std::string text;
    const char* capability;
    const char* codes;
    bool hides;
  };
  const Row rows[] = {
      {profile + "a.pbtxt", "8.0", "", true},
      {profile + "a.pb", "8.0", "", true},
      {profile + "folder", "8.0", "", true},
      {profile + "a.txt", "8.0", "contradiction", false},  // XLA passes over it
      {profile, "8.0", "contradiction", false},
      {off + profile + "a.pbtxt", "9.0", "contradiction", false},
      {off + profile + "a.pbtxt", "8.0", "contradiction", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const FlagContext context = context_of("0.12.0.1", row.capability);
    std::string found = codes(check(row.text, "0.12.0.1", row.capability));
    CHECK(found == row.codes);
    const auto settings = schedule_settings(settle(read_flags(row.text)), context);
    CHECK(settings->scheduler.hides_latencies == row.hides);
  }
}

TEST_CASE("limits below what the scheduler can work with, as 0.12.0.1 was given them") {
  const std::string collectives = "--xla_gpu_experimental_parallel_collective_overlap_limit=";
  const std::string async = "--xla_gpu_experimental_parallel_async_compute_limit=";
  const std::string slack = "--xla_gpu_experimental_scheduler_memory_fencing_slack_windows=";
  const std::string fence =
      " --xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=1048576";
  struct Row {
    std::string text;
    const char* capability;
    const char* codes;
    bool runs;
  };
  const Row rows[] = {
      {collectives + "0", "10.0", "odd-limit", false},
      {collectives + "-1", "10.0", "odd-limit", false},
      {collectives + "4", "10.0", "", true},
      {collectives + "0", "", "odd-limit", true},  // only where latencies are hidden
      {collectives + "0", "8.0", "contradiction", true},
      {async + "0", "10.0", "odd-limit", true},  // only with copies outside of loops
      {slack + "-1", "10.0", "no-effect", true},
      {slack + "-1" + fence, "10.0", "odd-limit", false},
      {slack + "0" + fence, "10.0", "", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CAPTURE(row.capability);
    const auto found = check(row.text, "0.12.0.1", row.capability);
    CHECK(codes(found) == row.codes);
    CHECK(has_error(found) != row.runs);
  }
  CHECK(
      check(collectives + "0")[0].message() ==
      "--xla_gpu_experimental_parallel_collective_overlap_limit=0 is too small. XLA fails a check "
      "on overlap limits and ends the process. It begins at 1.");
  CHECK(
      check("--xla_gpu_memory_limit_slop_factor=-5")[0].message() ==
      "--xla_gpu_memory_limit_slop_factor=-5 leaves the scheduler no limit: XLA takes it for a "
      "huge number. It is the percentage of the free pool that the scheduler aims to stay within. "
      "From 1 to 100 makes sense, and 95 is the default.");
}

TEST_CASE("the analytical model ended every compile of 0.12.0.1") {
  const std::string on = "--xla_gpu_enable_analytical_latency_estimator=true";
  CHECK(codes(check(on)) == "likely-crash");
  CHECK(codes(check(on, "0.10.2")) == "");
  CHECK(codes(check(on, "0.12.0.1", "8.0")) == "contradiction");  // nobody asks it there
}

TEST_CASE("a value that lost its '='") {
  struct Row {
    const char* text;
    const char* meant;
  };
  const Row rows[] = {
      {"--xla_dump_to /x", "--xla_dump_to=/x"},
      {"--xla_dump_to /x --xla_dump_hlo_as_text", "--xla_dump_to=/x"},
      {"--xla_gpu_enable_latency_hiding_scheduler = false",
       "--xla_gpu_enable_latency_hiding_scheduler=false"},
      {"--xla_gpu_memory_limit_slop_factor= 90", "--xla_gpu_memory_limit_slop_factor=90"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto found = check(row.text);
    const auto lost = std::ranges::find(found, "flags-not-read", &Diagnostic::code);
    REQUIRE(lost != found.end());
    CHECK(lost->advice ==
          "Values stand behind '=' without blanks: " + std::string(row.meant) + ".");
  }
  const auto found = check("--xla_dump_to=d \\ --xla_dump_hlo_as_text");
  CHECK(found[0].advice.starts_with("Leave out what stands in the way"));
}

TEST_CASE("0.4.35 fails a check with latency hiding on") {
  CHECK(codes(check(std::string(kHiding) + "=true", "0.4.35", "9.0")) == "known-crash");
  CHECK(codes(check(std::string(kHiding) + "=true", "0.4.38", "9.0")) == "");
}

TEST_CASE("what the scheduler makes of the flags") {
  const auto settings = [](const std::string& text, const char* capability = "9.0") {
    return schedule_settings(settle(read_flags(text)), context_of("0.12.0.1", capability)).value();
  };
  CHECK(settings("") == ScheduleSettings{.scheduler = {true, BelievedCosts::kSpeedOfLight,
                                                       BelievedCosts::kSpeedOfLight, false}});
  CHECK(settings("", "8.0") == ScheduleSettings{});
  CHECK(settings("--xla_gpu_pgle_profile_file_or_directory_path=p.pbtxt", "8.0")
            .scheduler.hides_latencies);
  const ScheduleSettings all = settings(
      "--xla_gpu_memory_limit_slop_factor=50 --xla_gpu_memory_limit_slop_factor=60 "
      "--xla_gpu_experimental_parallel_async_compute_limit=8 "
      "--xla_gpu_experimental_parallel_collective_overlap_limit=4 "
      "--xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=1048576 "
      "--xla_gpu_experimental_scheduler_memory_fencing_slack_windows=0 "
      "--xla_gpu_experimental_collective_start_as_early_as_possible "
      "--xla_gpu_enable_pipelined_host_offloading=true "
      "--xla_gpu_enable_analytical_latency_estimator=true");
  CHECK(all == ScheduleSettings{.scheduler = {true, BelievedCosts::kAnalytical,
                                              BelievedCosts::kAnalytical, false},
                                .memory_slop_percent = 60,
                                .async_computes = 8,
                                .collectives = 4,
                                .fencing_threshold_bytes = 1048576,
                                .fencing_slack_windows = 0,
                                .starts_collectives_early = true,
                                .pipelines_host_copies = true});
  CHECK(decides_order("xla_gpu_memory_limit_slop_factor"));
  CHECK_FALSE(decides_order("xla_dump_to"));
}

}  // namespace
}  // namespace spillway
