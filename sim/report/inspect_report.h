// What `inspect` answers, computed once and written down as text or JSON.
#pragma once

#include <optional>
#include <string>

#include "model/cost/program_flops.h"
#include "model/diagnostics/diagnostics.h"
#include "model/memory/memory_report.h"
#include "model/program/program.h"
#include "model/residuals/residuals.h"
#include "model/residuals/unrolled.h"
#include "sim/schedule/memory_scheduler.h"

namespace spillway {

struct InspectReport {
  std::string program_name, path;
  std::size_t modules_in_folder = 1;  ///< of which this one was picked
  std::size_t instructions = 0, computations = 0;
  std::int64_t devices = 1;
  bool scheduled = false;
  /// Absent for a module without a schedule: memory hangs on the order.
  std::optional<MemoryReport> memory;
  /// What the program would need in an order made for memory; absent where nobody asked.
  std::optional<MinimalOrder> minimal_order;
  ResidualTable residuals;
  UnrolledTable unrolled;  ///< instead of these, where layers are not scanned
  ProgramFlops flops;
  std::vector<Diagnostic> diagnostics;
};

/// What is known beside the program, for its diagnostics; all of it may be missing.
struct InspectContext {
  DumpFacts dump = {};
  const HardwareProfile* hardware = nullptr;
  const Budget* budget = nullptr;
  std::optional<JaxlibVersion> jaxlib = {};
};

/// Reads what a program holds, and refers to it. `names` may be empty.
InspectReport make_inspect_report(const Program& program, const NameList& names,
                                  const InspectContext& context = {});
/// The same of a scheduled program whose memory is assigned already, without a minimal order.
InspectReport make_inspect_report(const Program& program, const NameList& names,
                                  const MemoryAssignment& assignment,
                                  const InspectContext& context = {});

/// For a person at a terminal.
std::string render_text(const InspectReport& report);
/// Schema spillway.inspect/1.
std::string render_json(const InspectReport& report);

}  // namespace spillway
