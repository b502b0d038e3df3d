// Rules about offloads, on straight code and on scanned steps.
#include <doctest/doctest.h>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::find_diagnostic;
using testing::inspect;
using testing::Inspected;
using testing::kOffloaded;
using testing::ToyScan;
using testing::what_of;

TEST_CASE("an offload that was asked for and is not there") {
  Inspected kept = inspect(ToyScan{}.text());
  CHECK(what_of(kept, "offload-vanished") == "");
  CHECK(what_of(kept, "nothing-offloaded") == "nothing moves between HBM and pinned host memory.");

  kept.dump.host_placements_asked = 0;
  CHECK(what_of(kept, "offload-vanished") == "");
  kept.dump.host_placements_asked = 3;
  CHECK(
      what_of(kept, "offload-vanished") ==
      "the step asks 3 times for pinned host memory before optimisation, and the compiled program "
      "moves nothing there.");
  CHECK(what_of(kept, "nothing-offloaded") == "");

  Inspected moved = inspect(ToyScan{.a = kOffloaded}.text());
  moved.dump.host_placements_asked = 3;
  CHECK(what_of(moved, "offload-vanished") == "");
  CHECK(what_of(moved, "nothing-offloaded") == "");
}

TEST_CASE("the largest stack that is kept is where to begin") {
  Inspected kept = inspect(ToyScan{}.text());
  REQUIRE(kept.residuals.residuals.size() == 2);
  Residual& second = kept.residuals.residuals[ResidualId(1)];
  second.total_bytes = Bytes(2048);
  const auto advice = [&] { return find_diagnostic(kept, "nothing-offloaded")->advice; };
  CHECK(advice() ==
        "The largest stack that is kept is r1, 2.00 KiB. It needs a name: "
        "jax.ad_checkpoint.checkpoint_name on the value and that name in "
        "save_and_offload_only_these_names.");
  second.source = "/env/lib/site-packages///maxtext/llama2.py:164";
  CHECK(advice().find("on the value, made at maxtext/llama2.py:164, and that name") !=
        std::string::npos);
  second.names = {"query_proj"};
  CHECK(advice() ==
        "The largest stack that is kept is query_proj, 2.00 KiB. Put \"query_proj\" into "
        "names_which_can_be_offloaded of save_and_offload_only_these_names (MaxText: query_proj: "
        "offload).");
}

TEST_CASE("what is left on the device beside what is offloaded") {
  const Inspected half = inspect(ToyScan{.a = kOffloaded}.text());
  CHECK(what_of(half, "largest-still-kept").starts_with("r1 keeps 1.00 KiB on the device, "));
  const Inspected all = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  CHECK(what_of(all, "largest-still-kept") == "");
  CHECK(what_of(inspect(ToyScan{}.text()), "largest-still-kept") == "");
}

TEST_CASE("whether the step asked is known from the module before optimisation") {
  Inspected kept = inspect(ToyScan{}.text());
  CHECK(find_diagnostic(kept, "nothing-offloaded")->why.starts_with("If a policy asked"));
  kept.dump.host_placements_asked = 0;
  CHECK(find_diagnostic(kept, "nothing-offloaded")->why == "The step did not ask for it.");
}

TEST_CASE("a stack that is written in a loop's condition disturbs nobody") {
  const std::string state = "(s32[], f32[4,64]{1,0}, f32[1,64]{1,0})";
  const auto loop = [&](const std::string& name, const std::string& body,
                        const std::string& condition) {
    return "%" + name + "_body {\n  %p" + name + " = " + state + " parameter(0)\n" + body + "}\n%" +
           name + "_less {\n  %q" + name + " = " + state + " parameter(0)\n" + condition +
           "  ROOT %t" + name + " = pred[] constant(true)\n}\n";
  };
  const std::string again = ", backend_config={\"known_trip_count\":{\"n\":\"4\"}}\n";
  const std::string text =
      loop("f", "  ROOT %nf = " + state + " tuple(%pf#0, %pf#1, %pf#2)\n",
           "  %w = f32[4,64]{1,0} dynamic-update-slice(%qf#1, %qf#2, %qf#0, %qf#0)\n") +
      loop("b",
           "  %r = f32[1,64]{1,0} dynamic-slice(%pb#1, %pb#0, %pb#0), dynamic_slice_sizes={1,64}\n"
           "  ROOT %nb = " +
               state + " tuple(%pb#0, %pb#1, %r)\n",
           "") +
      "ENTRY %main {\n  %i = s32[] parameter(0)\n  %s = f32[4,64]{1,0} parameter(1)\n  %x = "
      "f32[1,64]{1,0} parameter(2)\n  %t0 = " +
      state + " tuple(%i, %s, %x)\n  %fw = " + state +
      " while(%t0), condition=%f_less, body=%f_body" + again + "  %bw = " + state +
      " while(%fw), condition=%b_less, body=%b_body" + again +
      "  ROOT %end = f32[1,64]{1,0} negate(%bw#2)\n}\n";
  CHECK(what_of(inspect(text), "kernel-runs-again") == "");
}

