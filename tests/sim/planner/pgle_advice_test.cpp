#include "sim/planner/pgle_advice.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

PgleCopy in_loop() { return {"wrapped_save", Bytes(64 << 20), Seconds(1), true}; }
PgleCopy straight(Bytes bytes) { return {"copy-start", bytes, Seconds(1), false}; }

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
  const std::vector<PgleCopy> unrolled = {in_loop(), straight(Bytes(96 << 20)),
                                          straight(Bytes(32 << 20))};
  struct Row {
    const char* name;
    std::vector<PgleCopy> copies;
    PgleSituation situation;
    const char* device;
    bool recommended;
    std::string flags;
  };
  const Row rows[] = {
      {"another program", unrolled, other_policy, "NVIDIA GB200", false, ""},
      {"nothing copied", {}, hidden, "NVIDIA GB200", false, ""},
      {"scanned", scanned, hidden, "NVIDIA GB200", true, profile},
      {"scanned, XLA has times", scanned, hidden, "NVIDIA H100 80GB HBM3", false, ""},
      {"scanned, link-bound", scanned, link_bound, "NVIDIA GB200", false, ""},
      {"unrolled", unrolled, hidden, "NVIDIA GB200", true, fence + "33554432 " + profile},
      {"unrolled, XLA has times", unrolled, hidden, "NVIDIA H100 80GB HBM3", true,
       fence + "33554432 " + profile},
      {"unrolled, link-bound", unrolled, link_bound, "NVIDIA GB200", false, fence + "33554432"},
      {"tiny arrays are not fenced",
       {straight(Bytes(16))},
       hidden,
       "NVIDIA GB200",
       true,
       fence + "1048576 " + profile},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const PgleProfile of_row{
        .program = "p", .hardware = "hw", .costs = {}, .copies = row.copies, .link = {}};
    Device device;
    device.xla_name = row.device;
    const PgleAdvice advice = advise_pgle(of_row, row.situation, device, "p.pbtxt");
    CHECK(advice.recommended == row.recommended);
    CHECK(advice.text.starts_with(row.recommended ? "Recommended" : "Not recommended"));
    CHECK(flags_text(advice) == row.flags);
  }
}

}  // namespace
}  // namespace spillway
