// Who gets how much when running tasks ask for more than there is: weighted max-min fairness on
// the speeds of the tasks. The rule with an example: docs/engine.md#sharing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/engine/fixed_point.h"
#include "sim/engine/program.h"
#include "sim/engine/task_table.h"

namespace spillway::engine {

/// A running task, as sharing sees it.
struct Contender {
  std::span<const Load> loads;
  std::int32_t weight = 1;
  Fraction speed{};                   ///< result: 0 < speed <= kWhole
  std::optional<ResourceId> limit{};  ///< result: what holds it below kWhole
};

/// Keeps what the running tasks ask for, and divides it. Holds no allocation of its own after the
/// first calls. With speeds s, weights w and uses u (of a resource, at full speed), `divide` finds
/// the only s with
///
///    s_i <= 1    sum_i u_ir s_i <= 1 for each resource r that holds (both sides of it, if it has
///                                    two, are in use)
///    no s_i can grow unless an s_j with s_j / w_j <= s_i / w_i shrinks
///
/// by raising one level for all, s_i = w_i × level, and fixing the tasks of each resource that runs
/// out: at most one round a resource. Levels and speeds are rounded down, once.
class Sharing {
 public:
  explicit Sharing(const IdVector<ResourceId, Resource>& resources);

  void add(std::span<const Load> loads);
  void remove(std::span<const Load> loads);
  /// Whether some resource is asked for more than it has; if not, everyone runs at full speed.
  bool contended() const { return overloaded_ > 0; }

  /// Sets speed and limit of everyone that runs; `running` must be what was added and not removed.
  void divide(std::span<Contender> running);

 private:
  struct Meter {
    Wide asked = 0;  // sum of uses of all that run, in 2^-48; beyond the whole: overloaded
    bool two_sided = false;
    int users[3] = {};  // of a two-sided resource, by Side
    Wide room = 0;      // what is left of it, in 2^-96
    Wide open = 0;      // sum of use × weight of those not fixed yet, in 2^-48
    Wide level = 0;     // where it runs out, in 2^-64 of full speed per unit of weight
  };

  static bool holds(const Meter& meter) {
    return !meter.two_sided || meter.users[2] > 0 || (meter.users[0] > 0 && meter.users[1] > 0);
  }
  static bool overloaded(const Meter& meter) {
    return meter.asked > wide(kWhole.value()) && holds(meter);
  }
  void open_contenders(std::span<Contender> running);
  Wide next_level();
  bool fix(Contender& contender, Wide level);
  void close(const Contender& contender);

  IdVector<ResourceId, Meter> meters_;
  std::vector<ResourceId> scarce_;  // the overloaded ones, while dividing
  std::vector<Contender*> open_;    // those not fixed yet
  int overloaded_ = 0;
};

}  // namespace spillway::engine
