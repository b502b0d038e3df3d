// What one layer of a group does, from its dimensions: matrix products, attention, weights to put
// together, and bytes that element kernels move. Figures are of one device; a token's are
// multiplied by whoever knows how many there are.
#pragma once

#include <string>
#include <vector>

#include "model/cost/topology.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// Parts of a layer in the order the forward pass runs them; the backward pass goes the other way.
enum class LayerStage : std::uint8_t {
  kDown,     ///< projections to the ranks of latent attention
  kProject,  ///< queries, keys and values
  kAttention,
  kOut,
  kRoute,  ///< gate of experts
  kIn,
  kFeedForwardOut,
};
inline constexpr std::size_t kLayerStages = 7;

/// rows x depth by depth x width, `matrices` of them with the rows spread evenly.
struct LayerProduct {
  LayerStage stage = LayerStage::kProject;
  bool per_expert_row = false;  ///< else a row a token
  std::int64_t depth = 0, width = 0, matrices = 1;
  /// Names of what it makes, from each list any. Saved, it is not made again.
  std::vector<std::vector<std::string>> names = {};
  bool is_needed = true;  ///< the backward pass reads what it makes
};

/// A weight that is put together from the devices that share it, in each pass.
struct WeightGather {
  LayerStage stage = LayerStage::kProject;
  std::int64_t elements = 0;  ///< put together, of one layer
  GroupLayout group;
};

struct LayerWork {
  std::int64_t layers = 0;  ///< on one device
  std::vector<LayerProduct> products;
  std::vector<WeightGather> gathers;
  std::int64_t weight_elements = 0;  ///< of the matrices, put together
  std::int64_t local_elements = 0;   ///< of what is trained, on one device
  std::int64_t query_width = 0, key_width = 0, value_width = 0;  ///< heads x size, on one device
  std::int64_t heads = 0, head_dim = 0, value_dim = 0;
  std::int64_t window = 0;     ///< 0: none
  double windowed_share = 0;   ///< of the layers
  std::int64_t mlp_width = 0;  ///< shared experts among it
  std::int64_t expert_width = 0;
};

/// Where the devices stand that differ along these axes.
GroupLayout layout_along(const Mesh& mesh, const std::vector<MeshAxis>& axes,
                         const Topology& topology);

/// Of group number `group`, of a mesh that splits every array (sum_weights says whether it does).
LayerWork make_layer_work(const StepSpec& step, int group, const Topology& topology);

}  // namespace spillway
