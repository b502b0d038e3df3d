#include "sim/capacity/step_estimate.h"

#include <algorithm>
#include <span>
#include <vector>

#include "model/cost/host_rates.h"
#include "model/spec/memory_estimate.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/weights.h"
#include "sim/capacity/layer_exposure.h"
#include "sim/capacity/model_dimensions.h"
#include "sim/model_step.h"

namespace spillway {

struct StepEstimator::Facts {
  const HardwareProfile* profile = nullptr;
  std::vector<LayerWork> groups;
  WeightSums weights;
  HostRates rates;
  TokenGroups token_groups;
  GroupLayout data_group;
  GroupLayout weight_group;   ///< that share embedding and head
  double vocabulary = 0;      ///< of one device
  double table_elements = 0;  ///< of embedding and head, of one device
  double layer_elements = 0;  ///< trained, of all layers of one device
  ModelDimensions dimensions;
  StepTextOptions text_options;
};

namespace {

Bytes whole(double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); }

}  // namespace

/// Adds up one step.
class StepSum {
 public:
  StepSum(const StepEstimator::Facts& facts, const StepSpec& step)
      : facts_(facts), step_(step), profile_(*facts.profile), values_(list_saved_tensors(step)) {}

  StepEstimate run();

 private:
  void add_layers(std::size_t group);
  void add_loss();
  void add_update();
  void add_memory(StepEstimate& result) const;
  /// They are listed group after group.
  std::span<const SavedTensor> values_of(std::size_t group) const {
    const auto is_of_group = [group](const SavedTensor& tensor) {
      return static_cast<std::size_t>(tensor.group) == group;
    };
    const auto first = std::ranges::find_if(values_, is_of_group);
    return {first, std::find_if_not(first, values_.end(), is_of_group)};
  }
  double logits() const { return static_cast<double>(step_.local_tokens()) * facts_.vocabulary; }

  const StepEstimator::Facts& facts_;
  const StepSpec& step_;
  const HardwareProfile& profile_;
  const std::vector<SavedTensor> values_;
  KernelSum kernels_;
  Seconds recomputed_, collectives_, copies_;
};

void StepSum::add_layers(std::size_t group) {
  const LayerWork& work = facts_.groups[group];
  const LayerTimes times =
      layer_times(step_, static_cast<int>(group), work, facts_.token_groups, profile_);
  const StageTimes sum = times.sum();
  const auto layers = static_cast<double>(work.layers);
  KernelSum kernels = sum.forward;
  kernels += sum.again;
  kernels += sum.backward;
  // Each value saved on the device is copied into its stack, and out again.
  Bytes saved;
  for (const SavedTensor& tensor : values_of(group))
    if (tensor.is_needed && choice_of(step_, tensor) == SaveChoice::kDevice)
      saved += tensor.bytes_per_layer();
  const KernelSum copies = element_kernels(2 * static_cast<double>(saved.value()), 2, profile_);
  kernels += copies;
  kernels += copies;
  kernels *= layers;
  kernels_ += kernels;
  recomputed_ += sum.again.time * layers;
  const LayerExposure exposed = layer_exposure(step_, times, values_of(group), facts_.rates);
  collectives_ += exposed.collectives * layers;
  copies_ += (exposed.offloads + exposed.reloads) * layers;
}

void StepSum::add_loss() {
  const auto tokens = static_cast<double>(step_.local_tokens());
  const auto embed = static_cast<double>(step_.model.embed);
  const std::string_view type = "bf16";
  const int products = step_.embeds_by_product ? 2 : 0;  // the lookup, and its gradient
  kernels_ += product_kernel({tokens, embed, facts_.vocabulary}, type, profile_);
  kernels_ += product_kernel({tokens, facts_.vocabulary, embed}, type, profile_);
  for (int k = 0; k < 1 + products; ++k)
    kernels_ += product_kernel({embed, tokens, facts_.vocabulary}, type, profile_);
  // Logits are written, their maximum and sum found, the gradient made and read twice.
  constexpr double kLogitBytes = 20;
  kernels_ += element_kernels(kLogitBytes * logits(), 6, profile_);
  const double bytes = 2 * facts_.vocabulary * embed;
  const Seconds gather =
      collective_time(CollectiveKind::kAllGather, bytes, facts_.weight_group, profile_);
  const Seconds reduce =
      collective_time(CollectiveKind::kReduceScatter, bytes, facts_.weight_group, profile_);
  collectives_ += gather + reduce;  // the others of both tables hide
}

void StepSum::add_update() {
  const double elements = facts_.layer_elements + facts_.table_elements;
  // Norm of the gradients, clipping, weights and moments read and written.
  const double state =
      static_cast<double>((facts_.weights.state.params + facts_.weights.state.optimizer).value());
  const double gradients = static_cast<double>(facts_.weights.state.gradients.value());
  kernels_ +=
      element_kernels(2 * state + (step_.clips_gradients ? 2 : 1) * gradients, 40, profile_);
  collectives_ +=
      collective_time(CollectiveKind::kAllReduce, 4 * elements, facts_.data_group, profile_);
  const double moved =
      (step_.optimizer_on_host ? static_cast<double>(facts_.weights.state.optimizer.value()) : 0) +
      (step_.params_on_host ? static_cast<double>(facts_.weights.state.params.value()) : 0);
  copies_ += whole(moved) / facts_.rates.each_of_both;
}

