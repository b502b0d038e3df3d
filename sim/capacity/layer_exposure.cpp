#include "sim/capacity/layer_exposure.h"

#include <algorithm>
#include <vector>

#include "model/spec/remat_policy.h"

namespace spillway {
namespace {

constexpr auto kStages = std::to_array(
    {LayerStage::kDown, LayerStage::kProject, LayerStage::kAttention, LayerStage::kOut,
     LayerStage::kRoute, LayerStage::kIn, LayerStage::kFeedForwardOut});

/// Which stage makes a value; kDown for the layer's input.
LayerStage maker_of(const SavedTensor& tensor) {
  const auto is = [&](std::string_view name) { return std::ranges::count(tensor.names, name) > 0; };
  const auto starts = [&](std::string_view prefix) {
    return std::ranges::any_of(tensor.names,
                               [&](const std::string& name) { return name.starts_with(prefix); });
  };
  if (is("decoder_layer_input") || is("query_wa_proj") || is("kv_wa_proj") || starts("mla_"))
    return LayerStage::kDown;
  if (is("context") || is("attention_out")) return LayerStage::kAttention;
  if (is("out_proj")) return LayerStage::kOut;
  if (starts("mlpwi") || starts("moe_mlpwi")) return LayerStage::kIn;
  if (starts("mlpwo") || starts("moe_mlpwo")) return LayerStage::kFeedForwardOut;
  return LayerStage::kProject;
}

/// When the backward pass of a layer first reads what each stage made, from its beginning on.
class Uses {
 public:
  Uses(const StepSpec& step, const LayerTimes& times) : times_(times) {
    const auto saves = [&](std::string_view name) {
      return choice_of(step, name) != SaveChoice::kRecompute;
    };
    const bool hidden = saves("mlpwi_0") || saves("mlpwi") || saves("moe_mlpwi_0");
    const bool out = saves("out_proj");
    // What the feed-forward part is computed from is read at once where that is repeated, else
    // behind its last product; attention's inputs likewise, or where attention's turn comes.
    const Seconds behind_last = after(LayerStage::kFeedForwardOut);
    out_ = hidden ? behind_last : Seconds(0);
    context_ = out ? after(LayerStage::kIn) : out_;
    project_ = out || saves("context") ? after(LayerStage::kOut) : out_;
  }

  Seconds of(LayerStage maker) const {
    switch (maker) {
      case LayerStage::kDown:
      case LayerStage::kProject:
        return project_;
      case LayerStage::kAttention:
        return context_;
      case LayerStage::kOut:
        return out_;
      default:
        return Seconds(0);
    }
  }

 private:
  /// Until the gradients of a stage and of all behind it are there.
  Seconds after(LayerStage stage) const {
    Seconds time;
    for (const LayerStage s : kStages)
      if (s >= stage) time += times_[s].backward.time + times_[s].again.time;
    return time;
  }

  const LayerTimes& times_;
  Seconds out_, context_, project_;
};

struct Copy {
  Seconds at;  ///< ready to leave; or wanted back
  Seconds takes;
};

/// How long after the layer's end the last one is there.
Seconds exposed_offloads(std::vector<Copy> copies, Seconds layer) {
  std::ranges::stable_sort(copies, {}, &Copy::at);
  Seconds busy_until;
  for (const Copy& copy : copies) busy_until = std::max(busy_until, copy.at) + copy.takes;
  return copies.empty() ? Seconds(0) : std::max(busy_until - layer, Seconds(0));
}

/// How long their readers wait, one after the other; a wait puts off whatever comes later.
Seconds exposed_reloads(std::vector<Copy> copies) {
  std::ranges::stable_sort(copies, {}, &Copy::at);
  Seconds there, waited;
  for (const Copy& copy : copies) {
    there += copy.takes;
    waited += std::max(there - (copy.at + waited), Seconds(0));
  }
  return waited;
}

Seconds beyond(Seconds time, Seconds behind) { return std::max(time - behind, Seconds(0)); }

}  // namespace

LayerExposure layer_exposure(const StepSpec& step, const LayerTimes& times,
                             std::span<const SavedTensor> saved, const HostRates& rates) {
  LayerExposure result;
  const StageTimes sum = times.sum();
  Seconds first_gather, first_backward, last_reduction;
  for (const LayerStage stage : kStages) {
    if (first_gather == Seconds(0)) first_gather = times[stage].gather;
    if (times[stage].gather > Seconds(0)) first_backward = times[stage].gather;
    if (last_reduction == Seconds(0)) last_reduction = times[stage].reduction;
  }
  const Seconds backward = sum.backward.time + sum.again.time;
  const Seconds all_backward = sum.gather + sum.reduction;
  result.collectives = times.waits_forward + times.waits_backward +
                       std::max(first_gather, beyond(sum.gather, sum.forward.time)) +
                       std::max(first_backward + last_reduction, beyond(all_backward, backward));

  std::vector<Copy> out, in;
  const Uses uses(step, times);
  for (const SavedTensor& tensor : saved) {
    if (!tensor.is_needed || choice_of(step, tensor) != SaveChoice::kHost) continue;
    const LayerStage maker = maker_of(tensor);
    const bool is_input = tensor.names.front() == "decoder_layer_input";
    Seconds made;
    for (const LayerStage stage : kStages)
      if (stage <= maker && !is_input) made += times[stage].forward.time;
    out.push_back({made, tensor.bytes_per_layer() / rates.device_to_host});
    in.push_back(
        {is_input ? Seconds(0) : uses.of(maker), tensor.bytes_per_layer() / rates.host_to_device});
  }
  result.offloads = exposed_offloads(std::move(out), sum.forward.time + times.waits_forward);
  result.reloads = exposed_reloads(std::move(in));
  return result;
}

}  // namespace spillway
