// What XLA's latency-hiding scheduler was given, believed and chose, as
// --xla_dump_latency_hiding_schedule writes it.
#pragma once

#include <filesystem>
#include <vector>

#include "model/program/program.h"

namespace spillway::testing {

struct ScheduleDump {
  /// The module as the scheduler saw it; the order of its text is the one that it was given.
  Program program;
  /// The order that it was given, by computation, get-tuple-elements included: those are elements
  /// of what makes the tuple, {x, node}.
  IdVector<ComputationId, std::vector<Operand>> given;

  /// An instruction where the scheduler put it. get-tuple-elements are left out.
  struct Row {
    InstructionIndex instruction;
    double start = 0, end = 0;  ///< cycles; the difference is the cost it believed
    std::int64_t memory_after = 0, peak_after = 0;  ///< bytes, as it counted
  };
  struct Chosen {
    ComputationId computation;
    std::vector<Row> rows;  ///< in the order chosen
  };
  std::vector<Chosen> chosen;  ///< of each computation that it ordered anew, callees first
};

/// Reads a *.schedule.txt, packed or not; the running test fails when it cannot be read.
ScheduleDump read_schedule_dump(const std::filesystem::path& path);

/// Programs of the corpus that have such a dump, by name: those that LHS ordered.
std::vector<std::filesystem::path> find_schedule_dumps(const std::filesystem::path& corpus);

}  // namespace spillway::testing
