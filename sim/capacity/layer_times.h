// How long one layer of a group takes on one device for one microbatch, stage by stage.
#pragma once

#include <array>

#include "model/cost/collective.h"
#include "sim/capacity/kernel_sum.h"
#include "sim/capacity/layer_work.h"

namespace spillway {

/// Groups of devices that exchange what tokens hang on.
struct TokenGroups {
  GroupLayout tensor, expert;
};

struct StageTimes {
  KernelSum forward;
  KernelSum again;     ///< of `forward`, what the policy has repeated in the backward pass
  KernelSum backward;  ///< without `again`
  Seconds gather;      ///< its weights put together, in each pass
  Seconds reduction;   ///< gradients of its weights, in the backward pass
};

struct LayerTimes {
  std::array<StageTimes, kLayerStages> stages;
  Seconds waits_forward;  ///< collectives whose results the next kernel needs
  Seconds waits_backward;

  StageTimes& operator[](LayerStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  const StageTimes& operator[](LayerStage stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
  StageTimes sum() const;
};

/// Products by the cost model of their sizes, attention by its pairs, element kernels by the bytes
/// of the passes XLA makes over activations, counted in the programs of the corpus: a norm reads
/// its input twice and writes once, its gradient moves twice as much; positions read and write
/// queries and keys; a gated activation reads two and writes one.
LayerTimes layer_times(const StepSpec& step, int group, const LayerWork& work,
                       const TokenGroups& groups, const HardwareProfile& profile);

/// Whether the policy saves what a product makes.
bool is_saved(const StepSpec& step, const LayerProduct& product);

/// "bf16", or what the step quantises operands to.
std::string_view product_type(const StepSpec& step);

/// How long a collective takes alone; zero where nobody is to be asked.
Seconds collective_time(CollectiveKind kind, double bytes, const GroupLayout& group,
                        const HardwareProfile& profile);

}  // namespace spillway
