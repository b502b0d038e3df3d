// What is found in the toy scan, in every form XLA gives it.
#include "model/residuals/residuals.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::kFetches;
using testing::kSaves;
using testing::Save;
using testing::scan;
using testing::Scanned;
using testing::ToyScan;

std::string describe(const Scanned& found, const StackAccess& access) {
  return fmt::format("{}/{} in {}", found.program[access.instruction].name, access.operand,
                     found.program[access.loop].name);
}

/// All that the table says of a residual, but for names.
std::string describe(const Scanned& found, const Residual& r) {
  std::string text = fmt::format(
      "{}: {} x {} B = {} B on {}{}{}{}; made at {}, used until {}, then {} to {}; saved by {}",
      r.id, r.layers, r.bytes_per_layer.value(), r.total_bytes.value(), name_of(r.placement),
      r.is_layer_input ? ", layer input" : "", r.copied_between_loops ? ", copied" : "",
      r.peeled ? ", peeled" : "", found.at(r.defined_at), found.at(r.last_forward_use),
      found.at(r.first_backward_use), found.at(r.last_use), describe(found, r.write));
  for (const StackAccess& read : r.reads) text += ", read by " + describe(found, read);
  return text;
}

/// What the forms of saving and fetching say of stack `n`.
std::string saved_by(Save save, const std::string& n) {
  switch (save) {
    case Save::kMaker:
      return "made/0 in fw";
    case Save::kAsync:
      return "wu" + n + "/0 in fw";
    case Save::kAsyncFused:
      return "vu" + n + "/0 in fw";
    default:
      return "new_" + n + "/0 in fw";
  }
}
struct Uses {
  std::string first, last, reads;
};
Uses used_by(Fetch fetch, const std::string& n) {
  const std::string result = "g_" + n;
  switch (fetch) {
    case Fetch::kAlone:
      return {result, result, "read_" + n + "/0 in bw"};
    case Fetch::kTwice:
      return {"once_" + n, result, "once_" + n + "/1 in bw, read by g_" + n + "/1 in bw"};
    case Fetch::kAsync:
      return {result, result, "ds" + n + "/0 in bw"};
    case Fetch::kAsyncFused:
      return {result, result, "es" + n + "/0 in bw"};
    case Fetch::kAsyncCopied:
      return {result, result, "cs" + n + "/0 in bw"};
    case Fetch::kLibrary:
      return {"call_" + n, "call_" + n, "call_" + n + "/1 in bw"};
    default:
      return {result, result, "g_" + n + "/1 in bw"};
  }
}

void check_both(const ToyScan& toy) {
  const Scanned found = scan(toy);
  REQUIRE(found.table.residuals.size() == 2);
  const auto expected = [](const char* id, const testing::ToyStack& stack, const std::string& n,
                           const std::string& place, const char* made, const char* used) {
    const Uses uses = used_by(stack.fetch, n);
    return fmt::format(
        "{}: 4 x 256 B = 1024 B on {}{}; made at {}, used until {}, then {} to {}; saved by {}, "
        "read by {}",
        id, stack.on_host ? "pinned_host" : "device", place, made, used, uses.first, uses.last,
        saved_by(stack.save, n), uses.reads);
  };
  CHECK(describe(found, found.table.residuals[ResidualId(0)]) ==
        expected("r0", toy.a, "a", ", layer input", "p", "y"));
  // What a fusion keeps to itself is used by nobody else.
  const bool kept = toy.b.save == Save::kOnlyMaker;
  CHECK(describe(found, found.table.residuals[ResidualId(1)]) ==
        expected("r1", toy.b, "b", "",
                 kept                         ? "new_b"
                 : toy.b.save == Save::kMaker ? "made"
                                              : "h",
                 kept ? "new_b" : "y"));
}

TEST_CASE("a stack written in one loop and read in the next is a residual, in every form") {
  for (const Save save : kSaves)
    for (const Fetch fetch : kFetches)
      for (const bool on_host : {false, true})
        for (const int outer_trips : {0, 3}) {
          CAPTURE(static_cast<int>(save));
          CAPTURE(static_cast<int>(fetch));
          CAPTURE(on_host);
          CAPTURE(outer_trips);
          ToyScan toy{.a = {save, fetch, on_host}, .b = {save, fetch, on_host}};
          if (is_maker(save)) toy.a.save = Save::kFused;
          toy.outer_trips = outer_trips;
          check_both(toy);
        }
}

TEST_CASE("each stack has a form of its own") {
  check_both({.a = {Save::kAsync, Fetch::kTwice, true}, .b = {Save::kMaker, Fetch::kAsync, false}});
}

