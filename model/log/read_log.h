// Everything that is known how to read in a log, an error message or a report that a user hands
// over, in any mixture. What is not recognised is skipped.
#pragma once

#include "model/base/result.h"
#include "model/log/allocator_log.h"
#include "model/log/buffer_stats.h"
#include "model/log/compiler_messages.h"
#include "model/log/memory_analysis.h"
#include "model/log/memory_usage_report.h"
#include "model/log/out_of_memory.h"

namespace spillway::log {

struct Log {
  std::string path;
  LineNumber lines = 0;
  std::vector<OutOfMemory> out_of_memory;
  std::vector<CudaMemory> cuda_memory;
  std::vector<BufferStats> buffer_stats;
  std::vector<PoolSize> pool_sizes;
  std::vector<FailedRequest> failed_requests;
  std::vector<PoolDump> pool_dumps;
  std::vector<RematWarning> remat_warnings;
  std::vector<SchedulerMemory> scheduler_memory;
  std::vector<UsageReport> usage_reports;
  std::vector<MemoryAnalysis> memory_analyses;
  std::vector<CompilerRemark> remarks;
  std::vector<Setting> settings;  ///< alone they are no reason to read a text as a log
  bool half_number = false;       ///< the text ends within a number, which was left out
};

/// Finds what `text` holds. An error where that is nothing.
Result<Log> find_in_log(const std::string& text, std::string path);
/// The same of a file, packed or not.
Result<Log> read_log(const std::string& path);

}  // namespace spillway::log
