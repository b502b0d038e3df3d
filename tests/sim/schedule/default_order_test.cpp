#include "sim/schedule/default_order.h"

#include <doctest/doctest.h>

#include "model/memory/memory_report.h"
#include "tests/model/memory/no_overlap.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::toy_program;
using testing::toy_schedule;

MemoryAssignment assign_as_given(const Program& program) {
  return assign_memory(program, toy_schedule(program));
}

/// "a b c": the order of the entry.
std::string entry_order(const Program& program, const Schedule& schedule) {
  std::string text;
  for (const InstructionIndex i : schedule.order[program.entry])
    text += (text.empty() ? "" : " ") + std::string(program.entry_computation()[i].name);
  return text;
}

std::string order_of(const Program& program, DefaultScheduler scheduler) {
  return entry_order(program, order_by(program, assign_as_given(program), scheduler));
}

constexpr const char* kGather = R"(
%gather (g: f32[64]) -> f32[128] {
  %g = f32[64]{0} parameter(0)
  ROOT %gathered = f32[128]{0} all-gather(%g), dimensions={0}, replica_groups={{0,1}}
}
%sum (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %plus = f32[] add(%l, %r)
}
)";

Program with_gather(const std::string& instructions) {
  return toy_program(kGather + std::string("ENTRY %main {\n") + instructions + "}\n");
}

TEST_CASE("what each of XLA's memory schedulers runs first") {
  struct Row {
    const char* name;
    const char* entry;
    const char* list;
    const char* depth_first;
    const char* post_order;
  };
  const Row rows[] = {
      {"list frees large before small, the others go by depth", R"(
  %a = f32[64]{0} parameter(0)
  %big = f32[640]{0} custom-call(%a), custom_call_target="f"
  %small = f32[128]{0} custom-call(%a), custom_call_target="f"
  %from_small = f32[64]{0} custom-call(%small), custom_call_target="f"
  %from_big = f32[64]{0} custom-call(%big), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%from_small, %from_big), custom_call_target="f"
)",
       "a small from_small big from_big out", "a big from_big small from_small out",
       "a small from_small big from_big out"},
      {"more fan-out above goes before more bytes", R"(
  %a = f32[64]{0} parameter(0)
  %once = f32[640]{0} custom-call(%a), custom_call_target="f"
  %twice = f32[64]{0} custom-call(%a), custom_call_target="f"
  %x = f32[64]{0} custom-call(%twice), custom_call_target="f"
  %y = f32[64]{0} custom-call(%twice), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%once, %x, %y), custom_call_target="f"
)",
       "a twice y x once out", "a twice x y once out", "a once twice x y out"},
      {"copies across the host link are not pulled apart, and host bytes count nothing", R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
  %start = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%x)
  %done = f32[64]{0:S(5)} copy-done(%start)
  %y = f32[64]{0} custom-call(%a), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%y, %done), custom_call_target="f"
)",
       "a x start done y out", "a x start done y out", "a y x start done out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = testing::read_entry(row.entry);
    CHECK(order_of(program, DefaultScheduler::kList) == row.list);
    CHECK(order_of(program, DefaultScheduler::kDepthFirst) == row.depth_first);
    CHECK(order_of(program, DefaultScheduler::kPostOrder) == row.post_order);
  }
}

TEST_CASE("asynchronous starts are pulled forward, their dones back") {
  struct Row {
    const char* name;
    const char* pair;  ///< start and done of something made of x
    const char* expected;
  };
  const Row rows[] = {
      {"to where what they read is there, and to where they are read", R"(
  %start = ((f32[64]{0}), f32[128]{0}, u32[]) async-start(%x), calls=%gather
  %done = f32[128]{0} async-done(%start)
)",
       "a x start y z done out"},
      {"the older spelling of all-reduce too", R"(
  %start = f32[64]{0} all-reduce-start(%x), to_apply=%sum, replica_groups={{0,1}}
  %done = f32[64]{0} all-reduce-done(%start)
)",
       "a x start y z done out"},
      {"a synchronous one stays with its done", R"(
  %start = f32[64]{0} all-reduce-start(%x), to_apply=%sum, replica_groups={{0,1}}, backend_config={"collective_backend_config":{"is_sync":true}}
  %done = f32[64]{0} all-reduce-done(%start)
)",
       "a x y z start done out"},
      {"the older spelling of all-gather is not moved", R"(
  %start = (f32[64]{0}, f32[128]{0}) all-gather-start(%x), dimensions={0}, replica_groups={{0,1}}
  %done = f32[128]{0} all-gather-done(%start)
)",
       "a x y z start done out"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Program program = with_gather(std::string(R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[64]{0} custom-call(%a), custom_call_target="f"
)") + row.pair + R"(
  %y = f32[64]{0} custom-call(%x), custom_call_target="f"
  %z = f32[64]{0} custom-call(%y), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%z, %done), custom_call_target="f"
)");
    CHECK(order_of(program, DefaultScheduler::kPostOrder) == row.expected);
  }
}

TEST_CASE("of the three the one with least live at once; the first of equals") {
  const Program program = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %x = f32[640]{0} custom-call(%a), custom_call_target="f"
  %y = f32[640]{0} custom-call(%a), custom_call_target="f"
  %u = f32[64]{0} custom-call(%x), custom_call_target="f"
  %v = f32[64]{0} custom-call(%y), custom_call_target="f"
  ROOT %out = f32[64]{0} custom-call(%u, %v), custom_call_target="f"
)");
  const MemoryAssignment given = assign_as_given(program);
  // In the text's order a, x, y and u are live together.
  CHECK(most_live_in(program, given, toy_schedule(program)) == Bytes(256 + 2 * 2560 + 256));
  const DefaultOrder order = find_default_order(program, given);
  CHECK(order.scheduler == DefaultScheduler::kList);
  for (const Bytes live : order.most_live) CHECK(live == Bytes(256 + 256 + 2560 + 256));
}

TEST_CASE("who reads what is written over in place still does so first") {
  const Program program = testing::read_entry(R"(
  %a = f32[64]{0} parameter(0)
  %at = s32[] parameter(1)
  %stack = f32[64]{0} custom-call(%a), custom_call_target="f"
  %row = f32[1]{0} custom-call(%a), custom_call_target="f"
  %old = f32[64]{0} custom-call(%stack), custom_call_target="f"
  %new = f32[64]{0} dynamic-update-slice(%stack, %row, %at)
  ROOT %out = f32[64]{0} custom-call(%new, %old), custom_call_target="f"
)");
  for (const DefaultScheduler scheduler :
       {DefaultScheduler::kList, DefaultScheduler::kDepthFirst, DefaultScheduler::kPostOrder}) {
    const Schedule order = order_by(program, assign_as_given(program), scheduler);
    CAPTURE(entry_order(program, order));
    CHECK(testing::find_lost_read(program, assign_memory(program, order)) == "");
  }
}

}  // namespace
}  // namespace spillway