TEST_CASE("what only one loop touches is no residual") {
  const Scanned unread = scan(ToyScan{.b = {.fetch = Fetch::kNone}});
  REQUIRE(unread.table.residuals.size() == 1);
  CHECK(unread.program[unread.table.residuals[ResidualId(0)].write.instruction].name == "new_a");
  const Scanned none = scan(ToyScan{.a = {.fetch = Fetch::kNone}, .b = {.fetch = Fetch::kNone}});
  CHECK(none.table.residuals.empty());
  // Read in the same loop that writes it, and nowhere else.
  CHECK(scan(testing::toy_program(R"(
%body () -> f32[] {
  %p = (s32[], f32[1,64]{1,0}, f32[4,64]{1,0}) parameter(0)
  %zero = s32[] constant(0)
  %read = f32[1,64]{1,0} dynamic-slice(%p#2, %p#0, %zero), dynamic_slice_sizes={1,64}
  %sum = f32[1,64]{1,0} add(%p#1, %read)
  %write = f32[4,64]{1,0} dynamic-update-slice(%p#2, %sum, %p#0, %zero)
  %next = s32[] add(%p#0, %p#0)
  ROOT %t = (s32[], f32[1,64]{1,0}, f32[4,64]{1,0}) tuple(%next, %sum, %write)
}
%less () -> pred[] {
  %q = (s32[], f32[1,64]{1,0}, f32[4,64]{1,0}) parameter(0)
  ROOT %r = pred[] constant(true)
}
ENTRY %main () -> f32[] {
  %i = s32[] parameter(0)
  %x = f32[1,64]{1,0} parameter(1)
  %s = f32[4,64]{1,0} parameter(2)
  %t0 = (s32[], f32[1,64]{1,0}, f32[4,64]{1,0}) tuple(%i, %x, %s)
  ROOT %w = (s32[], f32[1,64]{1,0}, f32[4,64]{1,0}) while(%t0), condition=%less, body=%body
}
)"))
            .table.residuals.empty());
}

TEST_CASE("a stack of one layer is no residual: it does not matter where it lies") {
  std::string text = ToyScan{}.text();
  for (std::size_t at = text.find("[4,64]"); at != std::string::npos; at = text.find("[4,64]", at))
    text.replace(at, 6, "[1,64]");
  CHECK(scan(testing::toy_program(text)).table.residuals.empty());
}

TEST_CASE("a stack that is copied between the loops is found where it is written") {
  const Scanned found = scan(ToyScan{.b = {.copied = true}});
  REQUIRE(found.table.residuals.size() == 2);
  CHECK_FALSE(found.table.residuals[ResidualId(0)].copied_between_loops);
  CHECK(describe(found, found.table.residuals[ResidualId(1)]) ==
        "r1: 4 x 256 B = 1024 B on device, copied; made at h, used until y, then g_b to g_b; "
        "saved by new_b/0 in fw, read by g_b/1 in bw");
}

TEST_CASE("pipelined copies: what an iteration saves was made in the one before") {
  const Scanned found = scan(ToyScan{.b = {Save::kAsync, Fetch::kAsync, true}, .pipelined = true});
  REQUIRE(found.table.residuals.size() == 2);
  CHECK_FALSE(found.table.residuals[ResidualId(0)].peeled);
  CHECK(describe(found, found.table.residuals[ResidualId(1)]) ==
        "r1: 4 x 256 B = 1024 B on pinned_host, peeled; made at h, used until y, then g_b to g_b; "
        "saved by wub/0 in fw, read by dsb/0 in bw");
}

TEST_CASE("every later loop that reads a stack is listed") {
  const Scanned found = scan(ToyScan{.third_loop = true});
  REQUIRE(found.table.residuals.size() == 2);
  CHECK(describe(found, found.table.residuals[ResidualId(0)]) ==
        "r0: 4 x 256 B = 1024 B on device, layer input; made at p, used until y, then g_a to g_3; "
        "saved by new_a/0 in fw, read by g_a/1 in bw, read by read_3/0 in third");
}

TEST_CASE("what XLA says of the producer is kept") {
  std::string text = ToyScan{}.text();
  const std::string line = "%h = f32[64]{0} tanh(%x)";
  text.replace(text.find(line), line.size(),
               line +
                   ", metadata={op_name=\"jit(step)/while/body/tanh\" "
                   "source_file=\"/home/me/models/toy.py\" source_line=7}");
  const Scanned found = scan(testing::toy_program(text));
  REQUIRE(found.table.residuals.size() == 2);
  CHECK(found.table.residuals[ResidualId(1)].op_name == "jit(step)/while/body/tanh");
  CHECK(found.table.residuals[ResidualId(1)].source == "/home/me/models/toy.py:7");
  CHECK(found.table.residuals[ResidualId(0)].op_name == "");
  CHECK(found.table.residuals[ResidualId(0)].source == "");
}

TEST_CASE("names of the sidecar find their stacks in a program") {
  const auto name = [](const char* text) {
    return CheckpointName{text, {64}, ElementType::kF32, "toy.py:1", 4};
  };
  const Scanned found = scan(ToyScan{}, {.names = {name("x"), name("h"), name("unsaved")}});
  REQUIRE(found.table.residuals.size() == 2);
  CHECK(found.table.residuals[ResidualId(0)].names == std::vector<std::string>{"x"});
  CHECK(found.table.residuals[ResidualId(0)].evidence == NameEvidence::kCarry);
  CHECK(found.table.residuals[ResidualId(1)].names == std::vector<std::string>{"h"});
  CHECK(found.table.residuals[ResidualId(1)].evidence == NameEvidence::kGuess);
  CHECK(found.table.unmatched_names == std::vector<std::string>{"unsaved"});
}

}  // namespace
}  // namespace spillway
