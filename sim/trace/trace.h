// The simulated step as a trace that Perfetto shows (ui.perfetto.dev, trace_processor): the Chrome
// trace event format. What is in it: docs/trace.md.
#pragma once

#include <cstdint>
#include <string>

#include "model/residuals/residuals.h"
#include "sim/simulate.h"

namespace spillway {

struct TraceOptions {
  /// Iterations of loops are written out as long as about so many things happen in all.
  std::size_t most_happenings = 1'000'000;
};

struct Trace {
  std::string json;
  std::int64_t slices = 0;    ///< tasks on streams and engines, waits, iterations
  std::int64_t flows = 0;     ///< offload, reload, reader
  std::int64_t left_out = 0;  ///< iterations of loops
};

/// Runs the step once more and writes down what happens. `result` is what simulating `prepared`
/// gave, whose causes are told at each wait. An error: the step takes far longer than any does.
Result<Trace> make_trace(const Program& program, const MemoryAssignment& memory,
                         const HardwareProfile& profile, const PreparedStep& prepared,
                         const SimResult& result, const ResidualTable& residuals,
                         const TraceOptions& options = {});

}  // namespace spillway
