// What XLA's compiler says about memory while it compiles: rematerialisation, the scheduler, and a
// few sentences that explain a number elsewhere.
#pragma once

#include <string>

#include "model/log/log_text.h"

namespace spillway::log {

/// "Can't reduce memory use below LIMIT by rematerialization; only reduced to REACHED, down from
/// ORIGINAL originally"
struct RematWarning {
  LineNumber line = 0;
  LoggedBytes limit, reached;
  std::optional<LoggedBytes> original;
  std::size_t times = 1;
};
std::vector<RematWarning> find_remat_warnings(const std::vector<Line>& lines);

enum class SchedulerMessage {
  kUsage,     ///< its estimate of the peak, and its limit
  kArguments  ///< arguments and results alone exceed the base of the limit
};
struct SchedulerMemory {
  LineNumber line = 0;
  SchedulerMessage message = SchedulerMessage::kUsage;
  Bytes bytes, limit;
};
std::vector<SchedulerMemory> find_scheduler_memory(const std::vector<Line>& lines);

enum class Remark {
  kHostCompute,     ///< something computes on an array in host memory
  kDonationUnused,  ///< donated buffers could not be reused
  kNoProto,         ///< a dump too large to serialise
  kCommandBuffer,   ///< no memory beside the pool for a graph of kernels
  kNoLiveRange,     ///< a dump without live ranges
  kHostResult,      ///< error E1200: a result on the host that the entry's layout does not expect
};
struct CompilerRemark {
  LineNumber line = 0;
  Remark remark = Remark::kHostCompute;
  std::size_t times = 1;
};
std::vector<CompilerRemark> find_remarks(const std::vector<Line>& lines);

/// An environment variable with a number: XLA_PYTHON_CLIENT_MEM_FRACTION=0.9
struct Setting {
  LineNumber line = 0;
  std::string name;
  double value = 0;
};
std::vector<Setting> find_settings(const std::vector<Line>& lines);

}  // namespace spillway::log
