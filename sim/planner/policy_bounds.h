// What every completion of a half-decided policy needs at least, without ordering or simulating it:
// what the search may leave out.
//
//   HBM, host   what is live between the last forward and the first backward loop: the stacks of
//               decided names on the side where they are, beside the step's own arguments
//   step        the kernels that every completion runs on the main stream, and collectives where
//               they hang on each other and on kernels (least_time.h); in the loops no less than
//               the decided copies take
//
// While it is open what is recomputed, of the kernels inside the loops only products and attention
// count whose arithmetic decides their time, since XLA fuses everything else differently. Once that
// is decided, all kernels of the program with just that recomputed count, but for those that touch
// a stack and are no such products: they are all that keeping or offloading the others changes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/program/call_graph.h"
#include "sim/planner/baselines.h"
#include "sim/planner/evaluate.h"

namespace spillway {

/// The choices of a handle that are still open.
class OpenChoices {
 public:
  OpenChoices() = default;
  explicit OpenChoices(const std::vector<Choice>& choices) {
    for (const Choice choice : choices) bits_ = static_cast<std::uint8_t>(bits_ | bit(choice));
  }
  bool has(Choice choice) const { return (bits_ & bit(choice)) != 0; }
  bool is_only(Choice choice) const { return bits_ == bit(choice); }
  bool is_decided() const { return (bits_ & (bits_ - 1)) == 0; }
  OpenChoices without(Choice choice) const {
    OpenChoices left;
    left.bits_ = static_cast<std::uint8_t>(bits_ & ~bit(choice));
    return left;
  }

 private:
  static std::uint8_t bit(Choice choice) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(choice));
  }
  std::uint8_t bits_ = 0;
};

/// Of each handle.
using OpenPolicy = std::vector<OpenChoices>;

struct PolicyBound {
  Bytes device;  ///< what the allocator must provide
  Bytes host;
  Bytes either;  ///< on top of both, in one of the two
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
  /// Rewrites the program once for each of many sets of recomputed handles, if it is decided. Not
  /// thread-safe.
  PolicyBound of(const OpenPolicy& policy);

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

  /// Of a step, on the main stream.
  struct Kernels {
    Seconds outside;            ///< of the loops over layers
    Seconds forward, backward;  ///< inside
  };

  void find_shares();
  void add_stacks(std::size_t handle, const Multiplicity& multiplicity,
                  std::set<BufferId>& counted);
  void add_unrolled(std::size_t handle, std::set<BufferId>& counted);
  Repeated find_repeated(std::size_t handle) const;
  template <typename KernelTime, typename CollectiveTime>
  Kernels add_up(const Program& program, const CostTable& table, const KernelTime& kernel,
                 const CollectiveTime& collective) const;
  Kernels kernels_whatever_is_recomputed() const;
  const Kernels& kernels_with(const std::vector<std::size_t>& recomputed, bool moves_state);
  Seconds repeated(const OpenPolicy& policy) const;

  const Evaluator& evaluator_;
  Bytes always_;  ///< on the device in every policy: arguments, and stacks that no handle moves
  std::vector<Share> shares_;  ///< of each handle
  Kernels kernels_;            ///< whatever is recomputed, without what is computed again
  std::set<std::size_t> recomputable_;
  /// By the handles that are recomputed, and whether state may be moved.
  std::map<std::pair<std::vector<std::size_t>, bool>, Kernels> kernels_with_;
};

}  // namespace spillway
