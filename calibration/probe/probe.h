// Runs a plan: points in random order, a few samples of each a round, until each is stable or time
// is up. A load is repeated often enough to be timed, what runs beside it lasts longer than it, and
// samples taken while the device was throttled are taken again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibration/probe/plan.h"

namespace spillway::probe {

struct ProbeOptions {
  double seconds = 240;  ///< for the whole run; what is not stable by then is marked
  int samples_a_round = 4;
  int least_samples = 12;
  int most_samples = 60;
  double stable = 0.005;        ///< relative standard error of the median
  double slowest_clock = 0.75;  ///< of the most the device may reach; slower samples do not count
  std::uint64_t seed = 1;
};

/// Times of one operation (a copy, a launch), each from a trial of `repeats` of them.
struct Samples {
  std::vector<double> seconds;
  int repeats = 1;
};

struct Measured {
  Point point;
  Samples main;  ///< of `point.measured` under the point's conditions
  /// kLaunch: `main` is the floor. kInterference: `main` is the kernel beside the copies.
  Samples gap, enqueue;
  Samples kernel_alone, copy_alone, copy_beside;
  double sm_hertz = 0;                      ///< the median seen
  int slow_clock = 0;                       ///< samples that did not count for it
  int pcie_generation = 0, pcie_width = 0;  ///< under load
  bool stable = false;
  std::string verified;  ///< "yes", what was wrong, or "not looked at"
};

struct Failure {
  Point point;
  std::string why;
};

struct ProbeRun {
  Machine machine;
  ProbeOptions options;
  std::vector<Measured> measured;  ///< in the order of the plan
  std::vector<Failure> failed;
  std::vector<NotPlanned> not_planned;
  double seconds = 0;  ///< that the run took
};

/// `progress` hears a line now and then.
ProbeRun run_plan(Device& device, MeasurementPlan plan, const ProbeOptions& options,
                  const std::function<void(const std::string&)>& progress = {});

/// Relative standard error of the median of samples, from their quartiles (nothing assumed about
/// tails); infinite for fewer than four.
double relative_error(std::vector<double> seconds);

}  // namespace spillway::probe
