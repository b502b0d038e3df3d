// Rewritten programs against those that XLA really compiled for the other policy. Runs only where
// the corpus lies beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "model/hlo/read_program.h"
#include "model/memory/memory_report.h"
#include "sim/rewrite/place_residuals.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

/// Name → where XLA was told to put it; names that are not there are recomputed.
using Placements = std::map<std::string, Placement>;

struct Compiled {
  std::string id;
  Placements placements;
  Bytes device, host, device_to_host, host_to_device;  ///< XLA's
};

Placements read_placements(const std::string& policy) {
  Placements placements;
  const auto choices = nlohmann::json::parse(policy);
  for (const auto& [name, choice] : choices.items())
    placements[name] = choice == "offload" ? Placement::kPinnedHost : Placement::kDevice;
  return placements;
}

/// Llama 3.1 8B at batch 2, one program a policy.
std::vector<Compiled> compiled_programs(const fs::path& corpus) {
  std::vector<Compiled> programs;
  for (const testing::CsvRow& row : testing::read_csv(corpus / "corpus.csv")) {
    const std::string& id = row.at("id");
    if (!id.starts_with("l8b_b2_") || row.at("status") != "ok" || !fs::exists(corpus / id))
      continue;
    const auto bytes = [&row](const char* column) { return Bytes(std::stoll(row.at(column))); };
    programs.push_back({id, read_placements(row.at("policy_json")), bytes("ba_total_bytes"),
                        bytes("host_temp_bytes"), bytes("d2h_bytes_per_step"),
                        bytes("h2d_bytes_per_step")});
  }
  return programs;
}

/// Whether two policies save the same names, wherever.
bool save_the_same(const Placements& a, const Placements& b) {
  return std::ranges::equal(a, b, {}, &Placements::value_type::first,
                            &Placements::value_type::first);
}

TEST_CASE("a rewritten program needs what the one needs that XLA compiled for the other policy") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const Result<NameList> names = read_names((*corpus / "l8b_b2_allsaved/names.json").string());
  REQUIRE(names.ok());
  // What differs comes in steps of 8 and 256 bytes: a few tables of pointers and constants more or
  // less, which the heap rounds up.
  constexpr Bytes kNear(2000);
  const std::vector<Compiled> programs = compiled_programs(*corpus);
  int pairs = 0, moved = 0;
  Bytes worst;
  for (const Compiled& from : programs) {
    const Result<Program> program = read_program((*corpus / from.id).string());
    REQUIRE(program.ok());
    const MemoryAssignment memory = assign_memory(*program, text_schedule(*program).value());
    const ResidualTable table = find_residuals(*program, memory, *names);
    for (const Compiled& to : programs) {
      if (to.id == from.id || !save_the_same(from.placements, to.placements)) continue;
      CAPTURE(from.id);
      CAPTURE(to.id);
      std::vector<PlacementChange> changes;
      for (const ResidualId id : ids(table.residuals))
        if (const auto& known = table.residuals[id].names; !known.empty()) {
          changes.push_back({id, to.placements.at(known.front())});
          moved += table.residuals[id].placement != changes.back().placement;
        }
      const Program rewritten = place_residuals(*program, memory, table, changes);
      const MemoryTotals totals =
          sum_totals(assign_memory(rewritten, text_schedule(rewritten).value()));
      const HostTraffic traffic = sum_traffic(rewritten);
      const Bytes off =
          std::max(totals.total_device, to.device) - std::min(totals.total_device, to.device);
      CHECK(off <= kNear);
      CHECK(totals.host_temp == to.host);
      CHECK(traffic.device_to_host == to.device_to_host);
      CHECK(traffic.host_to_device == to.host_to_device);
      worst = std::max(worst, off);
      ++pairs;
    }
  }
  CHECK(pairs > 0);
  CHECK(moved > pairs);
  MESSAGE(pairs << " pairs, " << moved << " stacks moved: at most " << worst.value()
                << " bytes of HBM off, host memory and bytes moved exact");
}

}  // namespace
}  // namespace spillway
