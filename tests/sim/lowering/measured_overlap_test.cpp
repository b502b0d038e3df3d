// How much slower kernels of one FSDP step on A100 ran while a collective ran (facts/measured.md
// 4), against what the engine makes of them. Runs only where that folder lies beside the
// repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/cost/cost_table.h"
#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "sim/engine/engine.h"
#include "sim/lowering/machine_tasks.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::CsvRow;

double number(const CsvRow& row, const char* column) {
  return row.at(column).empty() ? 0 : std::stod(row.at(column));
}

bool is_collective(const CsvRow& row) { return row.at("cls").starts_with("coll_"); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

/// All collectives of the step that run beside kernels, as if they were one.
Cost average_collective(const std::vector<CsvRow>& ops) {
  double seconds = 0, bytes = 0;
  for (const CsvRow& row : ops)
    if (is_collective(row) && number(row, "last_rank_us") > 100) {
      seconds += number(row, "last_rank_us") * 1e-6;
      bytes += number(row, "comm_tensor_bytes") * 3 / 4;  // four GPUs
    }
  const auto fabric = static_cast<std::int64_t>(bytes);
  return {.time = Seconds(seconds),
          .bound = Bound::kNetwork,
          .kernel = KernelClass::kCollective,
          .uses_sms = true,
          .hbm_bytes = Bytes(2 * fabric),
          .fabric_bytes = Bytes(fabric)};
}

double predicted_slowdown(const Cost& kernel, const Cost& collective,
                          const HardwareProfile& profile) {
  engine::EngineProgram program;
  MachineTasks machine(program, profile, 1);
  add_start(program, machine.add_device_task(collective), add_stream(program), add_slot(program));
  Cost alone = kernel;
  alone.gap = Seconds(0);
  const engine::StepId run = add_run(program, machine.add_device_task(alone));
  const auto result = engine::run(program);
  REQUIRE(result.ok());
  const engine::StepStats& stats = result->steps[run];
  return ratio(stats.busy, stats.alone);
}

/// Kernels of one shape, alone and beside collectives.
struct Group {
  std::vector<double> alone_us, beside_us;
  std::string operation, kind;  ///< one of them
};

std::map<std::string, Group> groups_of(const std::vector<CsvRow>& ops) {
  std::map<std::string, Group> groups;
  for (const CsvRow& row : ops) {
    if (row.at("program_id") != "40" || is_collective(row)) continue;
    std::string shape;
    for (const char* column : {"cls", "kind", "shape", "flops", "bytes", "transcendentals"})
      shape += row.at(column) + ";";
    Group& group = groups[shape];
    const double overlap = number(row, "overlap_frac");
    if (overlap < 0.02) group.alone_us.push_back(number(row, "med_us"));
    if (overlap <= 0.9) continue;
    group.beside_us.push_back(number(row, "med_us"));
    group.operation = row.at("op");
    group.kind = row.at("cls");
  }
  return groups;
}

InstructionId find_by_name(const Program& program, const std::string& name) {
  for (const InstructionIndex i : program[program.entry].instructions())
    if (program[program.entry][i].name == name) return {program.entry, i};
  FAIL("no instruction " << name);
  return {};
}

TEST_CASE("kernels beside a collective slow down as they did on A100") {
  const auto folder = testing::shared_folder("measured/pax_fsdp4_a100");
  if (!folder) return;
  const Result<Program> program =
      read_program((*folder / "module_0040.step_fn.after_optimizations.hlo.txt.gz").string());
  REQUIRE(program.ok());
  Result<HardwareProfile> profile =
      read_profile(std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles/a100.yaml");
  REQUIRE(profile.ok());
  HardwareProfile a100 = std::move(profile).value();
  a100.device.hbm_bandwidth.value = BytesPerSecond(1555.2e9);  // the 40 GB card
  const CostTable table = costs(*program, a100, make_topology(4, a100));
  const std::vector<CsvRow> ops = testing::read_csv(*folder / "ops.csv");
  const Cost collective = average_collective(ops);

  std::vector<double> products, others, predicted_others;
  for (const auto& [shape, group] : groups_of(ops)) {
    if (group.alone_us.empty() || group.beside_us.empty()) continue;
    const double alone = median(group.alone_us);
    if (alone <= 10) continue;
    const double predicted =
        predicted_slowdown(table.cost(find_by_name(*program, group.operation)), collective, a100);
    const bool product = group.kind.starts_with("gemm");
    for (const double us : group.beside_us) {
      (product ? products : others).push_back(us / alone);
      if (!product) predicted_others.push_back(predicted);
      MESSAGE(group.kind << " " << group.operation << ": alone " << alone << " us, beside "
                         << us / alone << " x, predicted " << predicted << " x");
    }
    CHECK(predicted == doctest::Approx(median(group.beside_us) / alone).epsilon(0.2));
  }
  CHECK(products.size() == 9);
  CHECK(others.size() == 5);
  const double product_factor = a100.kernels.gemm_beside_collective.value.value();
  MESSAGE("products " << median(products) << " x, profile " << product_factor << "; others "
                      << median(others) << " x, predicted " << median(predicted_others) << " x");
  CHECK(product_factor == doctest::Approx(median(products)).epsilon(0.05));
  CHECK(median(predicted_others) == doctest::Approx(median(others)).epsilon(0.1));
}

}  // namespace
}  // namespace spillway
