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

TEST_CASE("the profile is recommended where recompiling with it gained") {
  const std::string profile = "xla_gpu_pgle_profile_file_or_directory_path=p.pbtxt";
  const std::string fence = "xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes=";
  const PgleSituation hidden{true, Seconds(4), Seconds(4)};
  const PgleSituation link_bound{true, Seconds(4), Seconds(4.1)};
  const PgleSituation other_policy{false, Seconds(4), Seconds(1)};
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
      {"unrolled", unrolled, hidden, true, fence + "1048576 " + profile},
      {"unrolled, link-bound", unrolled, link_bound, false, fence + "1048576"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PgleProfile of_row{
        .program = "p", .hardware = "hw", .costs = {}, .copies = row.copies, .link = {}};
    const PgleAdvice advice = advise_pgle(of_row, row.situation, "p.pbtxt");
    CHECK(advice.recommended == row.recommended);
    CHECK(advice.text.starts_with(row.recommended ? "Recommended" : "Not recommended"));
    CHECK(flags_text(advice) == row.flags);
  }
}

}  // namespace
}  // namespace spillway
