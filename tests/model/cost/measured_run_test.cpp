// Bytes and times of one training step against what it took on A100: ops.csv of
// measured/pax_fsdp4_a100. Runs only where that folder lies beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/cost/cost_table.h"
#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "tests/model/cost/toy_machine.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

using testing::CsvRow;

/// Peaks of an A100-SXM4-40GB by its data sheet.
void set_peaks(HardwareProfile& machine) {
  for (auto& [type, peak] : machine.device.matrix_peak) peak.value = FlopsPerSecond(312e12);
  machine.device.vector_peak["f32"].value = FlopsPerSecond(19.5e12);
  machine.device.hbm_bandwidth.value = BytesPerSecond(1555.2e9);
}

/// Instructions that the program runs, by name.
std::map<std::string, InstructionId, std::less<>> executed_by_name(const Program& program) {
  std::map<std::string, InstructionId, std::less<>> found;
  for (const Executed& executed : executed_computations(program))
    for (const InstructionIndex i : program[executed.id].instructions())
      found.emplace(program[executed.id][i].name, InstructionId{executed.id, i});
  return found;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Score {
  std::vector<double> errors, ratios;
  double measured = 0, predicted = 0;

  void add(double us, double predicted_us) {
    errors.push_back(std::abs(predicted_us - us) / us);
    ratios.push_back(us / predicted_us);
    measured += us;
    predicted += predicted_us;
  }
  double bias() const { return predicted / measured - 1; }
};

struct Comparison {
  int operations = 0, equal_bytes = 0;
  Score all;
  std::map<std::string, Score> classes;
};

/// Operations above 10 us that overlap no collective; `extra_us` is added to each prediction.
Comparison compare(const Program& program, const std::vector<CsvRow>& measured,
                   const HardwareProfile& machine, double extra_us) {
  const CostTable table = costs(program, machine, make_topology(4, machine));
  const auto by_name = executed_by_name(program);
  Comparison result;
  for (const CsvRow& row : measured) {
    const auto found = by_name.find(row.at("op"));
    const bool is_collective = row.at("cls").starts_with("coll_");
    if (row.at("program_id") != "40" || found == by_name.end() || is_collective) continue;
    const Work& work = table.work(found->second);
    if (work.kernel == KernelClass::kFree) continue;
    ++result.operations;
    const Bytes bytes = work.traffic.hbm_read + work.traffic.hbm_written;
    result.equal_bytes += std::to_string(bytes.value()) == row.at("bytes") ? 1 : 0;
    const double us = std::stod(row.at("med_us"));
    if (us <= 10 || std::stod(row.at("overlap_frac")) >= 0.05) continue;
    const double predicted = table.cost(found->second).time.value() * 1e6 + extra_us;
    result.all.add(us, predicted);
    result.classes[std::string(name_of(work.kernel))].add(us, predicted);
  }
  return result;
}

void print(const std::string& name, const Comparison& result) {
  MESSAGE(name << ": bytes equal in " << result.equal_bytes << " of " << result.operations << "; "
               << result.all.errors.size() << " above 10 us: bias " << 100 * result.all.bias()
               << " %, median error " << 100 * median(result.all.errors) << " %");
  for (const auto& [kernel, score] : result.classes)
    MESSAGE("  " << kernel << ": " << score.errors.size() << ", measured / predicted median "
                 << median(score.ratios) << ", median error " << 100 * median(score.errors)
                 << " %, bias " << 100 * score.bias() << " %");
}

TEST_CASE("bytes and times of a measured step") {
  const auto folder = testing::shared_folder("measured/pax_fsdp4_a100");
  if (!folder) return;
  const Result<Program> program =
      read_program((*folder / "module_0040.step_fn.after_optimizations.hlo.txt.gz").string());
  REQUIRE(program.ok());
  const std::vector<CsvRow> measured = testing::read_csv(*folder / "ops.csv");

  HardwareProfile specification = testing::toy_machine();
  set_peaks(specification);
  constexpr double kFloorUs = 1.9;  // what the reference adds to every kernel
  const Comparison bare = compare(*program, measured, specification, kFloorUs);
  print("data sheet", bare);
  CHECK(bare.operations == 2490);
  CHECK(bare.equal_bytes == bare.operations);
  // facts/measured.md section 3: bias -24.2 %, median 24.0 % for the same roofline
  CHECK(bare.all.bias() == doctest::Approx(-0.24).epsilon(0.05));
  CHECK(median(bare.all.errors) == doctest::Approx(0.24).epsilon(0.05));

  Result<HardwareProfile> h100 =
      read_profile(std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles/h100.yaml");
  REQUIRE(h100.ok());
  HardwareProfile factors = std::move(h100).value();
  set_peaks(factors);
  const Comparison corrected = compare(*program, measured, factors, 0);
  print("factors of h100.yaml", corrected);
  CHECK(std::abs(corrected.all.bias()) < 0.08);
  CHECK(median(corrected.all.errors) < 0.15);
}

}  // namespace
}  // namespace spillway
