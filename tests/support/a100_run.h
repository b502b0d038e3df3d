// The measured training step of ../shared/measured/pax_fsdp4_a100: its program, what each of its
// instructions took, and the step as a whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cost/cost_table.h"
#include "model/cost/measured_costs.h"
#include "model/hardware/profile.h"

namespace spillway::testing {

/// One instruction that launched kernels, as in ops.csv.
struct MeasuredOp {
  std::string name;  ///< in the HLO text
  std::string bytes;
  bool collective = false;
  Seconds time{};         ///< median over steady steps and ranks; collectives: of the last rank
  double overlapped = 0;  ///< the share of its time in which a collective ran beside a kernel
};

struct MeasuredStep {
  Seconds module, exposed_collectives, idle;  ///< mean over steady steps and ranks
};

struct A100Run {
  Program program;
  std::vector<MeasuredOp> ops;
  MeasuredStep step;
};

/// Empty, and says so, where the data is not beside the repository.
std::optional<A100Run> read_a100_run();

MeasuredTimes times_of(const A100Run& run);

/// hw_profiles/a100.yaml with the memory of the card that was measured, the one of 40 GB.
HardwareProfile a100_of_40_gb();

/// What an instruction does without its names: shapes, opcodes and attributes, fused computations
/// looked into. Instructions with the same signature become the same kernel.
std::string signature_of(const Program& program, InstructionId id);

/// Instructions that the program runs, by name.
std::map<std::string, InstructionId, std::less<>> executed_by_name(const Program& program);

double median(std::vector<double> values);

}  // namespace spillway::testing