void StepSum::add_memory(StepEstimate& result) const {
  const MemoryEstimate memory =
      estimate_memory(step_, facts_.weights, values_, facts_.text_options);
  const StateBytes& state = memory.state;
  result.state = state.other + (step_.optimizer_on_host ? Bytes(0) : state.optimizer) +
                 (step_.params_on_host ? Bytes(0) : state.params);
  result.saved = memory.saved.device;
  result.device = memory.device_peak;
  result.working = result.device - result.state - result.saved;
  result.host = memory.host;
}

StepEstimate StepSum::run() {
  for (std::size_t g = 0; g < facts_.groups.size(); ++g) add_layers(g);
  add_loss();
  // Gradients start as zeros, and those of each microbatch are added to the sum.
  if (step_.accumulation > 1)
    kernels_ += element_kernels(4 * static_cast<double>(facts_.weights.state.gradients.value()), 20,
                                profile_);
  const auto times = static_cast<double>(step_.accumulation);
  kernels_ *= times;
  recomputed_ = recomputed_ * times;
  collectives_ = collectives_ * times;
  copies_ = copies_ * times;
  add_update();
  StepEstimate result;
  const auto stages = static_cast<double>(step_.mesh[MeshAxis::kStage]);
  const double bubble =
      stages > 1
          ? 1 + (stages - 1) / std::max(1.0, static_cast<double>(step_.pipeline_microbatches))
          : 1;
  result.kernels = kernels_.time;
  result.recomputed = recomputed_;
  result.exposed_collectives = collectives_;
  result.exposed_copies = copies_;
  result.step = (kernels_.time + collectives_ + copies_) * bubble;
  const Seconds compute = kernels_.time - kernels_.by_memory;
  const std::pair<Seconds, StepBound> parts[] = {{compute, StepBound::kCompute},
                                                 {kernels_.by_memory, StepBound::kHbm},
                                                 {collectives_, StepBound::kCollectives},
                                                 {copies_, StepBound::kHostLink}};
  result.bound = std::ranges::max_element(parts, {}, &std::pair<Seconds, StepBound>::first)->second;
  const double sequences = step_.batch_per_device;
  result.tokens = sequences * static_cast<double>(step_.sequence * step_.accumulation);
  result.model_flops =
      training_flops(facts_.dimensions, {sequences, step_.sequence, step_.accumulation}).total;
  add_memory(result);
  return result;
}

std::string_view name_of(StepBound bound) {
  constexpr std::string_view kNames[] = {"compute", "HBM bandwidth", "collectives", "host link"};
  return kNames[static_cast<std::size_t>(bound)];
}

Result<StepEstimator> StepEstimator::make(const StepSpec& step, const HardwareProfile& profile,
                                          const Topology& topology) {
  auto facts = std::make_unique<Facts>();
  facts->profile = &profile;
  Result<WeightSums> weights = sum_weights(step);
  if (!weights.ok()) return weights.error();
  facts->weights = std::move(*weights);
  for (std::size_t g = 0; g < step.model.groups.size(); ++g) {
    const LayerWork& work =
        facts->groups.emplace_back(make_layer_work(step, static_cast<int>(g), topology));
    facts->layer_elements += static_cast<double>(work.local_elements * work.layers);
  }
  facts->rates = host_rates(profile, topology);
  using enum MeshAxis;
  const Mesh& mesh = step.mesh;
  facts->token_groups = {layout_along(mesh, {kTensor, kTensorSequence}, topology),
                         layout_along(mesh, {kExpert}, topology)};
  facts->data_group = layout_along(mesh, {kData}, topology);
  facts->weight_group = layout_along(mesh, {kFsdp, kFsdpTranspose, kContext, kExpert}, topology);
  facts->vocabulary =
      static_cast<double>(step.model.vocabulary) / static_cast<double>(mesh.tensor_shares());
  const double tables = step.model.tied_head ? 1 : 2;
  facts->table_elements = tables * static_cast<double>(step.model.vocabulary * step.model.embed) /
                          static_cast<double>(mesh.devices() / mesh[kData]);
  facts->dimensions = dimensions_of(step.model);
  facts->text_options = step_text_options(profile);
  return StepEstimator(std::move(facts));
}

StepEstimate StepEstimator::estimate(const StepSpec& step) const {
  return StepSum(*facts_, step).run();
}

StepEstimator::StepEstimator(std::unique_ptr<Facts> facts) : facts_(std::move(facts)) {}
StepEstimator::StepEstimator(StepEstimator&&) noexcept = default;
StepEstimator& StepEstimator::operator=(StepEstimator&&) noexcept = default;
StepEstimator::~StepEstimator() = default;

}  // namespace spillway
