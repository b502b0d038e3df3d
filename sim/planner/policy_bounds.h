// What every completion of a half-decided policy needs at least, without rewriting or simulating
// it: what the search may leave out.
//
//   HBM, host   what is live between the last forward and the first backward loop: the stacks of
//               decided names on the side where they are, beside the step's own arguments
//   step        the kernels that every completion runs on the main stream, what is computed again
//               for decided names among them; in the loops no less than their copies take
//
// A step counts only products and attention whose time the arithmetic decides inside the loops,
// since XLA fuses everything else differently from policy to policy.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/planner/baselines.h"
#include "sim/planner/evaluate.h"

namespace spillway {

/// A policy some of whose handles are still open.
using PartialPolicy = std::vector<std::optional<Choice>>;

struct PolicyBound {
  Bytes device;  ///< what the allocator must provide
  Bytes host;
  Seconds step;
};

class PolicyBounds {
 public:
  /// Rewrites the program once for each handle that can be recomputed. The evaluator must outlive
  /// it.
  explicit PolicyBounds(const Evaluator& evaluator);

  /// The same figures for rules of thumb.
  BaselineFacts facts() const;

  /// Of a policy as planned: its copies do not go on beyond the loop that makes or reads them.
  PolicyBound of(const PartialPolicy& policy) const;

 private:
  /// Kernels that run again where a handle is recomputed, whatever becomes of the others: by the
  /// name of what they repeat, seconds of a step.
  using Repeated = std::map<std::string, Seconds, std::less<>>;

  /// What one handle holds and moves, and what it takes to have it recomputed.
  struct Share {
    Bytes on_device, on_host;  ///< between the loops, where it is kept or offloaded
    Seconds out, in;           ///< its copies to the host and back, alone on the link
    Repeated repeated;
  };

  void find_shares();
  void add_stacks(std::size_t handle, std::set<BufferId>& counted);
  void add_unrolled(std::size_t handle, std::set<BufferId>& counted);
  void find_kernels();
  Repeated find_repeated(std::size_t handle) const;

  const Evaluator& evaluator_;
  Bytes always_;  ///< on the device in every policy: arguments, and stacks that no handle moves
  std::vector<Share> shares_;   ///< of each handle
  Seconds outside_;             ///< kernels outside of the loops over layers
  Seconds forward_, backward_;  ///< kernels of those loops
};

}  // namespace spillway
