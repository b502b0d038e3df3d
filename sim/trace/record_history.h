// Runs a prepared step and remembers all that happened in it.
#pragma once

#include "model/base/result.h"
#include "sim/prepared_step.h"
#include "sim/trace/history.h"

namespace spillway {

struct RecordedStep {
  engine::EngineResult run;
  History history;
};

/// Loops are followed until `most_happenings` have been noted. An error: as of run_step.
Result<RecordedStep> record_history(const Program& program, const MemoryAssignment& memory,
                                    const PreparedStep& prepared, std::size_t most_happenings);

/// What a run of an instruction's task moves: over the host link, between GPUs, or in HBM.
Bytes moved_bytes(const Program& program, const CostTable& costs, InstructionId id);

}  // namespace spillway
