// FLOPs and host bytes of every program of the corpus against what XLA and the corpus say. Runs
// only where the corpus lies beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/cost/program_flops.h"
#include "model/cost/work.h"
#include "model/hlo/read_program.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

struct Family {
  int programs = 0, exact_dots = 0;
  double worst_dot = 0, worst_xla = 0;
};

double off(Flops found, const std::string& expected) {
  const double wanted = std::stod(expected);
  return std::abs(found.value() - wanted) / wanted;
}

/// What a step moves across the host link.
Traffic host_traffic(const Program& program) {
  Traffic sum;
  for (const auto& [id, runs] : executed_computations(program))
    for (const InstructionIndex i : program[id].instructions()) {
      if (program[id][i].opcode == Opcode::kAsyncStart) continue;  // what it wraps is counted
      const Traffic traffic = count_traffic(program, {id, i});
      sum.host_read += traffic.host_read * runs;
      sum.host_written += traffic.host_written * runs;
    }
  return sum;
}

TEST_CASE("FLOPs and host bytes of every program of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  std::map<std::string, Family> families;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    const std::string& id = row.at("id");
    if (row.at("status") != "ok" || !std::filesystem::exists(*corpus / id)) continue;
    CAPTURE(id);
    const Result<Program> program = read_program((*corpus / id).string());
    REQUIRE(program.ok());
    const ProgramFlops flops = count_flops(*program);
    const double dot = off(flops.dot_per_step, row.at("dot_flops_per_step"));
    const double xla = off(flops.xla_cost_analysis, row.at("ca_flops"));
    const Traffic traffic = host_traffic(*program);
    CHECK(std::to_string(traffic.host_read.value()) == row.at("h2d_bytes_per_step"));
    CHECK(std::to_string(traffic.host_written.value()) == row.at("d2h_bytes_per_step"));
    CHECK(dot <= 0.002);
    // XLA sums floats of 24 bits; ours differ from its sums by their rounding alone.
    CHECK(xla <= 0.00001);
    Family& family = families[id.substr(0, id.find('_'))];
    ++family.programs;
    family.exact_dots += dot == 0 ? 1 : 0;
    family.worst_dot = std::max(family.worst_dot, dot);
    family.worst_xla = std::max(family.worst_xla, xla);
  }
  CHECK(families.size() > 0);
  for (const auto& [name, family] : families)
    MESSAGE(name << ": " << family.programs << " programs, dot FLOPs exact in " << family.exact_dots
                 << ", worst " << 100 * family.worst_dot << " %; XLA's analysis worst "
                 << 100 * family.worst_xla << " %");
}

}  // namespace
}  // namespace spillway
