// Why copies are exposed, as users asked it (docs/cases.md). On the toy machine: 2 B/s to the host,
// 4 B/s from it, 1 s to start a copy; a product takes 2 s.
#include <doctest/doctest.h>

#include "sim/report/explain_report.h"
#include "tests/sim/explain/ask.h"

namespace spillway {
namespace {

using testing::ask;
using testing::explain;
using testing::get;

constexpr const char* kState = "(s32[], bf16[2,2], f32[3], f32[4,3]{1,0:S(5)})";

/// A loop whose iteration has four products, 8 s, and then saves 12 B of a stack on the host: 7 s.
/// `header` stands in front, `save` are the lines that write %stack.
Program saving_loop(const std::string& functions, const std::string& save, int trips = 1000) {
  const std::string state = kState;
  std::string products;
  for (const char* name : {"a", "b", "c", "d"})
    products += std::string("  %") + name +
                " = bf16[2,2] dot(%s#1, %s#1), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0}\n";
  return testing::toy_program(
      functions + "%body (s: " + state + ") -> " + state + " {\n  %s = " + state +
      " parameter(0)\n  %zero = s32[] constant(0)\n"
      "  %row = f32[1,3] bitcast(%s#2)\n" +
      products + save + "  ROOT %next = " + state +
      " tuple(%s#0, %s#1, %s#2, %stack)\n}\n%condition (c: " + state +
      ") -> pred[] {\n  %c = " + state +
      " parameter(0)\n  %n = s32[] constant(4)\n  ROOT %lt = pred[] compare(%c#0, %n), "
      "direction=LT\n}\nENTRY %main {\n  %p = " +
      state + " parameter(0)\n  ROOT %loop = " + state +
      " while(%p), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"" +
      std::to_string(trips) + "\"}}\n}\n");
}

constexpr const char* kStack = "f32[4,3]{1,0:S(5)}";

TEST_CASE("C12: each form in which XLA writes a copy, whether it can be hidden and how") {
  const std::string stack = kStack;
  const std::string update = "dynamic-update-slice(%w0, %w1, %w2, %w3)\n}\n";
  const std::string wrapped = "%wrapped {\n  %w0 = " + stack +
                              " parameter(0)\n  %w1 = f32[1,3] parameter(1)\n  %w2 = s32[] "
                              "parameter(2)\n  %w3 = s32[] parameter(3)\n  ROOT %w = " +
                              stack + " " + update;
  struct Row {
    const char* name;
    std::string functions, save;
    const char* copy;
    bool next_iteration;
  };
  const Row rows[] = {
      // 2023: the update itself is the copy; the main stream stands still.
      {"an update by itself", "",
       "  %stack = " + stack + " dynamic-update-slice(%s#3, %row, %s#0, %zero)\n", "stack", true},
      {"a fusion of the update", wrapped,
       "  %stack = " + stack + " fusion(%s#3, %row, %s#0, %zero), kind=kLoop, calls=%wrapped\n",
       "stack", true},
      // Since 2025: a memcpy on a stream of its own, started and awaited in the same iteration.
      {"an async pair around the update", wrapped,
       "  %save = ((" + stack + ", f32[1,3], s32[], s32[]), " + stack +
           ", u32[]) async-start(%s#3, %row, %s#0, %zero), calls=%wrapped\n  %stack = " + stack +
           " async-done(%save)\n",
       "save", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const CopyExplanation e = explain(saving_loop(row.functions, row.save), row.copy);
    CHECK(e.direction == TransferDirection::kDeviceToHost);
    CHECK(e.bytes == Bytes(12));
    CHECK(e.runs == 1000);
    CHECK(e.exposed.value() == 7000);
    // It starts and must end in the same iteration: only the next one can hide it.
    CHECK_FALSE(get(e, RemedyKind::kLaterDone).possible);
    const Remedy next = get(e, RemedyKind::kNextIteration);
    CHECK(next.hides);
    CHECK(next.step.value() == 8007);
    CHECK(explain_text({e}).find(
              "pipelined across iterations, 12 B of HBM more: hidden but for the last, 7.000 s") !=
          std::string::npos);
  }
}

TEST_CASE("C12: before July 2026 copies took turns on four streams, and stood behind strangers") {
  // The element instruction tells the older XLA. The fifth copy is on the stream of the first.
  std::string text = "  %p = (f32[30], f32[3], f32[3], f32[3], f32[3]) parameter(0)\n";
  for (int k = 0; k < 5; ++k)
    text += "  %x" + std::to_string(k) + " = f32[" + (k == 0 ? "30" : "3") +
            "] get-tuple-element(%p), index=" + std::to_string(k) + "\n";
  for (int k = 0; k < 5; ++k) {
    const std::string n = std::to_string(k), size = k == 0 ? "30" : "3";
    text += "  %o" + n + " = (f32[" + size + "]{0:S(5)}, f32[" + size + "], u32[]) copy-start(%x" +
            n + ")\n";
  }
  for (int k = 4; k >= 0; --k)
    text += "  %d" + std::to_string(k) + " = f32[" + (k == 0 ? "30" : "3") +
            "]{0:S(5)} copy-done(%o" + std::to_string(k) + ")\n";
  const CopyExplanation e = explain(testing::read_entry(text + "  ROOT %r = () tuple()\n"), "o4");
  const CopyExplanation first =
      explain(testing::read_entry(text + "  ROOT %r = () tuple()\n"), "o0");
  CHECK(e.stream == first.stream);
  CHECK(e.stream.starts_with("computation_stream"));
  REQUIRE_FALSE(e.while_waiting.empty());
  CHECK(e.while_waiting[0].cause == engine::StallCause::kQueued);
  CHECK(e.while_waiting[0].culprit == "o0");
  REQUIRE_FALSE(first.delays.empty());
  CHECK(first.delays[0].instruction == "o4");
  // Beside it the three others share the link, which slows all of them.
  const CopyExplanation second =
      explain(testing::read_entry(text + "  ROOT %r = () tuple()\n"), "o1");
  CHECK(second.busy > second.alone);
}

}  // namespace
}  // namespace spillway
