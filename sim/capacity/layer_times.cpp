#include "sim/capacity/layer_times.h"

#include <algorithm>

#include "model/spec/remat_policy.h"
#include "model/spec/saved_tensors.h"

namespace spillway {
namespace {

class Layer {
 public:
  Layer(const StepSpec& step, int group, const LayerWork& work, const HardwareProfile& profile)
      : step_(step),
        spec_(step.model.groups[static_cast<std::size_t>(group)]),
        work_(work),
        profile_(profile),
        type_(product_type(step)),
        tokens_(static_cast<double>(step.local_tokens())),
        expert_rows_(spec_.moe ? static_cast<double>(expert_rows(step, *spec_.moe)) : 0) {}

  LayerTimes times(const TokenGroups& groups) const {
    LayerTimes result;
    add_products(result);
    StageTimes& attends = result[LayerStage::kAttention];
    attends.forward = attends.again = attention(false);
    attends.backward = attention(true);
    add_dispatch(result);
    add_elements(result);
    add_weights(result);
    add_waits(groups, result);
    return result;
  }

 private:
  KernelSum product(double rows, double depth, double width, double matrices = 1) const {
    return product_kernel({rows, depth, width, matrices}, type_, profile_);
  }
  double rows_of(const LayerProduct& p) const { return p.per_expert_row ? expert_rows_ : tokens_; }

  /// Forward, then the gradients of rows and of weights.
  void add_products(LayerTimes& result) const {
    for (const LayerProduct& p : work_.products) {
      const double rows = rows_of(p), matrices = static_cast<double>(p.matrices);
      const auto depth = static_cast<double>(p.depth), width = static_cast<double>(p.width);
      StageTimes& stage = result[p.stage];
      const KernelSum forward = product(rows, depth, width, matrices);
      stage.forward += forward;
      if (p.is_needed && !is_saved(step_, p)) stage.again += forward;
      stage.backward += product(rows, width, depth, matrices);
      stage.backward += product(depth * matrices, rows / matrices, width, matrices);
    }
  }

  /// With a fixed number of places rows get to their experts, and back, by products with a mask.
  void add_dispatch(LayerTimes& result) const {
    if (!spec_.moe || step_.dispatch != Dispatch::kCapacity) return;
    const auto sequence = static_cast<double>(step_.local_sequence());
    const auto embed = static_cast<double>(step_.model.embed);
    const auto batch = static_cast<double>(step_.local_batch());
    const double places = expert_rows_ / std::max(batch, 1.0);
    KernelSum out = product(places * batch, sequence, embed, batch);
    out += element_kernels(2 * batch * sequence * places * kBytes, 2, profile_);
    KernelSum back = product(sequence * batch, places, embed, batch);
    back += element_kernels(2 * batch * sequence * places * kBytes, 2, profile_);
    for (const auto& [stage, kernels] :
         {std::pair(LayerStage::kIn, out), std::pair(LayerStage::kFeedForwardOut, back)}) {
      result[stage].forward += kernels;
      result[stage].again += kernels;
      result[stage].backward += kernels;
      result[stage].backward += kernels;
    }
  }

  KernelSum attention(bool backward) const {
    const auto queries = static_cast<double>(step_.local_sequence());
    const auto keys = static_cast<double>(step_.sequence);
    const auto window = static_cast<double>(work_.window);
    const double causal = queries * keys / 2;
    const double windowed =
        work_.window > 0 && window < keys ? queries * window - window * window / 2 : causal;
    const double pairs = work_.windowed_share * windowed + (1 - work_.windowed_share) * causal;
    AttentionSize size;
    size.pairs = pairs * static_cast<double>(step_.local_batch());
    size.heads = static_cast<double>(work_.heads);
    size.head_dim = static_cast<double>(work_.head_dim);
    size.value_dim = static_cast<double>(work_.value_dim);
    const double token = static_cast<double>(work_.query_width + work_.key_width +
                                             work_.value_width + work_.heads * work_.value_dim);
    size.bytes = (backward ? 2 : 1) * kBytes * tokens_ * token;
    if (step_.attention == AttentionKernel::kFlash)
      return attention_kernel(size, backward, profile_);
    // Scores are written, masked, normalised and read.
    KernelSum sum = attention_kernel(size, backward, profile_);
    sum += element_kernels((backward ? 10 : 6) * kBytes * size.heads *
                               static_cast<double>(step_.local_batch()) * queries * keys,
                           backward ? 5 : 4, profile_);
    return sum;
  }

  double hidden() const {
    return tokens_ * static_cast<double>(work_.mlp_width) +
           expert_rows_ * static_cast<double>(work_.expert_width);
  }
  double embed() const {
    return static_cast<double>(step_.model.embed) / static_cast<double>(step_.mesh.tensor_shares());
  }
  double positions() const {
    return tokens_ * static_cast<double>(work_.query_width + work_.key_width);
  }
  /// Elements of rows that go to experts and come back.
  double routed() const {
    return step_.dispatch == Dispatch::kCapacity
               ? 0
               : expert_rows_ * static_cast<double>(step_.model.embed);
  }

