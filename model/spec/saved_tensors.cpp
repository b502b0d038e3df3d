#include "model/spec/saved_tensors.h"

#include <algorithm>
#include <cmath>

#include "model/spec/remat_policy.h"

namespace spillway {
namespace {

using Dims = std::vector<std::int64_t>;

/// Lists the tensors of one group.
class GroupLister {
 public:
  GroupLister(const StepSpec& step, int group, SavedTensorOptions options,
              std::vector<SavedTensor>& out)
      : step_(step),
        layers_(step.model.groups[static_cast<std::size_t>(group)]),
        group_(group),
        options_(options),
        out_(out) {}

  void list() {
    const std::int64_t split = step_.mesh[MeshAxis::kTensor];
    add({"decoder_layer_input"}, {b_, s_, step_.model.embed / split});
    if (layers_.attention.latent)
      list_latent();
    else
      list_projections();
    list_attention();
    if (layers_.mlp_width > 0) list_mlp(layers_.mlp_width);
    if (layers_.moe) list_moe(*layers_.moe);
  }

 private:
  SavedTensor& add(std::vector<std::string> names, Dims dims) {
    SavedTensor tensor;
    tensor.names = std::move(names);
    tensor.group = group_;
    tensor.dims = std::move(dims);
    tensor.type = step_.precision.activations;
    out_.push_back(std::move(tensor));
    return out_.back();
  }

  void list_projections() {
    const AttentionSpec& a = layers_.attention;
    // Attention reads what it is split into.
    if (a.fused_projection)
      add({"qkv_proj"}, {b_, s_, 3, a.query_heads / tp_, a.head_dim}).is_needed = false;
    add({"query_proj"}, {b_, s_, a.query_heads / tp_, a.head_dim});
    add({"key_proj"}, {b_, s_, a.kv_heads / tp_, a.head_dim});
    add({"value_proj"}, {b_, s_, a.kv_heads / tp_, a.value_dim});
  }

  void list_latent() {
    const AttentionSpec& a = layers_.attention;
    if (a.latent->query_rank > 0) {
      add({"query_wa_proj"}, {b_, s_, a.latent->query_rank});
      add({"mla_q"}, {b_, s_, a.latent->query_rank});
    }
    add({"kv_wa_proj"}, {b_, s_, a.latent->kv_rank + a.latent->position_dim});
    add({"mla_kv"}, {b_, s_, a.latent->kv_rank});
    add({"query_proj"}, {b_, s_, a.query_heads / tp_, a.head_dim});
    add({"key_proj"}, {b_, s_, a.query_heads / tp_, a.head_dim});
    add({"value_proj"}, {b_, s_, a.query_heads / tp_, a.value_dim});
  }

  void list_attention() {
    const AttentionSpec& a = layers_.attention;
    const std::int64_t heads = a.query_heads / tp_;
    SavedTensor& context = add({"context"}, {b_, s_, heads, a.value_dim});
    if (options_.context_has_statistics) context.also = Bytes(4 * b_ * s_ * heads);
    add({"attention_out"}, {b_, s_, heads, a.value_dim}).is_needed = false;
    add({"out_proj"}, {b_, s_, step_.model.embed / step_.mesh[MeshAxis::kTensor]});
  }

  void list_mlp(std::int64_t width) {
    add({step_.model.gated ? "mlpwi_0" : "mlpwi"}, {b_, s_, width / tp_});
    if (step_.model.gated) add({"mlpwi_1"}, {b_, s_, width / tp_});
    // Only a norm behind it reads it.
    add({"mlpwo"}, {b_, s_, step_.model.embed / step_.mesh[MeshAxis::kTensor]}).is_needed =
        step_.model.norms_per_layer == 4;
  }

  void list_moe(const MoeSpec& moe) {
    const std::int64_t width = moe.width / tp_;
    const auto dims = [&](std::int64_t features) {
      // Of a fixed capacity each sequence has its places with every expert; MaxText 0.2.5 shares
      // sequences out among all devices and gathers the experts' weights.
      if (step_.dispatch == Dispatch::kCapacity)
        return Dims{moe.experts, b_, expert_capacity(step_, moe), features};
      return Dims{expert_rows(step_, moe), features};
    };
    // Without padding the second input has one name only (the trap of validation.md 4.2).
    const bool both = step_.dispatch == Dispatch::kCapacity;
    using Names = std::vector<std::string>;
    add({"mlpwi_0", "moe_mlpwi_0"}, dims(width));
    add(both ? Names{"mlpwi_1", "moe_mlpwi_1"} : Names{"moe_mlpwi_1"}, dims(width));
    add(both ? Names{"mlpwo", "moe_mlpwo"} : Names{"moe_mlpwo"}, dims(step_.model.embed));
    if (moe.shared > 0) list_mlp(moe.shared_width);
  }

  const StepSpec& step_;
  const LayerStack& layers_;
  int group_;
  SavedTensorOptions options_;
  std::vector<SavedTensor>& out_;
  std::int64_t b_ = step_.local_batch();
  std::int64_t s_ = step_.local_sequence();
  std::int64_t tp_ = step_.mesh.tensor_shares();
};

}  // namespace

Bytes SavedTensor::bytes_per_layer() const {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= dim;
  return Bytes(elements * element_bits(type) / 8) + also;
}

std::int64_t expert_capacity(const StepSpec& step, const MoeSpec& moe) {
  const double balanced =
      static_cast<double>(step.local_sequence() * moe.per_token) / static_cast<double>(moe.experts);
  return std::max<std::int64_t>(static_cast<std::int64_t>(balanced * step.capacity_factor),
                                moe.per_token);
}

std::int64_t expert_rows(const StepSpec& step, const MoeSpec& moe) {
  if (step.dispatch == Dispatch::kCapacity)
    return moe.experts * expert_capacity(step, moe) * step.local_batch();
  double rows = static_cast<double>(step.local_tokens() * moe.per_token);
  if (step.dispatch == Dispatch::kRagged && step.ragged_factor > 0) rows *= step.ragged_factor;
  // Balanced: each local expert has as many.
  const std::int64_t local = moe.experts / step.mesh[MeshAxis::kExpert];
  return std::llround(std::ceil(rows / static_cast<double>(local))) * local;
}

std::vector<SavedTensor> list_saved_tensors(const StepSpec& step, SavedTensorOptions options) {
  std::vector<SavedTensor> tensors;
  for (std::size_t g = 0; g < step.model.groups.size(); ++g)
    GroupLister(step, static_cast<int>(g), options, tensors).list();
  return tensors;
}

SaveChoice choice_of(const StepSpec& step, const SavedTensor& tensor) {
  SaveChoice choice = SaveChoice::kRecompute;
  for (const std::string& name : tensor.names) choice = std::max(choice, choice_of(step, name));
  return choice;
}

SavedBytes count_saved(const StepSpec& step, SavedTensorOptions options) {
  SavedBytes sum;
  for (const SavedTensor& tensor : list_saved_tensors(step, options)) {
    if (!tensor.is_needed) continue;
    const SaveChoice choice = choice_of(step, tensor);
    const std::int64_t layers = step.model.groups[static_cast<std::size_t>(tensor.group)].layers /
                                step.mesh[MeshAxis::kStage];
    if (choice == SaveChoice::kDevice) sum.device += tensor.bytes_per_layer() * layers;
    if (choice == SaveChoice::kHost) sum.host += tensor.bytes_per_layer() * layers;
  }
  return sum;
}

}  // namespace spillway
