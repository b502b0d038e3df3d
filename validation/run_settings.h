// A step that was published as the product sees it: the model's step, the machine, and how XLA was
// asked to order it.
#pragma once

#include "model/cost/topology.h"
#include "model/cost/training_flops.h"
#include "model/hardware/find_profile.h"
#include "model/spec/step_spec.h"
#include "validation/published.h"

namespace spillway {

/// Which products of a program made from a configuration, which has them in bf16, cost what they
/// would in the narrow type.
enum class NarrowProducts {
  kNone,
  kMlp,     ///< those of the feed-forward part
  kLayers,  ///< all of the layers'
};

struct RunSettings {
  StepSpec spec;
  HardwareProfile profile;
  Topology topology;
  /// Made into a program, ordered as XLA would, simulated; else by formulas (step_estimate.h).
  bool by_program = false;
  bool hides_latencies = true;
  bool pipelines_copies = false;
  bool has_profile = false;  ///< XLA orders by a profile (PGLE) instead of its own estimator
  NarrowProducts narrow = NarrowProducts::kNone;
  std::string narrow_type;  ///< "f4e2m1fn"
  double memory_fraction = 0.75;
  AttentionCount attention_count = AttentionCount::kCausal;
};

/// Settings that are not MaxText's:
///   machine, devices                 a profile's id; how many GPUs
///   by                               program or estimate
///   latency_hiding, pipelined, pgle  true or false, of a program's order
///   narrow_products                  none, mlp or layers; narrow_type: f8e4m3fn or f4e2m1fn
///   network                          GB/s of a GPU's NIC as sustained, in place of the profile's
///   fraction                         XLA_PYTHON_CLIENT_MEM_FRACTION
///   attention_count                  causal or all_pairs
/// An error: the machine or a MaxText setting is not understood.
Result<RunSettings> make_run(const Settings& settings, const ProfileSearchPath& profiles);

}  // namespace spillway
