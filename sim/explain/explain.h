// Why a copy or a collective is exposed, who waits for it and what would hide it; or, where it is
// hidden, by how much.
#pragma once

#include <string>
#include <vector>

#include "model/residuals/residuals.h"
#include "sim/explain/remedies.h"
#include "sim/simulate.h"

namespace spillway {

/// What the awaited operation was doing while the main stream was blocked.
struct StallPart {
  engine::StallCause cause = engine::StallCause::kFullSpeed;
  std::string culprit;  ///< kQueued: the operation in front; kContended: the resource
  std::string beside;   ///< kContended: who else used the resource, longest first; may be empty
  Seconds time;         ///< of one step
};

/// One operation (target.h): times, runs and waits are those of all its starts together.
struct CopyExplanation {
  std::string instruction;          ///< of `starts` the one that runs most often
  std::vector<std::string> starts;  ///< more than one where a loop's copies are pipelined
  std::string residual;             ///< empty where it belongs to none
  std::optional<TransferDirection> direction;
  bool collective = false;
  std::string stream;
  Bytes bytes;                   ///< each time
  std::int64_t runs = 0;         ///< in a step
  Seconds alone;                 ///< each time, with the machine to itself
  Seconds busy;                  ///< each time, on average
  bool grows_with_batch = true;  ///< not: parameters and optimizer state

  /// Where the main stream waits for it; none for what runs on the main stream itself.
  struct Wait {
    std::string done;
    std::string next;          ///< what runs behind the wait; empty at the end of the step
    std::string first_reader;  ///< empty where it cannot be told
    std::int64_t times = 0, blocked = 0;  ///< passed, and of these blocked
    Seconds exposed;                      ///< of one step
    Seconds longest;                      ///< of one time
    std::string cause, explanation;
  };
  std::vector<Wait> waits;
  Seconds exposed;  ///< of one step
  Seconds step;
  std::vector<StallPart> while_waiting;  ///< longest first
  std::vector<Remedy> remedies;          ///< of what is exposed

  /// Of what is hidden: the least time between its end and the wait, and how far its own rate may
  /// fall, as a factor of today's, until it is exposed or others wait longer. Empty where nothing
  /// waits.
  std::optional<Seconds> slack;
  std::optional<double> slowest_rate;

  /// Waits for others that stand behind it.
  struct Delayed {
    std::string instruction;
    Seconds time;
  };
  std::vector<Delayed> delays;
};

/// Explains what `name` means (find_copy.h), each operation of it by itself. `result` is what
/// simulating `prepared` gave. An error: the name is unknown, means several, or is that of
/// a residual that stays in HBM.
Result<std::vector<CopyExplanation>> explain_copies(
    const Program& program, const MemoryAssignment& memory, const PreparedStep& prepared,
    const SimResult& result, const ResidualTable& residuals, const std::string& name);

}  // namespace spillway
