// When each value lives and what the heaps do about it, against XLA's own account in the corpus:
// …-live-range.txt, and the traces of the heap simulator in .hlo.pb.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/model/memory/heap_trace.h"
#include "tests/model/memory/live_range_text.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::LoadedDump;

struct RangeComparison {
  std::size_t values = 0;   ///< of XLA
  std::size_t shorter = 0;  ///< tuple tables of which XLA knows a later use: see compare_ranges
  std::string first_different;
};

/// A position of XLA's sequence in ours. XLA has an instruction more for each element that is taken
/// out of a tuple; such a one stands where our next one does.
struct MappedPosition {
  LogicalTime ours;
  bool takes_element = false;
};

std::vector<MappedPosition> map_positions(const LoadedDump& dump,
                                          const testing::TrueLiveRanges& truth,
                                          RangeComparison& result) {
  const auto& order = dump.memory.schedule.order;
  std::vector<MappedPosition> mapped;
  std::size_t ours = 0;
  for (const std::string& name : truth.sequence) {
    const bool same = ours < order.size() && dump.program[order[ours]].name == name;
    mapped.push_back({LogicalTime(static_cast<std::int32_t>(ours)), !same});
    ours += same ? 1 : 0;
  }
  mapped.push_back({LogicalTime(static_cast<std::int32_t>(ours))});
  if (ours < order.size())
    result.first_different = std::string(dump.program[order[ours]].name) + " is out of order";
  return mapped;
}

/// "12-15 (add.3 to the end)", in our positions.
std::string describe_range(const LoadedDump& dump, LogicalTime start, LogicalTime end) {
  const auto name = [&](LogicalTime at) {
    return at < dump.memory.schedule.end()
               ? std::string(
                     dump.program[dump.memory.schedule.order[static_cast<std::size_t>(at.value())]]
                         .name)
               : "the end";
  };
  return std::to_string(start.value()) + "-" + std::to_string(end.value()) + " (" + name(start) +
         " to " + name(end) + ")";
}

/// Every value must begin and end where XLA's does. Except that XLA knows one use more of a tuple's
/// table of pointers, the instruction that takes an element out: our programs have no such
/// instructions, and text from July 2026 on does not say where they stand. A table shares its
/// memory with nobody, whenever it lives.
RangeComparison compare_ranges(const LoadedDump& dump, const testing::TrueLiveRanges& truth) {
  RangeComparison result;
  const std::vector<MappedPosition> mapped = map_positions(dump, truth, result);
  std::map<std::string, ValueId> ours;
  for (const ValueId id : ids(dump.memory.values.values())) {
    const Position& at = dump.memory.values[id].defined_at;
    const Instruction& in = dump.program[at.instruction];
    ours[std::string(in.name) + path_to_string(in.shape, at.node)] = id;
  }
  const auto differs = [&](const std::string& line) {
    if (result.first_different.empty()) result.first_different = line;
  };
  for (const testing::TrueRange& theirs : truth.ranges) {
    ++result.values;
    const auto found = ours.find(theirs.value);
    if (found == ours.end()) {
      differs(theirs.value + ": not a value of ours");
      continue;
    }
    const LiveRange& range = dump.memory.liveness.ranges[found->second];
    REQUIRE(theirs.end < mapped.size());
    const LogicalTime start = mapped[theirs.start].ours;
    const LogicalTime end = mapped[theirs.end].ours;
    const bool table = dump.memory.values[found->second].shape.is_tuple();
    const bool shorter = table && mapped[theirs.end].takes_element && range.end < end;
    result.shorter += shorter ? 1 : 0;
    if (range.start != start || (range.end != end && !shorter))
      differs(theirs.value + ": " + describe_range(dump, range.start, range.end) +
              "; XLA: " + describe_range(dump, start, end));
  }
  if (ours.size() != result.values)
    differs(std::to_string(ours.size()) + " values of ours, " + std::to_string(result.values) +
            " of XLA's");
  return result;
}

/// jaxlib 0.11 writes %x#1 as later ones do, but counts time as earlier ones did (live_range.h);
/// nothing in a program says which wrote it, so that these tests do.
LoadedDump load_with_its_clock(const std::filesystem::path& folder) {
  const bool counts_as_before = folder.filename().string().starts_with("v0_11_");
  const auto older = [](Program& program) { program.has_explicit_elements = true; };
  return counts_as_before ? testing::load_dump(folder, older) : testing::load_dump(folder);
}

TEST_CASE("the corpus: every value lives from where XLA says to where XLA says") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t programs = 0, values = 0, shorter = 0;
  for (const testing::CsvRow& row : testing::corpus_rows(*corpus)) {
    const std::string& id = row.at("id");
    const auto file = testing::find_file_in(*corpus / id, "-live-range.txt.gz");
    if (file.empty()) continue;
    CAPTURE(id);
    const LoadedDump dump = load_with_its_clock(*corpus / id);
    const RangeComparison compared = compare_ranges(dump, testing::read_live_ranges(file.string()));
    CHECK(compared.first_different == "");
    ++programs;
    values += compared.values;
    shorter += compared.shorter;
  }
  CHECK(values > programs);
  MESSAGE(programs << " programs: " << values << " values live as long as XLA says, " << shorter
                   << " tuple tables among them but for the taking of an element");
}

TEST_CASE("the corpus: every heap allocates, frees and shares what XLA's does, in its order") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t programs = 0, events = 0;
  for (const testing::CsvRow& row : testing::corpus_rows(*corpus)) {
    const std::string& id = row.at("id");
    CAPTURE(id);
    const LoadedDump dump = load_with_its_clock(*corpus / id);
    const auto ours = testing::replayed_events(dump);
    const auto truth =
        testing::read_heap_events(testing::file_in(*corpus / id, ".hlo.pb.gz").string());
    CHECK(ours.size() == truth.size());
    for (const auto& [space, theirs] : truth) {
      const auto found = ours.find(space);
      REQUIRE(found != ours.end());
      const auto [a, b] = std::ranges::mismatch(found->second, theirs);
      CHECK((a == found->second.end() ? "nothing more" : *a) ==
            (b == theirs.end() ? "nothing more" : *b));
      events += theirs.size();
    }
    ++programs;
  }
  CHECK(events > programs);
  MESSAGE(programs << " programs, " << events << " events");
}

}  // namespace
}  // namespace spillway