  void add_elements(LayerStage stage, double forward, double backward, LayerTimes& result) const {
    StageTimes& times = result[stage];
    const KernelSum kernels = element_kernels(kBytes * forward, 2, profile_);
    times.forward += kernels;
    times.again += kernels;
    times.backward += element_kernels(kBytes * backward, 4, profile_);
  }

  void add_elements(LayerTimes& result) const {
    // Norms and sums in front of attention and of the feed-forward part.
    const double norms = static_cast<double>(step_.model.norms_per_layer) / 2 * tokens_ * embed();
    const double sum = tokens_ * embed();
    const double gates = step_.model.gated ? 3 : 2;
    add_elements(LayerStage::kProject, 3 * norms + sum + 2 * positions() + quantised() / 2,
                 6 * norms + sum + 2 * positions() + quantised(), result);
    add_elements(LayerStage::kIn, 3 * norms + sum + 2 * routed() + quantised() / 2,
                 6 * norms + sum + 2 * routed() + quantised(), result);
    add_elements(LayerStage::kFeedForwardOut, gates * hidden() + 2 * routed(),
                 2 * gates * hidden() + 2 * routed(), result);
  }

  /// Operands are read and written narrower in front of each product.
  double quantised() const {
    if (step_.precision.quantization == Quantization::kNone) return 0;
    double elements = static_cast<double>(work_.weight_elements);
    for (const LayerProduct& p : work_.products)
      elements += rows_of(p) * static_cast<double>(p.depth);
    return 1.5 * elements;
  }

  void add_weights(LayerTimes& result) const {
    for (const WeightGather& gather : work_.gathers) {
      const double bytes = kBytes * static_cast<double>(gather.elements);
      StageTimes& stage = result[gather.stage];
      stage.gather += collective_time(CollectiveKind::kAllGather, bytes, gather.group, profile_);
      stage.reduction +=
          collective_time(CollectiveKind::kReduceScatter, bytes, gather.group, profile_);
    }
    // What a device has of them is read and narrowed in each pass, gradients widened and kept.
    const double local = static_cast<double>(work_.local_elements);
    result[LayerStage::kProject].forward += element_kernels(6 * local, 4, profile_);
    result[LayerStage::kProject].backward += element_kernels(12 * local, 8, profile_);
  }

  void add_waits(const TokenGroups& groups, LayerTimes& result) const {
    const double row = kBytes * tokens_ * static_cast<double>(step_.model.embed);
    const Seconds split =
        collective_time(CollectiveKind::kAllGather, row, groups.tensor, profile_) +
        collective_time(CollectiveKind::kReduceScatter, row, groups.tensor, profile_);
    result.waits_forward += split * 2;
    result.waits_backward += split * 3;  // and once more for what is repeated
    if (step_.dispatch == Dispatch::kCapacity || !spec_.moe) return;
    const double routed_bytes = kBytes * routed();
    const Seconds exchange =
        collective_time(CollectiveKind::kAllToAll, routed_bytes, groups.expert, profile_);
    result.waits_forward += exchange * 2;
    result.waits_backward += exchange * 3;
  }

  static constexpr double kBytes = 2;  ///< of an element of an activation

  const StepSpec& step_;
  const LayerStack& spec_;
  const LayerWork& work_;
  const HardwareProfile& profile_;
  const std::string_view type_;
  const double tokens_, expert_rows_;
};

}  // namespace

bool is_saved(const StepSpec& step, const LayerProduct& product) {
  const auto saves = [&](const std::string& name) {
    return choice_of(step, name) != SaveChoice::kRecompute;
  };
  return !product.names.empty() &&
         std::ranges::all_of(product.names, [&](const std::vector<std::string>& any) {
           return std::ranges::any_of(any, saves);
         });
}

StageTimes LayerTimes::sum() const {
  StageTimes sum;
  for (const StageTimes& stage : stages) {
    sum.forward += stage.forward;
    sum.again += stage.again;
    sum.backward += stage.backward;
    sum.gather += stage.gather;
    sum.reduction += stage.reduction;
  }
  return sum;
}

std::string_view product_type(const StepSpec& step) {
  switch (step.precision.quantization) {
    case Quantization::kNone:
      return "bf16";
    case Quantization::kNvfp4:
      return "f4e2m1fn";
    default:
      return "f8e4m3fn";
  }
}

Seconds collective_time(CollectiveKind kind, double bytes, const GroupLayout& group,
                        const HardwareProfile& profile) {
  if (group.size <= 1 || bytes <= 0) return Seconds(0);
  Collective one;
  one.kind = kind;
  one.tensor = Bytes(static_cast<std::int64_t>(bytes));
  one.group = group;
  return collective_cost(one, profile).time;
}

LayerTimes layer_times(const StepSpec& step, int group, const LayerWork& work,
                       const TokenGroups& groups, const HardwareProfile& profile) {
  return Layer(step, group, work, profile).times(groups);
}

}  // namespace spillway
