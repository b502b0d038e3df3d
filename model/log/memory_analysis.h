// `compiled.memory_analysis()` printed as text: CompiledMemoryStats(…), or its fields one a line,
// as Python or JSON write them.
#pragma once

#include "model/log/log_text.h"

namespace spillway::log {

struct MemoryAnalysis {
  LineNumber line = 0;
  std::optional<std::int64_t> generated_code, argument, output, alias, temp, host_generated_code,
      host_argument, host_output, host_alias, host_temp, peak;
  bool cut = false;  ///< "CompiledMemoryStats(" without its end

  /// False where all fields are 0 or -1: versions and backends that do not know print that.
  bool available() const;
  /// argument + output + temp - alias; absent when a field is, or the sum is no size.
  std::optional<Bytes> device_total() const;
  /// The same of the pinned host memory; fields that older versions lack count as 0.
  std::optional<Bytes> host_total() const;
};
std::vector<MemoryAnalysis> find_memory_analyses(const std::vector<Line>& lines);

}  // namespace spillway::log