/// Two arrays of 64 floats that go to the host and come back, around a place where another 64
/// are made; where copies begin and end is up to the rows.
std::string round_trip(const std::string& lines) {
  return "ENTRY %main {\n  %x = f32[64]{0} parameter(0)\n  %a = f32[64]{0} tanh(%x)\n"
         "  %b = f32[64]{0} negate(%x)\n" +
         lines + "  ROOT %r = f32[64]{0} add(%abs, %sum)\n}\n";
}
const std::string kOutA = "  %oa = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%a)\n";
const std::string kOutB = "  %ob = (f32[64]{0:S(5)}, f32[64]{0}, u32[]) copy-start(%b)\n";
const std::string kOutDone =
    "  %ha = f32[64]{0:S(5)} copy-done(%oa)\n  %hb = f32[64]{0:S(5)} copy-done(%ob)\n";
/// The most is live here: an array four times as large, and whatever has not left.
const std::string kPeak =
    "  %c = f32[256]{0} concatenate(%x, %x, %x, %x), dimensions={0}\n  %abs = f32[64]{0} "
    "slice(%c), "
    "slice={[0:64]}\n";
const std::string kIn =
    "  %ia = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%ha)\n"
    "  %ib = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%hb)\n";
const std::string kInDone =
    "  %ra = f32[64]{0} copy-done(%ia)\n  %rb = f32[64]{0} copy-done(%ib)\n"
    "  %sum = f32[64]{0} add(%ra, %rb)\n";

TEST_CASE("a round trip in straight code that frees nothing when it matters") {
  struct Row {
    std::string name;
    std::string lines;
    std::string what;
  };
  const Row rows[] = {
      {"gone in between", kOutA + kOutB + kOutDone + kPeak + kIn + kInDone, ""},
      {"not gone yet", kPeak + kOutA + kOutB + kOutDone + kIn + kInDone,
       "2 arrays go to the host (512 B), but when most HBM is in use 512 B of that are still there "
       "and 0 B are back already."},
      {"back already", kOutA + kOutB + kOutDone + kIn + kPeak + kInDone,
       "2 arrays go to the host (512 B), but when most HBM is in use 0 B of that are still there "
       "and 512 B are back already."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(what_of(inspect(round_trip(row.lines)), "round-trip-at-peak") == row.what);
  }
}

TEST_CASE("a host that never holds what is sent there") {
  // One after the other, each copy out ends just before the one back.
  const std::string serial =
      kOutA + "  %ha = f32[64]{0:S(5)} copy-done(%oa)\n" +
      "  %ia = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%ha)\n"
      "  %ra = f32[64]{0} copy-done(%ia)\n" +
      kPeak + kOutB + "  %hb = f32[64]{0:S(5)} copy-done(%ob)\n" +
      "  %ib = (f32[64]{0}, f32[64]{0:S(5)}, u32[]) copy-start(%hb)\n"
      "  %rb = f32[64]{0} copy-done(%ib)\n  %sum = f32[64]{0} add(%ra, %rb)\n";
  CHECK(what_of(inspect(round_trip(serial)), "host-bytes-short") ==
        "2 arrays go to the host, 512 B in all, but it never holds more than 256 B.");
  const std::string together = kOutA + kOutB + kOutDone + kPeak + kIn + kInDone;
  CHECK(what_of(inspect(round_trip(together)), "host-bytes-short") == "");
  // Slices of stacks are counted by their stack.
  CHECK(what_of(inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text()), "host-bytes-short") ==
        "");
}

