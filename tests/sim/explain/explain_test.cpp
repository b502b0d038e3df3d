// On the toy machine: 2 B/s to the host, 4 B/s from it, 5 B/s both ways, 1 s to start a copy. A
// product takes 2 s, an offload of 12 B 1 + 6 s, a reload of 12 B 1 + 3 s.
#include "sim/explain/explain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/explain_report.h"
#include "tests/model/residuals/toy_scan.h"
#include "tests/sim/explain/ask.h"

namespace spillway {
namespace {

using testing::ask;
using testing::explain;
using testing::get;
using testing::read_entry;
using testing::toy_program;

constexpr const char* kParameters =
    "  %m = bf16[2,2] parameter(0)\n  %x = f32[3] parameter(1)\n"
    "  %h = f32[3]{0:S(5)} parameter(2)\n";
constexpr const char* kOffload = "  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%x)\n";
constexpr const char* kOffloadDone = "  %out.done = f32[3]{0:S(5)} copy-done(%out)\n";
constexpr const char* kReload = "  %in = (f32[3], f32[3]{0:S(5)}, u32[]) copy-start(%h)\n";
constexpr const char* kReloadDone = "  %in.done = f32[3] copy-done(%in)\n";
constexpr const char* kUse = "  %use = f32[3] add(%in.done, %in.done)\n";
constexpr const char* kEnd = "  ROOT %r = () tuple()\n";

std::string products(const std::string& name, int count) {
  std::string text;
  for (int k = 0; k < count; ++k)
    text += "  %" + name + std::to_string(k) +
            " = bf16[2,2] dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  return text;
}

CopyExplanation explain(const std::string& body, const std::string& name) {
  return explain(read_entry(kParameters + body + kEnd), name);
}

TEST_CASE("an earlier start: how much, in front of what, and what binds") {
  struct Row {
    const char* name;
    std::string body;
    bool possible, hides;
    double moved, exposed;
    const char *at, *limit;
  };
  const std::string maker = "  %x2 = f32[3] negate(%x)\n";
  const std::string late = "  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%x2)\n";
  const Row rows[] = {
      {"not far enough", products("a", 3) + kOffload + kOffloadDone, true, false, 6, 1, "a0",
       "the step begins there"},
      {"just far enough", products("a", 5) + kOffload + kOffloadDone, true, true, 8, 0, "a1", ""},
      {"no room", kOffload + products("a", 1) + kOffloadDone, false, false, 0, 0, "",
       "the step begins there"},
      {"its maker", products("a", 2) + maker + products("b", 1) + late + kOffloadDone, true, false,
       2, 5, "b0", "x2 makes what it reads"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Remedy remedy = get(explain(row.body, "out"), RemedyKind::kEarlierStart);
    CHECK(remedy.possible == row.possible);
    CHECK(remedy.hides == row.hides);
    CHECK(remedy.moved.value() == doctest::Approx(row.moved));
    CHECK(remedy.exposed.value() == doctest::Approx(row.exposed));
    CHECK(remedy.at == row.at);
    if (*row.limit != '\0') CHECK(remedy.limit == row.limit);
  }
}

TEST_CASE("a later done: behind what, and who reads it") {
  const auto e = explain(kReload + std::string(kReloadDone) + products("a", 4) + kUse, "in");
  CHECK(e.exposed.value() == 4);
  REQUIRE(e.waits.size() == 1);
  CHECK(e.waits[0].done == "in.done");
  CHECK(e.waits[0].next == "a0");
  CHECK(e.waits[0].first_reader == "use");
  CHECK(e.waits[0].cause == "done-early");
  const Remedy later = get(e, RemedyKind::kLaterDone);
  CHECK(later.hides);
  CHECK(later.moved.value() == 4);
  CHECK(later.at == "a1");
  const auto close = explain(kReload + std::string(kReloadDone) + products("a", 1) + kUse, "in");
  const Remedy little = get(close, RemedyKind::kLaterDone);
  CHECK_FALSE(little.hides);
  CHECK(little.exposed.value() == 2);
  CHECK(little.limit == "use reads it");
}

TEST_CASE("both moves together where neither is enough") {
  const auto e = explain(products("a", 1) + kReload + kReloadDone + products("b", 1) + kUse, "in");
  CHECK_FALSE(get(e, RemedyKind::kEarlierStart).hides);
  CHECK_FALSE(get(e, RemedyKind::kLaterDone).hides);
  CHECK(get(e, RemedyKind::kBoth).hides);
  CHECK(get(e, RemedyKind::kBoth).moved.value() == 4);
}

TEST_CASE("the link rate and the compute that hide it") {
  const auto e = explain(kOffload + products("a", 2) + kOffloadDone, "out");
  CHECK(e.exposed.value() == 3);
  CHECK(e.alone.value() == 7);
  // 1 s to start and 6 s / f, beside 4 s: hidden from f = 2 on.
  const Remedy link = get(e, RemedyKind::kFasterLink);
  CHECK(link.hides);
  CHECK(link.factor == 2);  // in whole bytes a second
  CHECK(link.rate.value() == 4);
  CHECK(e.grows_with_batch);
  const Remedy compute = get(e, RemedyKind::kMoreCompute);
  CHECK(compute.hides);
  CHECK(compute.factor > 6.97 / 4);
  CHECK(compute.factor < 1.77);
  CHECK(compute.kernels_now.value() == 4);

  const auto alone = explain(kOffload + std::string(kOffloadDone) + products("a", 2), "out");
  // On any link it takes 1 s to start, and HBM gives 32 B/s.
  CHECK_FALSE(get(alone, RemedyKind::kFasterLink).hides);
  CHECK(get(alone, RemedyKind::kFasterLink).exposed.value() == doctest::Approx(1 + 12 / 32.0));
  CHECK_FALSE(get(alone, RemedyKind::kMoreCompute).possible);
}

TEST_CASE("what lies in the caller's arrays does not grow with the batch") {
  CHECK_FALSE(explain(kReload + products("a", 1) + kReloadDone + kUse, "in").grows_with_batch);
}

TEST_CASE("a hidden copy has slack, and a rate that would do") {
  const auto e = explain(kOffload + products("a", 4) + kOffloadDone, "out");
  CHECK(e.exposed.value() == 0);
  CHECK(e.remedies.empty());
  REQUIRE(e.slack);
  CHECK(e.slack->value() == 1);
  // It may take 7 s behind its start-up instead of 6.
  REQUIRE(e.slowest_rate);
  CHECK(*e.slowest_rate >= 6 / 7.0);
  CHECK(*e.slowest_rate < 6 / 7.0 * 1.011);
}

TEST_CASE("a copy without slack cannot be slower, however many others stand between") {
  // `two` ends when the main stream has waited for `out`, which is in front of it.
  const std::string body = std::string(kOffload) +
                           "  %y = f32[3] parameter(3)\n  %two = (f32[3]{0:S(5)}, f32[3], u32[]) "
                           "copy-start(%y)\n" +
                           products("a", 7) + kOffloadDone +
                           "  %two.done = f32[3]{0:S(5)} "
                           "copy-done(%two)\n";
  const auto none = explain(body, "two");
  REQUIRE(none.slack);
  CHECK(none.slack->value() == 0);
  REQUIRE(none.slowest_rate);
  CHECK(*none.slowest_rate > 0.99);
  // `out` has 7 s until the wait for it, but `two` stands behind it.
  const auto first = explain(body, "out");
  REQUIRE(first.slack);
  CHECK(first.slack->value() == 7);
  CHECK(*first.slowest_rate > 0.97);
  const std::string text = explain_text({none});
  CHECK(text.find("it is done just when the main stream gets to the wait\n"
                  "  were it any slower, the main stream would wait\n") != std::string::npos);
}

TEST_CASE("a move that makes others wait instead does not hide it") {
  // `two` stands 61 s behind `big`; in front of it, `big` waits as long.
  const std::string body = "  %y = f32[30] parameter(3)\n" + products("a", 4) +
                           "  %big = (f32[30]{0:S(5)}, f32[30], u32[]) copy-start(%y)\n"
                           "  %two = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%x)\n"
                           "  %two.done = f32[3]{0:S(5)} copy-done(%two)\n"
                           "  %big.done = f32[30]{0:S(5)} copy-done(%big)\n";
  const auto e = explain(body, "two");
  CHECK(e.exposed.value() == 68);
  const Remedy earlier = get(e, RemedyKind::kEarlierStart);
  CHECK(earlier.ends_waits);
  CHECK_FALSE(earlier.hides);
  CHECK(earlier.exposed.value() == 0);
  CHECK(earlier.gain.value() == doctest::Approx(7));
  CHECK(explain_text({e}).find("its own waits are gone; the step gains only 7.000 s of 68.000 s: "
                               "others wait instead, step 69.000 s (-9.21 %)") !=
        std::string::npos);
  CHECK(get(explain(kOffload + products("a", 2) + kOffloadDone, "out"), RemedyKind::kFasterLink)
            .gain.value() == doctest::Approx(3));
}

TEST_CASE("a wait says what the copy was doing, what it stands behind and what it shares") {
  const std::string second =
      "  %y = f32[3] parameter(3)\n"
      "  %two = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%y)\n";
  const std::string second_done = "  %two.done = f32[3]{0:S(5)} copy-done(%two)\n";
  const auto queued = explain(kOffload + second + second_done + kOffloadDone, "two");
  REQUIRE(queued.while_waiting.size() == 3);
  CHECK(queued.while_waiting[0].cause == engine::StallCause::kQueued);
  CHECK(queued.while_waiting[0].culprit == "out");
  CHECK(queued.while_waiting[0].time.value() == 7);
  CHECK(queued.while_waiting[1].time.value() == 6);
  CHECK(queued.waits[0].cause == "queue");
  const auto first = explain(kOffload + second + second_done + kOffloadDone, "out");
  REQUIRE(first.delays.size() == 1);
  CHECK(first.delays[0].instruction == "two");
  CHECK(first.delays[0].time.value() == 7);

  // 2 B/s and 4 B/s are more than 5 B/s together.
  const auto shared =
      explain(kOffload + std::string(kReload) + kReloadDone + kUse + kOffloadDone, "in");
  const auto slowed =
      std::ranges::find(shared.while_waiting, engine::StallCause::kContended, &StallPart::cause);
  REQUIRE(slowed != shared.while_waiting.end());
  CHECK(slowed->culprit == "the link in both directions");
  CHECK(slowed->beside == "out");
}

// An iteration: `body`, with a host stack that nobody needs the index of.
Program loop_of(const std::string& body, int trips) {
  const std::string state = "(s32[], bf16[2,2], f32[3], f32[3]{0:S(5)})";
  return toy_program(
      "%body (s: " + state + ") -> " + state + " {\n  %s = " + state +
      " parameter(0)\n  %m = bf16[2,2] bitcast(%s#1)\n" + body + "  ROOT %next = " + state +
      " tuple(%s#0, %s#1, %s#2, %s#3)\n}\n%condition (c: " + state +
      ") -> pred[] {\n  %c = " + state +
      " parameter(0)\n  %n = s32[] constant(4)\n  ROOT %lt = pred[] compare(%c#0, %n), "
      "direction=LT\n}\nENTRY %main {\n  %p = " +
      state + " parameter(0)\n  ROOT %loop = " + state +
      " while(%p), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"" +
      std::to_string(trips) + "\"}}\n}\n");
}

TEST_CASE("in a loop: each time and for the step; the next iteration hides it") {
  const std::string save =
      "  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%s#2)\n"
      "  %out.done = f32[3]{0:S(5)} copy-done(%out)\n";
  const auto out = explain(loop_of(products("a", 4) + save, 1000), "out");
  CHECK(out.runs == 1000);
  CHECK(out.exposed.value() == 7000);
  REQUIRE(out.waits.size() == 1);
  CHECK(out.waits[0].blocked == 1000);
  CHECK(out.waits[0].longest.value() == 7);
  // It starts when the iteration ends and is waited for at the end of the next one; the last one
  // behind the loop.
  const Remedy next = get(out, RemedyKind::kNextIteration);
  CHECK(next.hides);
  CHECK(next.exposed.value() == 7);
  CHECK(next.step.value() == 8007);

  const std::string fetch =
      "  %in = (f32[3], f32[3]{0:S(5)}, u32[]) copy-start(%s#3)\n"
      "  %in.done = f32[3] copy-done(%in)\n  %use = f32[3] add(%in.done, %in.done)\n";
  const auto in = explain(loop_of(fetch + products("a", 4), 1000), "in");
  CHECK(in.exposed.value() == 4000);
  CHECK(get(in, RemedyKind::kEarlierStart).limit == "the iteration begins there");
  const Remedy ahead = get(in, RemedyKind::kNextIteration);
  CHECK(ahead.hides);
  CHECK(ahead.exposed.value() == 4);  // the first
}

TEST_CASE("a copy of what the same iteration makes cannot start in the one before") {
  const std::string round_trip =
      "  %out = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%s#2)\n"
      "  %out.done = f32[3]{0:S(5)} copy-done(%out)\n"
      "  %in = (f32[3], f32[3]{0:S(5)}, u32[]) copy-start(%out.done)\n"
      "  %in.done = f32[3] copy-done(%in)\n  %use = f32[3] add(%in.done, %in.done)\n";
  const auto in = explain(loop_of(round_trip, 10), "in");
  const Remedy next = get(in, RemedyKind::kNextIteration);
  CHECK_FALSE(next.possible);
  CHECK(next.limit == "out makes what it reads in the same iteration");
}

TEST_CASE("names: starts, dones, beginnings; what is unknown or means several is refused") {
  const std::string second =
      "  %y = f32[3] parameter(3)\n"
      "  %output = (f32[3]{0:S(5)}, f32[3], u32[]) copy-start(%y)\n"
      "  %output.done = f32[3]{0:S(5)} copy-done(%output)\n";
  const Program program = read_entry(kParameters + std::string(kOffload) + second + kOffloadDone +
                                     kReload + kReloadDone + kEnd);
  for (const char* name : {"out", "out.done", "out.", "%out", "%out.d"}) {
    CAPTURE(name);
    CHECK(explain(program, name).instruction == "out");
  }
  CHECK(explain(program, "outp").instruction == "output");
  CHECK(explain(program, "i").instruction == "in");
  struct Row {
    const char *name, *message;
  };
  const Row rows[] = {
      {"ou", "error: --explain: 'ou' may mean several\n  'out', 'output'"},
      {"oot",
       "error: --explain: 'oot' is no copy, collective or offloaded residual of the program\n  did "
       "you mean 'out'?"},
      {"use",
       "error: --explain: 'use' is no copy, collective or offloaded residual of the program\n  the "
       "table of what is exposed names some"},
  };
  for (const Row& row : rows) {
    const auto refused = ask(program, row.name);
    REQUIRE_FALSE(refused.ok());
    CHECK(to_text(refused.error()) == row.message);
    CHECK(refused.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("a residual that stays in HBM has no copy to explain") {
  const Program kept = testing::scan(testing::ToyScan{}).program;
  const auto refused = ask(kept, "r0");
  REQUIRE_FALSE(refused.ok());
  CHECK(to_text(refused.error()) ==
        "error: --explain: 'r0' stays in HBM: no copy of it crosses the host link, so none can be "
        "exposed\n  'plan --explain' says what moving it would bring");
  const auto offloaded = ask(
      testing::scan(testing::ToyScan{.a = testing::kOffloaded, .b = testing::kOffloaded}).program,
      "r0");
  REQUIRE(offloaded.ok());
  CHECK(offloaded->size() == 2);
}

// Fetched an iteration ahead: the start is carried, the first stands in front of the loop.
Program carried_start(int trips) {
  const std::string start = "(f32[3], f32[3]{0:S(5)}, u32[])";
  const std::string state = "(s32[], bf16[2,2], f32[3]{0:S(5)}, " + start + ")";
  return toy_program(
      "%body (s: " + state + ") -> " + state + " {\n  %s = " + state +
      " parameter(0)\n  %i = s32[] get-tuple-element(%s), index=0\n"
      "  %m = bf16[2,2] get-tuple-element(%s), index=1\n"
      "  %h = f32[3]{0:S(5)} get-tuple-element(%s), index=2\n"
      "  %begun = " +
      start + " get-tuple-element(%s), index=3\n" +
      "  %in.done = f32[3] copy-done(%begun)\n  %use = f32[3] add(%in.done, %in.done)\n"
      "  %in = " +
      start + " copy-start(%h)\n" + products("a", 1) + "  ROOT %next = " + state +
      " tuple(%i, %m, %h, %in)\n}\n%condition (c: " + state + ") -> pred[] {\n  %c = " + state +
      " parameter(0)\n  %k = s32[] get-tuple-element(%c), index=0\n  %n = s32[] constant(4)\n"
      "  ROOT %lt = pred[] compare(%k, %n), direction=LT\n}\nENTRY %main {\n"
      "  %zero = s32[] parameter(0)\n  %w = bf16[2,2] parameter(1)\n"
      "  %host = f32[3]{0:S(5)} parameter(2)\n  %first = " +
      start + " copy-start(%host)\n  %begin = " + state +
      " tuple(%zero, %w, %host, %first)\n  %loop = " + state +
      " while(%begin), condition=%condition, body=%body, "
      "backend_config={\"known_trip_count\":{\"n\":\"" +
      std::to_string(trips) + "\"}}\n  %left = " + start +
      " get-tuple-element(%loop), index=3\n  ROOT %last.done = f32[3] copy-done(%left)\n}\n");
}

TEST_CASE("a pipelined loop's starts are one operation, by whatever name it is asked for") {
  const Program program = carried_start(10);
  for (const char* name : {"in", "first", "in.done", "last.done"}) {
    CAPTURE(name);
    const CopyExplanation e = explain(program, name);
    CHECK(e.instruction == "in");
    CHECK(e.starts == std::vector<std::string>{"first", "in"});
    CHECK(e.runs == 11);
    CHECK(e.alone.value() == doctest::Approx(4));
    // The first is waited for at once, 4 s; each other for 2 s behind a product.
    CHECK(e.exposed.value() == doctest::Approx(4 + 10 * 2).epsilon(0.02));
    REQUIRE(e.waits.size() == 2);
    CHECK((e.waits[0].exposed + e.waits[1].exposed).value() == doctest::Approx(e.exposed.value()));
    CHECK(e.waits[0].times + e.waits[1].times == 11);
    CHECK(explain_text({e}).starts_with("in and first: reload of 12 B, 11 times a step, "));
  }
}

TEST_CASE("text and JSON say the same") {
  const auto copies =
      ask(read_entry(kParameters + products("a", 3) + kOffload + kOffloadDone + kEnd), "out");
  REQUIRE(copies.ok());
  CHECK(explain_text(*copies) ==
        "out: offload of 12 B, once a step, on memcpy_d2h_stream\n"
        "  takes 7.000 s alone; exposed 7.000 s: 53.8 % of 13.000 s\n"
        "  the main stream waits at out.done\n"
        "  why: issued-late: it could have started 6.000 s of kernels earlier\n"
        "  for 6.000 s of the wait it runs as fast as it can\n"
        "  for 1.000 s of the wait it starts up\n"
        "  what would hide it, each simulated:\n"
        "    earlier start  6.000 s of kernels earlier, in front of a0 at most (the step begins "
        "there): 1.000 s stay exposed, step 7.000 s (-46.15 %)\n"
        "    later done     cannot move: the step ends there\n"
        "    faster link    64.00 times today's rate, 0.0 GB/s: 1.375 s stay exposed, step "
        "7.375 s (-43.27 %)\n"
        "    more compute   cannot: no kernel runs between its start and the wait\n");
  const auto json = nlohmann::ordered_json::parse(explain_json("out", *copies));
  CHECK(json["asked"] == "out");
  const auto& copy = json["copies"][0];
  CHECK(copy["exposed_seconds"] == 7);
  CHECK(copy["waits"][0]["done"] == "out.done");
  CHECK(copy["while_waiting"][0]["cause"] == "full-speed");
  CHECK(copy["remedies"][0]["remedy"] == "earlier-start");
  CHECK(copy["remedies"][0]["exposed_seconds"].get<double>() == doctest::Approx(1));
  CHECK(copy["remedies"][1]["possible"] == false);
}

}  // namespace
}  // namespace spillway
