// The block "BufferAssignment stats" that XLA adds to an out-of-memory error, with the largest
// buffers at the program's peak.
#pragma once

#include <string>

#include "model/log/log_text.h"

namespace spillway::log {

/// One of the list "Peak buffers".
struct PeakBuffer {
  LineNumber line = 0;
  LoggedBytes size;
  std::string shape, op_name, label;
  bool parameter = false;
};

/// Sums over all memory spaces: with offload, pinned host memory is in them.
struct BufferStats {
  LineNumber line = 0;
  std::optional<LoggedBytes> parameter, constant, maybe_live_out, temp, temp_fragmentation, total,
      total_fragmentation;
  std::vector<PeakBuffer> peak;
  bool cut = false;  ///< the text ends before the total, or within a peak buffer
};
std::vector<BufferStats> find_buffer_stats(const std::vector<Line>& lines);

}  // namespace spillway::log
