// What the rules about a log look at: the first complete thing of each kind, since later failures
// mostly follow from the first.
#pragma once

#include "sim/report/log_report.h"

namespace spillway {

/// A size with the place and the words it has in the log.
struct Evidence {
  log::LineNumber line = 0;  ///< 0: from the command line
  log::LoggedBytes bytes;
  std::string origin;
};

struct LogEvidence {
  /// A request to the HBM pool that failed; exact where any line gives it so.
  std::optional<Evidence> request;
  /// The same for the pool of pinned host memory.
  std::optional<Evidence> host_request;
  const log::PoolDump* dump = nullptr;       ///< of the HBM pool, complete
  const log::PoolDump* host_dump = nullptr;  ///< of the host pool, complete
  const log::BufferStats* stats = nullptr;
  std::optional<Evidence> pool;  ///< the limit of the HBM pool
  std::optional<Evidence> card;
  std::optional<Evidence> program;  ///< what the program allocates in HBM, all together
  std::optional<Evidence> host_program;
};

LogEvidence gather_evidence(const log::Log& log, const LogWishes& wishes);

}  // namespace spillway
