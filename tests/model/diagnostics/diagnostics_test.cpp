// Each rule provoked by one change to a program that nothing is said about.
#include "model/diagnostics/diagnostics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway {
namespace {

using testing::Fetch;
using testing::Inspected;
using testing::replaced;
using testing::Save;
using testing::ToyScan;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

/// A scanned step that offloads both of its stacks.
std::string clean_text() {
  const testing::ToyStack offloaded{Save::kAsync, Fetch::kAsync, true};
  return ToyScan{.a = offloaded, .b = offloaded}.text();
}

/// A scanned step with both of its stacks, that may overwrite its argument.
Inspected inspect(const std::string& text) {
  Inspected found = testing::inspect(text, ", input_output_alias={ {}: (0, {}, may-alias) }");
  REQUIRE(found.residuals.residuals.size() == 2);
  return found;
}

/// "code severity: message", a line each. The toy's copies end where they begin; what is said
/// about that is left out.
std::vector<std::string> said_about(const Inspected& inspected) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : inspected.diagnose())
    if (d.code != "copies-wait")
      lines.push_back(d.code + " " + std::string(name_of(d.severity)) + ": " + d.message());
  return lines;
}

TEST_CASE("about a clean program nothing is said") {
  CHECK(said_about(inspect(clean_text())) == std::vector<std::string>());
}

TEST_CASE("each rule says what is wrong, why, and what to do") {
  struct Row {
    std::string name;
    std::string text;
    std::function<void(Inspected&)> change;
    std::string starts;                 ///< of the one line that is said
    std::vector<const char*> contains;  ///< what a user needs to find in it
  };
  const auto as_read = [](Inspected&) {};
  const std::string end = "ROOT %end = f32[64]{0} negate(%gradient)";
  const Row rows[] = {
      {"a kernel on an offloaded array",
       replaced(clean_text(), end, "%sum = f32[4,64]{1,0} tanh(%fw2)\n  " + end),
       as_read,
       "host-compute warning: 1 instruction computes on arrays in pinned host memory, first sum.",
       {"--xla_disable_automatic_host_compute_offload=true"}},
      {"two of them",
       replaced(clean_text(), end,
                "%sum = f32[4,64]{1,0} tanh(%fw2)\n  %more = f32[4,64]{1,0} "
                "tanh(%fw3)\n  " +
                    end),
       as_read,
       "host-compute warning: 2 instructions compute",
       {"first sum"}},
      {"a fusion on an offloaded array, and what is in it",
       replaced(replaced(clean_text(), end,
                         "%sum = f32[4,64]{1,0} fusion(%fw2), kind=kLoop, calls=%inside\n  " + end),
                "ENTRY",
                "%inside () -> f32[] {\n  %in0 = f32[4,64]{1,0:S(5)} parameter(0)\n  ROOT %in1 = "
                "f32[4,64]{1,0} tanh(%in0)\n}\nENTRY"),
       as_read,
       "host-compute warning: 1 instruction computes on arrays in pinned host memory, first sum.",
       {}},
      {"XLA's own rematerialisation",
       replaced(clean_text(), end, "%sum.remat2 = f32[64]{0} tanh(%gradient)\n  " + end),
       as_read,
       "xla-remat-clones warning: 1 instruction is a clone made",
       {"--xla_disable_hlo_passes=rematerialization"}},
      {"a loop that runs nobody knows how often",
       replaced(clean_text(),
                ", body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"}}",
                ", body=%backward"),
       as_read,
       "unknown-trip-count warning: 1 loop has no known trip count, first bw.",
       {}},
      {"more host memory than XLA's pool holds",
       clean_text(),
       [](Inspected& i) { i.memory.totals.host_temp = Bytes(64 * kGibibyte + 1); },
       "host-pool warning: the step needs 64.00 GiB of pinned host memory",
       {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=65 "}},
      {"host memory of arguments and results",
       clean_text(),
       [](Inspected& i) {
         MemoryTotals& totals = i.memory.totals;
         totals.host_temp = Bytes(0);
         totals.host_argument = Bytes(70 * kGibibyte);
         totals.host_output = Bytes(70 * kGibibyte);
         totals.host_alias = Bytes(60 * kGibibyte);
       },
       "host-pool warning: the step needs 80.00 GiB of pinned host memory",
       {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=80 "}},
      {"a stack copied between the loops",
       clean_text(),
       [](Inspected& i) { i.residuals.residuals[ResidualId(1)].copied_between_loops = true; },
       "stack-copied warning: XLA copies or transposes r1 between",
       {"1.00 KiB are held twice"}},
      {"two, one with a name",
       clean_text(),
       [](Inspected& i) {
         for (Residual& residual : i.residuals.residuals) residual.copied_between_loops = true;
         i.residuals.residuals[ResidualId(0)].names = {"query", "q"};
       },
       "stack-copied warning: XLA copies or transposes query=q, r1 between",
       {"2.00 KiB"}},
      {"everything stays on the device",
       ToyScan{}.text(),
       as_read,
       "nothing-offloaded info: nothing moves between HBM and pinned host memory.",
       {"it matched no name"}},
      {"names that nothing carries",
       clean_text(),
       [](Inspected& i) {
         i.residuals.unmatched_names = {"query", "key"};
       },
       "names-without-residual info: no residual carries query, key.",
       {}},
      {"guessed names",
       clean_text(),
       [](Inspected& i) {
         for (Residual& residual : i.residuals.residuals) residual.evidence = NameEvidence::kGuess;
         i.residuals.residuals[ResidualId(0)].names = {"query"};
         i.residuals.residuals[ResidualId(1)].names = {"key"};
       },
       "guessed-names info: names are guessed: r0 = query, r1 = key.",
       {"taken in order"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Inspected inspected = inspect(row.text);
    row.change(inspected);
    const auto said = said_about(inspected);
    CAPTURE((said.empty() ? "" : said.back()));
    REQUIRE(said.size() == 1);
    CAPTURE(said[0]);
    CHECK(said[0].starts_with(row.starts));
    for (const char* piece : row.contains) CHECK(said[0].find(piece) != std::string::npos);
  }
}

TEST_CASE("host memory that XLA's pool just holds is not mentioned") {
  Inspected inspected = inspect(clean_text());
  inspected.memory.totals.host_temp = Bytes(64 * kGibibyte);
  CHECK(said_about(inspected).empty());
}

TEST_CASE("matched names are not called guesses") {
  for (const NameEvidence evidence :
       {NameEvidence::kShape, NameEvidence::kCarry, NameEvidence::kSource, NameEvidence::kOrder}) {
    CAPTURE(name_of(evidence));
    Inspected inspected = inspect(clean_text());
    for (Residual& residual : inspected.residuals.residuals) {
      residual.evidence = evidence;
      residual.names = {"query"};
    }
    CHECK(said_about(inspected).empty());
  }
}

TEST_CASE("warnings stand first") {
  Inspected inspected = inspect(ToyScan{}.text());
  inspected.residuals.unmatched_names = {"query"};
  inspected.memory.totals.host_temp = Bytes(80 * kGibibyte);
  inspected.residuals.residuals[ResidualId(0)].copied_between_loops = true;
  std::vector<Severity> severities;
  for (const Diagnostic& d : inspected.diagnose()) severities.push_back(d.severity);
  CHECK(severities.size() == 4);
  CHECK(std::ranges::is_sorted(severities, std::ranges::greater()));
}

}  // namespace
}  // namespace spillway
