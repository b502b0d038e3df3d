// One layer of a step written as HLO: what the forward loop's body computes, and what the backward
// loop's body does with what was saved. Everything that has a name is saved; what has none is
// computed again, as jax.checkpoint does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/spec/hlo_kernels.h"
#include "model/spec/saved_tensors.h"
#include "model/spec/stacked_weights.h"

namespace spillway {

class LayerText {
 public:
  /// `positions` are the tokens' places, s32[batch, sequence].
  LayerText(const StepSpec& step, int group, HloBlock& block,
            const std::vector<StackedWeight>& weights, const HloValue& index,
            const HloValue& positions, bool backward);

  struct Forward {
    HloValue output;
    HloValues saved;  ///< of list_saved_tensors those that are needed, in that order
  };
  Forward forward(const HloValue& input);

  struct Backward {
    HloValue input_gradient;
    std::map<std::string, HloValue> gradients;  ///< by StackedWeight::path, one layer's local rows
  };
  /// `stacks` hold what `forward` saved, in that order.
  Backward backward(const HloValue& output_gradient, const HloValues& stacks);

 private:
  // layer_text.cpp: weights, norms, bookkeeping.
  bool has_post_norms() const;
  std::string feed_forward_norm() const;
  bool is_split(std::int64_t features) const;
  bool is_stack(const HloValue& part) const;
  std::vector<std::int64_t> row_dims(const HloValue& part) const;
  HloValue sum_in(HloFusion& fusion, const HloValues& parts, const std::vector<std::int64_t>& dims);
  HloValue read(HloFusion& fusion, const HloValue& part, const std::vector<std::int64_t>& dims);
  const HloValue& weight(const std::string& path) { return loaded_.at(path); }
  void load(const std::vector<std::string>& paths);
  HloValue scale(const std::string& path);
  HloValue normalise(const HloValues& parts, const std::string& scale_path);
  HloValue norm_backward(const HloValues& parts, const HloValue& gradient,
                         const std::string& scale_path, const HloValues& added, HloValue* normed);
  HloValue sum_of_squares(const HloValues& parts, const std::vector<std::int64_t>& dims);
  HloValue gather_features(const HloValue& value);
  HloValue scatter_features(const HloValue& value);
  HloValue flat(const HloValue& value) {
    return block_.view(value, {t_, element_count(value.array) / t_});
  }
  HloValue shaped(const HloValue& value) {
    return block_.view(value, {b_, s_, element_count(value.array) / t_});
  }
  HloValue save(const std::string& name, const HloValue& value);
  HloValue saved_row(const std::string& name);
  const HloValue& stack(const std::string& name) const { return stacks_.at(name); }
  HloValue weight_gradient(const HloValue& input, const HloValue& gradient);
  void set_gradient(const std::string& path, const HloValue& value) { gradients_[path] = value; }
  void finish_gradients();

  // attention_text.cpp
  using Gradients = std::vector<std::pair<std::string, HloValue>>;
  HloValues turns(std::int64_t dim);
  HloValue turn(const HloValue& value, const HloValues& angles, std::int64_t heads,
                std::int64_t dim, const std::string& norm);
  HloValue turn_back(const HloValue& gradient, const HloValues& angles, const HloValue& before,
                     const std::string& norm, std::int64_t heads, std::int64_t dim);
  HloValues attention(const HloValue& q, const HloValue& k, const HloValue& v);
  HloValues attention_backward(const HloValue& q, const HloValue& k, const HloValue& v,
                               const HloValues& forward, const HloValue& gradient);
  HloValue attend(const HloValue& normed);
  void project(const HloValue& normed);
  void project_latent(const HloValue& normed);
  HloValue project_backward(const HloValues& gradients, const HloValue& normed);
  HloValue project_latent_backward(const HloValues& gradients);
  HloValue attend_backward(const HloValue& gradient, const HloValue& residual);
  void project_weight_gradients(const HloValue& normed);
  void latent_weight_gradients(const HloValue& normed);
  void bias_gradient(const std::string& path, const HloValue& gradient);

  // mlp_text.cpp
  void quantise_feed_forward(bool begins);
  HloValue mlp(const HloValue& normed, const std::string& path, const HloValues& residuals);
  HloValue mlp_backward(const HloValue& gradient, const std::string& path, const HloValues& added);
  void mlp_weight_gradients(const HloValue& normed, const HloValue& gradient,
                            const std::string& path);

  // moe_text.cpp
  struct Routing {
    HloValue logits, mask, places, weights;
    HloValue counts;  ///< of the global batch, where weights are looked up
  };
  Routing route(const HloValue& normed);
  HloValue gather_routing(Routing& routing, std::int64_t k, std::int64_t e);
  HloValue to_experts(const HloValue& value, const Routing& routing);
  HloValue from_experts(const HloValue& rows, const Routing& routing);
  HloValue group_rows(const HloValue& rows);
  HloValue expert_weight(const std::string& path);
  HloValue experts(const HloValue& normed, const HloValues& residuals);
  HloValue experts_backward(const HloValue& gradient, const HloValue& normed);

  const StepSpec& step_;
  const ModelSpec& model_;
  const LayerStack& layers_;
  HloBlock& block_;
  const std::vector<StackedWeight>& weights_;
  HloValue index_, positions_;
  std::vector<SavedTensor> tensors_;  ///< that backward reads
  std::optional<std::int64_t> last_;  ///< backward: the last row of a stack
  std::int64_t b_, s_, t_, d_, tp_;
  ElementType type_;
  std::map<std::string, HloValue> loaded_;  ///< weights, gathered
  std::map<std::string, HloValue> saved_;
  std::map<std::string, HloValue> stacks_;
  std::map<std::string, HloValue> gradients_;
  /// Gradients that wait for the input they are multiplied with.
  struct Three {
    HloValue first, second, third;
  };
  std::map<std::string, Three> waiting_;
};

}  // namespace spillway
