#include "tests/support/a100_run.h"

#include <algorithm>

#include "model/base/json_value.h"
#include "model/hardware/read_profile.h"
#include "model/hlo/read_program.h"
#include "tests/support/csv_rows.h"

namespace spillway::testing {
namespace {

constexpr const char* kStepProgram = "40";  // the id that the profiler gave the training step

/// The text of the program was made by a newer XLA, which names the four asynchronous
/// reduce-scatters by their starts.
std::string name_in_text(const std::string& name) {
  constexpr std::pair<const char*, const char*> kRenamed[] = {
      {"reduce-scatter.131", "reduce-scatter-start"},
      {"reduce-scatter.132", "reduce-scatter-start.1"},
      {"reduce-scatter.133", "reduce-scatter-start.2"},
      {"reduce-scatter.134", "reduce-scatter-start.3"}};
  for (const auto& [old_name, new_name] : kRenamed)
    if (name == old_name) return new_name;
  return name;
}

Seconds from_us(const std::string& text) { return Seconds(std::stod(text) * 1e-6); }

std::vector<MeasuredOp> read_ops(const std::filesystem::path& path) {
  std::vector<MeasuredOp> ops;
  for (const CsvRow& row : read_csv(path)) {
    if (row.at("program_id") != kStepProgram) continue;
    MeasuredOp op;
    op.name = name_in_text(row.at("op"));
    op.bytes = row.at("bytes");
    op.collective = row.at("cls").starts_with("coll_");
    op.time = from_us(row.at(op.collective ? "last_rank_us" : "med_us"));
    op.overlapped = std::stod(row.at("overlap_frac"));
    ops.push_back(std::move(op));
  }
  return ops;
}

MeasuredStep read_step(const std::filesystem::path& path) {
  MeasuredStep sum;
  double count = 0;
  for (const CsvRow& row : read_csv(path)) {
    const bool warm_up = row.at("exec") == "0" || row.at("exec") == "1";
    if (row.at("program_id") != kStepProgram || warm_up) continue;
    sum.module += from_us(row.at("module_dur_us"));
    sum.exposed_collectives += from_us(row.at("coll_exposed_us"));
    sum.idle += from_us(row.at("idle_us"));
    ++count;
  }
  return {sum.module / count, sum.exposed_collectives / count, sum.idle / count};
}

std::string signature_of(const Program& program, ComputationId id);

void append(const Program& program, const Computation& computation, InstructionIndex i,
            std::string& out) {
  const Instruction& in = computation[i];
  out += to_string(in.shape) + " " + std::string(in.opcode_text) + "(" + std::string(in.literal);
  for (const Operand& operand : computation.operands(i))
    out += to_string(computation.shape_of(operand)) + ",";
  out += ")";
  for (const Attribute& attribute : computation.attributes(i)) {
    if (attribute.name == "metadata" || attribute.name == "calls" || attribute.name == "to_apply")
      continue;
    if (attribute.name == "backend_config")
      out += json_value(attribute.value, "dot_dimension_numbers");
    else
      out += " " + std::string(attribute.name) + "=" + std::string(attribute.value);
  }
  for (const ComputationId called : computation.called(i))
    out += "{" + signature_of(program, called) + "}";
}

std::string signature_of(const Program& program, ComputationId id) {
  std::string out;
  for (const InstructionIndex i : program[id].instructions()) {
    append(program, program[id], i, out);
    for (const Operand& operand : program[id].operands(i))
      out += " " + std::to_string(operand.instruction.index);
    out += ";";
  }
  return out;
}

}  // namespace

std::optional<A100Run> read_a100_run() {
  const auto folder = shared_folder("measured/pax_fsdp4_a100");
  if (!folder) return std::nullopt;
  Result<Program> program =
      read_program((*folder / "module_0040.step_fn.after_optimizations.hlo.txt.gz").string());
  REQUIRE(program.ok());
  return A100Run{std::move(program).value(), read_ops(*folder / "ops.csv"),
                 read_step(*folder / "steps.csv")};
}

MeasuredTimes times_of(const A100Run& run) {
  MeasuredTimes times;
  for (const MeasuredOp& op : run.ops) times.emplace(op.name, op.time);
  return times;
}

HardwareProfile a100_of_40_gb() {
  Result<HardwareProfile> profile =
      read_profile(std::string(SPILLWAY_SOURCE_DIR) + "/hw_profiles/a100.yaml");
  REQUIRE(profile.ok());
  HardwareProfile machine = std::move(profile).value();
  machine.device.hbm_bandwidth.value = BytesPerSecond(1555.2e9);
  machine.device.hbm_capacity.value = Bytes(42'298'834'944);
  // The power that a run of nothing but products meets its limit with. Here they take a quarter of
  // the time, and the largest reach 287 TFLOP/s, which that limit would not have let them.
  machine.kernels.gemm_power.clear();
  return machine;
}

std::string signature_of(const Program& program, InstructionId id) {
  std::string out;
  append(program, program[id.computation], id.instruction, out);
  return out;
}

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

}  // namespace spillway::testing
