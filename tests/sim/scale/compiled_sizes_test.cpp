// Resized programs against those that XLA really compiled at that size.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "model/cost/topology.h"
#include "model/hardware/find_profile.h"
#include "model/hlo/read_program.h"
#include "model/memory/memory_report.h"
#include "sim/scale/accumulation.h"
#include "sim/scale/resize_program.h"
#include "sim/scale/scale_program.h"
#include "sim/simulate.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

Bytes device_bytes(const Program& program) {
  return sum_totals(assign_memory(program, text_schedule(program).value())).total_device;
}

Seconds step_of(const Program& program) {
  const auto profile =
      find_profile("gb200", {{std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles"}}).value();
  const Schedule schedule = text_schedule(program).value();
  return simulate(program, schedule, assign_memory(program, schedule), profile,
                  make_topology(program.device_count(), profile))
      .value()
      .step;
}

double off(double got, double wanted) { return std::abs(got / wanted - 1); }

TEST_CASE("the example step at batches that XLA compiled too") {
  const std::string dumps = std::string(SPILLWAY_SOURCE_DIR) + "/examples/jax/dumps/";
  const Result<Program> at_64 = read_program(dumps + "keep");
  const Result<Program> at_32 = read_program(dumps + "keep_batch_32");
  REQUIRE(at_64.ok());
  REQUIRE(at_32.ok());
  const auto scaler = ProgramScaler::make(*at_64, *at_32, {"batch", 64, 32});
  REQUIRE(scaler.ok());
  // XLA's own totals: compile_step.py --batch 16 and 128, all names kept, in truth.json.
  struct Row {
    double batch;
    double device_bytes;
  };
  for (const Row& row : {Row{16, 60700707242}, Row{128, 364119138792}}) {
    CAPTURE(row.batch);
    const Result<ScaledProgram> scaled = scaler->at(row.batch);
    REQUIRE(scaled.ok());
    CHECK(off(static_cast<double>(device_bytes(scaled->program).value()), row.device_bytes) < 5e-5);
    CHECK(scaled->broken_rules == 0);
    CHECK(scaled->alone.empty());
  }
}

TEST_CASE("Llama 3.1 8B at a third batch and sequence: memory and step of the compiled program") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* first;
    const char* second;
    SizeOfDumps sizes;
    double size;
    const char* compiled;
  };
  const Row rows[] = {
      {"l8b_b1_full", "l8b_b2_full", {"batch", 1, 2}, 4, "l8b_b4_full"},
      {"l8b_b1_minimal", "l8b_b2_minimal", {"batch", 1, 2}, 4, "l8b_b4_minimal"},
      {"l8b_b1_qkv_proj_offloaded",
       "l8b_b2_qkv_proj_offloaded",
       {"batch", 1, 2},
       4,
       "l8b_b4_qkv_proj_offloaded"},
      {"l8b_s2048_full", "l8b_b2_full", {"sequence", 2048, 8192}, 4096, "l8b_s4096_full"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.compiled);
    const auto read = [&](const char* id) { return read_program((*corpus / id).string()); };
    const Result<Program> first = read(row.first), second = read(row.second),
                          compiled = read(row.compiled);
    REQUIRE((first.ok() && second.ok() && compiled.ok()));
    const auto scaler = ProgramScaler::make(*first, *second, row.sizes);
    REQUIRE(scaler.ok());
    const Result<ScaledProgram> scaled = scaler->at(row.size);
    REQUIRE(scaled.ok());
    const double memory = off(static_cast<double>(device_bytes(scaled->program).value()),
                              static_cast<double>(device_bytes(*compiled).value()));
    const double step = off(step_of(scaled->program).value(), step_of(*compiled).value());
    CHECK(memory < 1e-5);
    CHECK(step < 0.01);
    CHECK(scaled->broken_rules == 0);
    CHECK(scaled->alone.empty());
    MESSAGE(std::string(row.compiled)
            << ": HBM " << 100 * memory << " % off, step " << 100 * step << " %");
  }
}

TEST_CASE("the rules alone double the batch of every kind of program, without a contradiction") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  for (const char* id : {"l405bc_qkvoff", "ds671_full", "ds671c_full", "mx7_full", "l8b_fp8_full",
                         "l8b_tp2_full", "l8b4_unr_full", "host_d_both_act", "v0_8_3_scan_save"}) {
    CAPTURE(std::string(id));
    const Result<Program> program = read_program((*corpus / id).string());
    REQUIRE(program.ok());
    const DimensionRules rules = find_dimension_rules(*program);
    const Computation& entry = program->entry_computation();
    std::vector<WantedSize> wanted;
    for (const InstructionIndex i : entry.parameters()) {
      // Tokens, their positions and segments: [batch, sequence].
      const Shape shape = entry[i].shape;
      const bool is_data = shape.type() == ElementType::kS32 && shape.dims().size() == 2;
      for (std::size_t k = 0; k < shape.dims().size(); ++k)
        wanted.push_back({rules.dimensions.at({program->entry, i}, 0, k),
                          shape.dims()[k] * (is_data && k == 0 ? 2 : 1)});
    }
    const SolvedDimensions solved = solve_dimensions(*program, rules, wanted, {});
    CHECK(solved.broken.empty());
    const Result<Program> doubled = resize_program(*program, rules, solved);
    REQUIRE_MESSAGE(doubled.ok(), (doubled.ok() ? "" : to_text(doubled.error())));
    const double grown = ratio(device_bytes(*doubled), device_bytes(*program));
    CHECK(grown > 1.01);
    CHECK(grown < 2);
  }
}

TEST_CASE("more micro batches change the step's length, and of its memory only the arguments") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  const Result<Program> program = read_program((*corpus / "l8b_ga4_full").string());
  REQUIRE(program.ok());
  CHECK(find_accumulation_loop(*program)->steps == 4);
  const Result<Program> twice = with_accumulation(*program, 8);
  REQUIRE(twice.ok());
  // Four arguments of s32[4,4096], now [8,4096], and four stacks of one number a micro batch.
  const Bytes more = device_bytes(*twice) - device_bytes(*program);
  CHECK(more >= Bytes(4 * 4 * 4096 * 4));
  CHECK(more < Bytes(4 * 4 * 4096 * 4 + 4096));
  // All but the optimizer runs twice as often.
  const double longer = ratio(step_of(*twice), step_of(*program));
  CHECK(longer > 1.9);
  CHECK(longer < 2.0);
  CHECK(!find_accumulation_loop(*read_program((*corpus / "l8b_b2_full").string())).has_value());
}

}  // namespace
}  // namespace spillway
