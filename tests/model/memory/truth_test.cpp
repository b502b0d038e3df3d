// Memory against XLA's own answers: the dumps in examples/ by every allocation, and every program
// of the corpus by its totals where the corpus lies beside the repository.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/memory/memory_report.h"
#include "model/plan/budget.h"
#include "tests/golden.h"
#include "tests/model/memory/buffer_assignment.h"
#include "tests/model/memory/loaded_dump.h"
#include "tests/model/memory/no_overlap.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using testing::file_in;
using testing::load_dump;
using testing::LoadedDump;

/// Compares allocation by allocation, in the order of XLA's list but for thread-local scalars, and
/// every value's place.
testing::PlaceComparison compare_by_allocation(const fs::path& folder, const LoadedDump& loaded) {
  testing::TrueAssignment truth =
      testing::read_buffer_assignment(file_in(folder, "-buffer-assignment.txt.gz").string());
  std::vector<std::string> found;
  for (const Allocation& allocation : loaded.memory.allocations)
    found.push_back(std::to_string(allocation.size.value()) + " " +
                    testing::allocation_kind(allocation));
  const auto scalars_last = [](std::vector<std::string>& list) {
    const auto scalars = std::ranges::stable_partition(
        list, [](const std::string& allocation) { return !allocation.ends_with("thread-local"); });
    std::ranges::sort(scalars);
  };
  scalars_last(found);
  scalars_last(truth.allocations);
  const auto [ours, theirs] = std::ranges::mismatch(found, truth.allocations);
  CHECK((ours == found.end() ? "none" : *ours) ==
        (theirs == truth.allocations.end() ? "none" : *theirs));
  const testing::PlaceComparison places =
      testing::compare_places(loaded.program, loaded.memory, truth);
  CHECK(places.first_different == "");
  return places;
}

TEST_CASE("the dumps in examples/: totals, every allocation, every value") {
  for (const std::string name : {"keep", "offload_qkv", "offload_all"}) {
    CAPTURE(name);
    const fs::path folder = testing::source_path("examples/jax/dumps/" + name);
    const LoadedDump loaded = load_dump(folder);
    const auto truth = nlohmann::json::parse(std::ifstream(folder / "truth.json"));
    const auto& analysis = truth["memory_analysis"];
    const auto wanted = [&analysis](const char* key) {
      return Bytes(analysis[std::string(key) + "_size_in_bytes"].get<std::int64_t>());
    };
    const MemoryTotals totals = sum_totals(loaded.memory);
    CHECK(totals.argument == wanted("argument"));
    CHECK(totals.output == wanted("output"));
    CHECK(totals.alias == wanted("alias"));
    CHECK(totals.temp == wanted("temp"));
    CHECK(totals.host_argument == wanted("host_argument"));
    CHECK(totals.host_output == wanted("host_output"));
    CHECK(totals.host_alias == wanted("host_alias"));
    CHECK(totals.host_temp == wanted("host_temp"));
    CHECK(totals.total_device == Bytes(truth["allocations"]["device_bytes"].get<std::int64_t>()));
    CHECK(host_bytes(totals) == Bytes(truth["allocations"]["host_bytes"].get<std::int64_t>()));
    CHECK(testing::find_overlap(loaded.program, loaded.memory) == "");
    const testing::PlaceComparison places = compare_by_allocation(folder, loaded);
    CHECK(places.at_offset == places.values);
  }
}

TEST_CASE("the corpus: totals, every allocation, every value") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::size_t programs = 0, values = 0, at_offset = 0;
  for (const testing::CsvRow& row : testing::corpus_rows(*corpus)) {
    const std::string& id = row.at("id");
    CAPTURE(id);
    ++programs;
    const LoadedDump loaded = load_dump(*corpus / id);
    const testing::PlaceComparison places = compare_by_allocation(*corpus / id, loaded);
    values += places.values;
    at_offset += places.at_offset;
    const MemoryTotals totals = sum_totals(loaded.memory);
    const std::pair<Bytes, const char*> columns[] = {{totals.total_device, "ba_total_bytes"},
                                                     {totals.temp, "temp_bytes"},
                                                     {totals.argument, "arg_bytes"},
                                                     {totals.output, "out_bytes"},
                                                     {totals.alias, "alias_bytes"},
                                                     {totals.host_temp, "host_temp_bytes"},
                                                     {totals.host_argument, "host_arg_bytes"},
                                                     {totals.host_output, "host_out_bytes"},
                                                     {totals.host_alias, "host_alias_bytes"}};
    for (const auto& [found, column] : columns) {
      CAPTURE(column);
      if (const std::string& wanted = row.at(column); !wanted.empty())
        CHECK(found == Bytes(std::stoll(wanted)));
    }
  }
  CHECK(programs > 0);
  // Equal buffers may change places: text does not hold all that XLA numbers computations by.
  CHECK(values - at_offset <= values / 10'000);
  MESSAGE(programs << " programs: " << at_offset << " of " << values
                   << " values at XLA's offset, all in the right allocation");
}

}  // namespace
}  // namespace spillway