TEST_CASE("an offload that frees memory where there is enough") {
  Inspected scanned = inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text());
  CHECK(what_of(scanned, "offload-not-at-peak") == "");
  // Something large behind the loops.
  const std::string end = "ROOT %end = f32[64]{0} negate(%gradient)";
  const std::string large =
      "%large = f32[4096]{0} broadcast(%nothing), dimensions={}\n  %small = f32[] "
      "reduce(%large, %nothing), dimensions={0}, to_apply=%plus\n  %spread = f32[64]{0} "
      "broadcast(%small), dimensions={}\n  ROOT %end = f32[64]{0} add(%gradient, %spread)";
  const std::string plus =
      "%plus {\n  %pa = f32[] parameter(0)\n  %pb = f32[] parameter(1)\n  ROOT %ps = f32[] "
      "add(%pa, "
      "%pb)\n}\n";
  Inspected elsewhere = inspect(
      plus + testing::replaced(ToyScan{.a = kOffloaded, .b = kOffloaded}.text(), end, large));
  CHECK(what_of(elsewhere, "offload-not-at-peak") ==
        "offloading r0, r1 (2.00 KiB) lowers the peak by less than a tenth of that each.");
  const auto found = find_diagnostic(elsewhere, "offload-not-at-peak");
  CHECK(found->why == "Most is live at small, when what they free is not in use.");
}

TEST_CASE("a saved attention result that does not spare the kernel") {
  // Four heads, four queries and keys of four numbers each.
  const auto attention = [](const std::string& name, const std::string& from) {
    const std::string heads = "f32[1,4,4,4]{3,2,1,0}";
    const std::string in = "%" + name + "_in";
    return "  " + in + " = " + heads + " bitcast(%" + from + ")\n  %" + name + " = (" + heads +
           ", f32[1,4,4]{2,1,0}, u8[0]{0}) custom-call(" + in + ", " + in + ", " + in +
           "), custom_call_target=\"__cudnn$fmhaSoftmax\", "
           "backend_config={\"cudnn_fmha_backend_config\":{\"intermediate_tensor_shape\":{"
           "\"dimensions\":[\"1\",\"4\",\"4\",\"4\"]},\"bmm1_dot_dimension_numbers\":{"
           "\"lhs_contracting_dimensions\":[\"3\"],\"rhs_contracting_dimensions\":[\"3\"],"
           "\"lhs_batch_dimensions\":[\"0\",\"1\"],\"rhs_batch_dimensions\":[\"0\",\"1\"]},"
           "\"bmm2_dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"3\"],"
           "\"rhs_contracting_dimensions\":[\"2\"],\"lhs_batch_dimensions\":[\"0\",\"1\"],"
           "\"rhs_batch_dimensions\":[\"0\",\"1\"]}}}\n";
  };
  // The forward loop saves what the kernel makes of its input in place of tanh of it.
  std::string saved =
      testing::replaced(ToyScan{}.text(), "  %h = f32[64]{0} tanh(%x)\n",
                        attention("kernel", "x") +
                            "  %context = f32[1,4,4,4]{3,2,1,0} get-tuple-element(%kernel), "
                            "index=0\n  %h = f32[64]{0} bitcast(%context)\n");
  CHECK(what_of(inspect(saved), "kernel-runs-again") == "");
  const std::string again =
      testing::replaced(saved, "  %k = s32[] subtract(%three, %i2)\n",
                        "  %k = s32[] subtract(%three, %i2)\n" + attention("once_more", "g"));
  CHECK(what_of(inspect(again), "kernel-runs-again") ==
        "the backward pass runs the forward attention kernel again, although its result r1 (1.00 "
        "KiB) is kept or offloaded.");
  // Recomputed, but not saved: as the policy says.
  const std::string unsaved =
      testing::replaced(ToyScan{}.text(), "  %k = s32[] subtract(%three, %i2)\n",
                        "  %k = s32[] subtract(%three, %i2)\n" + attention("once_more", "g"));
  CHECK(what_of(inspect(unsaved), "kernel-runs-again") == "");
}

TEST_CASE("pipelined copies hold a layer more") {
  CHECK(what_of(inspect(ToyScan{.a = kOffloaded, .b = kOffloaded}.text()), "loops-pipelined") ==
        "");
  CHECK(what_of(inspect(ToyScan{.a = kOffloaded, .b = kOffloaded, .pipelined = true}.text()),
                "loops-pipelined") ==
        "the copies of r1 are pipelined over the iterations of their loops, which holds up to "
        "256 B more in HBM while these run.");
}

}  // namespace
}  // namespace spillway
