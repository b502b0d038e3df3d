// How sure the answer is: the step of the plan and of its rival when kernels and link are not quite
// what the profile says, and the memory not quite what was computed.
//
// Errors are taken as normal, and independent of each other:
//   kernels   all alike faster or slower, for every policy
//   link      likewise, both directions
//   rewrite   of each policy by itself: a program that XLA would order otherwise
//   jitter    of each step by itself
// Kernels and link are integrated over by a fixed quadrature, each point simulated; the other two
// are added to it. The same input gives the same numbers.
#pragma once

#include <string>

#include "sim/planner/rerun.h"

namespace spillway {

/// Standard deviations, as shares of what they are of.
struct Doubts {
  double kernels = 0.05;
  double link = 0.05;
  double rewrite = 0.02;
  double jitter = 0.01;
  double memory = 0.01;         ///< of the peak of a policy that XLA did not compile
  double fragmentation = 0.01;  ///< of the pool, which may be lost to holes
  std::string link_because;     ///< the origin of the link's rates
};

/// What the profile says of its figures (where from, not how exact) and what programs that XLA
/// compiled came to (docs/validation.md): kernels within 8 %, steps of rewritten programs within
/// 7 %, peaks within 3 %, each taken as some three deviations or two.
Doubts default_doubts(const HardwareProfile& profile);

struct Confidence {
  Doubts doubts;
  Seconds low, middle, high;     ///< of the step: one in ten is below, half, one in ten above
  double out_of_memory = 0;      ///< probability
  Policy rival;                  ///< one that fits; empty: there is none
  Seconds rival_step;            ///< as simulated
  bool rival_recomputes = true;  ///< else it keeps what the plan offloads, or is the next best
  double loses = 0;              ///< probability that the rival is faster
  std::size_t simulated = 0;
};

/// An error: a policy cannot be simulated there.
Result<Confidence> find_confidence(const Evaluator& evaluator, const PlanResult& plan,
                                   const Doubts& doubts, std::size_t threads);

}  // namespace spillway
