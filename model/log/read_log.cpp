#include "model/log/read_log.h"

#include "model/base/read_file.h"

namespace spillway::log {

Result<Log> find_in_log(const std::string& text, std::string path) {
  const std::string_view whole = without_half_number(text);
  const std::vector<Line> lines = split_lines(whole);
  Log log;
  log.path = path;
  log.half_number = whole.size() < text.size();
  log.lines = lines.empty() ? 0 : lines.back().number;
  log.out_of_memory = find_out_of_memory(lines);
  log.cuda_memory = find_cuda_memory(lines);
  log.buffer_stats = find_buffer_stats(lines);
  log.pool_sizes = find_pool_sizes(lines);
  log.failed_requests = find_failed_requests(lines);
  log.pool_dumps = find_pool_dumps(lines);
  log.remat_warnings = find_remat_warnings(lines);
  log.scheduler_memory = find_scheduler_memory(lines);
  log.usage_reports = find_usage_reports(lines);
  log.memory_analyses = find_memory_analyses(lines);
  log.remarks = find_remarks(lines);
  log.settings = find_settings(lines);
  const bool nothing =
      log.out_of_memory.empty() && log.cuda_memory.empty() && log.buffer_stats.empty() &&
      log.pool_sizes.empty() && log.failed_requests.empty() && log.pool_dumps.empty() &&
      log.remat_warnings.empty() && log.scheduler_memory.empty() && log.usage_reports.empty() &&
      log.memory_analyses.empty() && log.remarks.empty();
  if (nothing)
    return Error{ErrorKind::kInput, "holds nothing about memory that is known here",
                 SourceRef{std::move(path), {}, {}}, "",
                 "recognised are out-of-memory errors of XLA with their statistics, lines of the "
                 "BFC allocator, warnings of rematerialisation and of the scheduler, "
                 "-memory-usage-report.txt, and memory_analysis() printed"};
  return log;
}

Result<Log> read_log(const std::string& path) {
  const auto text = read_file(path);
  if (!text.ok()) return text.error();
  return find_in_log(**text, path);
}

}  // namespace spillway::log
