// XLA's profile-guided estimator (PGLE): what a profile says, and another estimator for the rest.
#pragma once

#include <memory>

#include "model/run/pgle.h"
#include "sim/schedule/latency_estimator.h"

namespace spillway {

/// Latency of an edge: what the profile has for the two names; else, for an async pair, its cost of
/// the start, by the start's name or by that of what it wraps; else the other estimator's. Node
/// costs: 1 for starts and dones of collectives, else the profile's by name, else the other
/// estimator's. Names are those that XLA scheduled by.
class ProfileGuidedEstimator : public LatencyEstimator {
 public:
  ProfileGuidedEstimator(ProfiledInstructions profile, std::unique_ptr<LatencyEstimator> rest)
      : profile_(std::move(profile)), rest_(std::move(rest)) {}

  double node_cost(const Program& program, InstructionId instruction) const override;
  double latency(const Program& program, ComputationId computation, InstructionIndex from,
                 InstructionIndex to) const override;

 private:
  ProfiledInstructions profile_;
  std::unique_ptr<LatencyEstimator> rest_;
};

}  // namespace spillway
