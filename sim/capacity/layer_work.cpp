#include "sim/capacity/layer_work.h"

#include <algorithm>

#include "model/cost/replica_groups.h"
#include "model/spec/stacked_weights.h"

namespace spillway {
namespace {

using Names = std::vector<std::vector<std::string>>;

std::int64_t product_of(const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

/// Which of a layer's values a weight's product makes.
Names names_of(const StackedWeight& weight, bool both_experts) {
  const bool second = weight.path.find("wi_1") != std::string::npos;
  switch (weight.array.role) {
    case WeightRole::kQuery:
      return {{"query_proj"}};
    case WeightRole::kKey:
      return {{"key_proj"}};
    case WeightRole::kValue:
      return {{"value_proj"}};
    case WeightRole::kFusedQkv:
      return {{"qkv_proj"}};
    case WeightRole::kOut:
      return {{"out_proj"}};
    case WeightRole::kMlpIn:
      if (second) return {{"mlpwi_1"}};
      return {{weight.path.find("wi_0") != std::string::npos ? "mlpwi_0" : "mlpwi"}};
    case WeightRole::kMlpOut:
      return {{"mlpwo"}};
    case WeightRole::kExpertIn:
      if (!second) return {{"mlpwi_0", "moe_mlpwi_0"}};
      return both_experts ? Names{{"mlpwi_1", "moe_mlpwi_1"}} : Names{{"moe_mlpwi_1"}};
    case WeightRole::kExpertOut:
      return both_experts ? Names{{"mlpwo", "moe_mlpwo"}} : Names{{"moe_mlpwo"}};
    case WeightRole::kLatentDown:
      return {{weight.path.find("wq_") != std::string::npos ? "query_wa_proj" : "kv_wa_proj"}};
    case WeightRole::kLatentUp:
      if (weight.path.find("wq_") != std::string::npos) return {{"query_proj"}};
      return {{"key_proj"}, {"value_proj"}};
    default:
      return {};
  }
}

/// Where a weight is used; norms and biases count to what follows them.
LayerStage stage_of(const StackedWeight& weight) {
  switch (weight.array.role) {
    case WeightRole::kLatentDown:
      return LayerStage::kDown;
    case WeightRole::kOut:
      return LayerStage::kOut;
    case WeightRole::kGate:
      return LayerStage::kRoute;
    case WeightRole::kMlpIn:
    case WeightRole::kExpertIn:
      return LayerStage::kIn;
    case WeightRole::kMlpOut:
    case WeightRole::kExpertOut:
      return LayerStage::kFeedForwardOut;
    default:
      return LayerStage::kProject;
  }
}

bool is_matrix(WeightRole role) {
  switch (role) {
    case WeightRole::kQuery:
    case WeightRole::kKey:
    case WeightRole::kValue:
    case WeightRole::kFusedQkv:
    case WeightRole::kOut:
    case WeightRole::kMlpIn:
    case WeightRole::kMlpOut:
    case WeightRole::kGate:
    case WeightRole::kExpertIn:
    case WeightRole::kExpertOut:
    case WeightRole::kLatentDown:
    case WeightRole::kLatentUp:
      return true;
    default:
      return false;
  }
}

/// Elements of a row that are summed over: all but those of the result.
std::int64_t depth_of(const StackedWeight& weight, const std::vector<std::int64_t>& whole) {
  switch (weight.array.role) {
    case WeightRole::kOut:
      return whole[0] * whole[1];
    case WeightRole::kExpertIn:
    case WeightRole::kExpertOut:
      return whole[1];
    default:
      return whole[0];
  }
}

LayerProduct product_with(const StackedWeight& weight, const Mesh& mesh, const StepSpec& step) {
  const std::vector<std::int64_t> whole = weight.whole(mesh);
  const WeightRole role = weight.array.role;
  LayerProduct product;
  product.stage = stage_of(weight);
  product.per_expert_row = role == WeightRole::kExpertIn || role == WeightRole::kExpertOut;
  product.matrices = product.per_expert_row ? whole[0] : 1;
  product.depth = depth_of(weight, whole);
  product.width = product_of(whole) / product.depth / product.matrices;
  product.names = names_of(weight, step.dispatch == Dispatch::kCapacity);
  // Only a norm behind it reads the output of an MLP.
  product.is_needed = role != WeightRole::kMlpOut || step.model.norms_per_layer == 4;
  return product;
}

}  // namespace

GroupLayout layout_along(const Mesh& mesh, const std::vector<MeshAxis>& axes,
                         const Topology& topology) {
  if (group_size(mesh, axes) == 1) return {};
  const auto groups = parse_replica_groups(replica_groups(mesh, axes));
  check(groups.has_value(), "the groups of a mesh are not understood");
  return layout_of(*groups, topology);
}

LayerWork make_layer_work(const StepSpec& step, int group, const Topology& topology) {
  const LayerStack& layers = step.model.groups[static_cast<std::size_t>(group)];
  const std::int64_t split = step.mesh.tensor_shares();
  const AttentionSpec& attention = layers.attention;
  LayerWork work;
  work.heads = attention.query_heads / split;
  work.head_dim = attention.head_dim;
  work.value_dim = attention.value_dim;
  const std::int64_t kv_heads =
      (attention.latent ? attention.query_heads : attention.kv_heads) / split;
  work.query_width = work.heads * attention.head_dim;
  work.key_width = kv_heads * attention.head_dim;
  work.value_width = kv_heads * attention.value_dim;
  work.window = attention.window;
  if (attention.window > 0)
    work.windowed_share =
        attention.window_period > 1 ? 1 - 1 / static_cast<double>(attention.window_period) : 1;
  work.mlp_width = layers.mlp_width / split;
  if (layers.moe) {
    work.mlp_width += layers.moe->shared > 0 ? layers.moe->shared_width / split : 0;
    work.expert_width = layers.moe->width / split;
  }
  for (const StackedWeight& weight : list_stacked_weights(step, group)) {
    work.layers = weight.layers;
    if (weight.array.trained) work.local_elements += product_of(weight.local);
    const std::int64_t whole = product_of(weight.whole(step.mesh));
    for (const StackedWeight::Gather& gather : weight.gathers)
      work.gathers.push_back(
          {stage_of(weight), whole, layout_along(step.mesh, gather.axes, topology)});
    if (!is_matrix(weight.array.role)) continue;
    work.weight_elements += whole;
    work.products.push_back(product_with(weight, step.mesh, step));
  }
  return work;
}

}  // namespace spillway
