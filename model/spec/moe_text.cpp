// The expert part of LayerText. With a fixed capacity (Dispatch::kCapacity) tokens reach their
// places by products with a mask, as in MaxText's dense path; without one rows are sorted by expert
// and products are grouped, taken as balanced.
#include "model/spec/layer_text.h"

namespace spillway {

/// Which experts a token uses, at which places, with what weights.
LayerText::Routing LayerText::route(const HloValue& normed) {
  const MoeSpec& moe = *layers_.moe;
  const std::int64_t e = moe.experts, k = moe.per_token;
  load({"MoeBlock_0/gate/kernel", "MoeBlock_0/gate/bias"});
  Routing routing;
  routing.logits = product(block_, flat(normed), weight("MoeBlock_0/gate/kernel"));
  if (step_.dispatch != Dispatch::kCapacity) {
    HloFusion best(block_, "input_reduce_select_fusion", "kInput");
    const HloValue x = best.unary("exponential", best.in(routing.logits));
    const HloValue all = best.convert(best.reduce(x, {0, 1}), ElementType::kS32);
    const HloValues made =
        best.finish({best.slice(x, 1, 0, k), best.broadcast(all, {expert_rows(step_, moe)}, {})});
    routing.weights = made[0];
    routing.places = made[1];
    return routing;
  }
  HloFusion best(block_, "loop_compare_fusion");
  const HloValue x = best.view(best.in(routing.logits), {b_, s_, e});
  const HloValue chosen =
      best.finish(best.convert(best.broadcast(x, {b_, s_, k, e}, {0, 1, 3}), ElementType::kPred));
  HloFusion count(block_, "loop_multiply_reduce_fusion");
  const HloValue ones = count.convert(count.in(chosen), ElementType::kS32);
  const HloValue sum = count.reduce(ones, {2});
  const HloValues places = count.finish({sum, count.unary("negate", sum)});
  routing.places = places[0];
  HloValue weights_in = routing.logits;
  if (moe.gate_bias && !moe.gate_bias_is_trained) weights_in = gather_routing(routing, k, e);
  HloFusion share(block_, "loop_multiply_fusion");
  routing.weights =
      share.finish(share.binary("multiply", share.view(share.in(weights_in), {b_, s_, e}),
                                share.convert(share.in(places[1]), type_)));
  HloFusion spread(block_, "loop_slice_fusion");
  const std::int64_t c = expert_capacity(step_, moe);
  const HloValue at = spread.broadcast(spread.in(routing.places), {b_, s_, e, c}, {0, 1, 2});
  const HloValue is = spread.select_equal(at, spread.iota(ElementType::kS32, {b_, s_, e, c}, 3));
  const HloValue weight = spread.broadcast(spread.in(routing.weights), {b_, s_, e, c}, {0, 1, 2});
  routing.mask = block_.view(
      spread.finish(spread.binary("multiply", weight, spread.convert(is, type_))), {b_, s_, e * c});
  return routing;
}

/// Where a bias that is not trained takes part in choosing, the weights are looked up by index. XLA
/// partitions that by gathering all devices' indices, and counts over the global batch.
HloValue LayerText::gather_routing(Routing& routing, std::int64_t k, std::int64_t e) {
  const HloValue& logits = routing.logits;
  std::vector<MeshAxis> axes;
  for (const MeshAxis axis : {MeshAxis::kData, MeshAxis::kFsdp, MeshAxis::kExpert})
    if (step_.mesh[axis] > 1) axes.push_back(axis);
  const std::int64_t all = b_ * group_size(step_.mesh, axes);
  HloFusion index(block_, "input_concatenate_fusion", "kInput");
  const HloValue x = index.slice(index.view(index.in(logits), {b_, s_, e}), 2, 0, k);
  const HloValue indices =
      index.finish(index.broadcast(index.convert(x, ElementType::kS32), {b_, s_, k, 3}, {0, 1, 2}));
  const HloValue everywhere = all_gather(block_, step_.mesh, axes, {indices}, {0}).front();
  HloFusion scatter(block_, "input_scatter_fusion", "kInput");
  const HloValue reduced = scatter.reduce(scatter.in(everywhere), {2, 3});
  const HloValue counts = scatter.finish(
      scatter.broadcast(scatter.convert(reduced, ElementType::kU32), {all, s_, e}, {0, 1}));
  routing.counts = counts;
  HloFusion pick(block_, "loop_multiply_select_fusion");
  const HloValue mine = pick.slice(pick.in(counts), 0, 0, b_);
  return pick.finish(
      pick.binary("multiply", pick.convert(mine, type_), pick.view(pick.in(logits), {b_, s_, e})));
}

/// The rows of all experts, from tokens.
HloValue LayerText::to_experts(const HloValue& value, const Routing& routing) {
  const MoeSpec& moe = *layers_.moe;
  if (step_.dispatch == Dispatch::kCapacity) {
    const std::int64_t c = expert_capacity(step_, moe);
    const HloValue placed = product(block_, routing.mask, block_.view(value, {b_, s_, d_}),
                                    {.a_dim = 1, .b_dim = 1, .batch = 1});  // [b, E c, d]
    HloFusion order(block_, "input_transpose_fusion", "kInput");
    const HloValue x = order.view(order.in(placed), {b_, moe.experts, c, d_});
    return block_.view(order.finish(order.transpose(x, {1, 0, 2, 3})), {moe.experts, b_ * c, d_});
  }
  HloFusion gather(block_, "loop_gather_fusion");
  const HloValue rows =
      gather.finish(gather.rows(gather.in(flat(value)), gather.in(routing.places)));
  return group_rows(all_to_all(block_, step_.mesh, {MeshAxis::kExpert}, rows));
}

/// Rows by local expert; balanced, so that each has as many.
HloValue LayerText::group_rows(const HloValue& rows) {
  const std::int64_t local = layers_.moe->experts / step_.mesh[MeshAxis::kExpert];
  return block_.view(rows, {local, rows.array.dims[0] / local, rows.array.dims[1]});
}

HloValue LayerText::expert_weight(const std::string& path) {
  load({path});
  return weight(path);
}

HloValue LayerText::experts(const HloValue& normed, const HloValues& residuals) {
  const MoeSpec& moe = *layers_.moe;
  const std::string path = "MoeBlock_0/";
  const Routing routing = route(normed);
  const HloValue rows = to_experts(normed, routing);
  const HloValue w0 = expert_weight(path + "wi_0");
  block_.set_source("moe_mlpwi_0");
  const HloValue gate = product(block_, rows, w0, {.a_dim = 2, .b_dim = 1, .batch = 1});
  save("moe_mlpwi_0", gate);
  const HloValue w1 = expert_weight(path + "wi_1");
  block_.set_source("moe_mlpwi_1");
  const HloValue up = product(block_, rows, w1, {.a_dim = 2, .b_dim = 1, .batch = 1});
  save("moe_mlpwi_1", up);
  block_.set_source("");
  HloFusion fusion(block_, "loop_multiply_fusion");
  const HloValue g = fusion.in(gate);
  const HloValue hidden = fusion.finish(fusion.binary(
      "multiply", fusion.binary("multiply", g, fusion.unary("logistic", g)), fusion.in(up)));
  const HloValue wo = expert_weight(path + "wo");
  block_.set_source("moe_mlpwo");
  const HloValue out = product(block_, hidden, wo, {.a_dim = 2, .b_dim = 1, .batch = 1});
  save("moe_mlpwo", out);
  block_.set_source("");
  const HloValue combined = from_experts(out, routing);
  HloValues parts = residuals;
  parts.push_back(combined);
  if (moe.shared > 0) parts.push_back(mlp(normed, "shared_experts", {}));
  HloFusion add(block_, "loop_add_fusion");
  HloValue sum = add.in(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i)
    sum = add.binary("add", sum, add.view(add.in(parts[i]), sum.array.dims));
  // Saved as the layer's stack has it.
  for (const SavedTensor& tensor : tensors_)
    if (const auto it = saved_.find(tensor.names.back());
        it != saved_.end() && tensor.names.back().starts_with("moe_"))
      it->second = block_.view(it->second, tensor.dims);
  return add.finish(sum);
}

/// Rows back to their tokens, weighted and summed.
HloValue LayerText::from_experts(const HloValue& rows, const Routing& routing) {
  if (step_.dispatch == Dispatch::kCapacity) {
    const MoeSpec& moe = *layers_.moe;
    const std::int64_t places = expert_capacity(step_, moe);
    HloFusion order(block_, "loop_transpose_fusion");
    const HloValue x = order.view(order.in(rows), {moe.experts, b_, places, d_});
    const HloValue placed =
        block_.view(order.finish(order.transpose(x, {1, 0, 2, 3})), {b_, moe.experts * places, d_});
    return product(block_, routing.mask, placed, {.a_dim = 2, .b_dim = 1, .batch = 1});
  }
  const std::int64_t count = element_count(rows.array) / d_;
  const HloValue sent =
      all_to_all(block_, step_.mesh, {MeshAxis::kExpert}, block_.view(rows, {count, d_}));
  const std::int64_t k = layers_.moe->per_token;
  HloFusion sum(block_, "input_reduce_fusion", "kInput");
  const HloValue places = sum.slice(sum.in(routing.places), 0, 0, t_ * k);
  const HloValue x = sum.view(sum.rows(sum.in(sent), places), {t_, k, d_});
  const HloValue share = sum.broadcast(sum.in(routing.weights), x.array.dims, {0, 1});
  return shaped(sum.finish(sum.reduce(sum.binary("multiply", x, share), {1})));
}

/// The gradient towards the normalised input, and those of all weights here. Router and dispatch
/// run again, as neither has a name.
HloValue LayerText::experts_backward(const HloValue& gradient, const HloValue& normed) {
  const MoeSpec& moe = *layers_.moe;
  const std::string path = "MoeBlock_0/";
  const bool places = step_.dispatch == Dispatch::kCapacity;
  const Routing routing = route(normed);
  const HloValue dy = block_.view(gather_features(gradient), {b_, s_, d_});
  // The router's gradient, from what the experts made.
  HloValue dweights;
  if (places) {
    const std::int64_t c = expert_capacity(step_, moe);
    HloFusion row(block_, "loop_dynamic_slice_fusion");
    const HloValue made = row.finish(row.row(row.in(stack("moe_mlpwo")), row.in(index_), last_));
    const HloValue dmask = product(block_, dy, block_.view(made, {b_, moe.experts * c, d_}),
                                   {.a_dim = 2, .b_dim = 2, .batch = 1});
    HloFusion sum(block_, "input_reduce_fusion", "kInput");
    const HloValue x = sum.view(sum.in(dmask), {b_, s_, moe.experts, c});
    const HloValue at = sum.convert(sum.in(routing.places), type_);
    dweights = sum.finish(sum.binary("multiply", sum.reduce(x, {3}), at));
  }
  HloValue drows;
  if (places) {
    drows = to_experts(dy, routing);
  } else {
    HloFusion spread(block_, "input_multiply_reduce_fusion", "kInput");
    const HloValue wide =
        spread.rows(spread.view(spread.in(dy), {t_, d_}), spread.in(routing.places));
    const HloValue made = read(spread, stack("moe_mlpwo"), wide.array.dims);
    const HloValues both =
        spread.finish({wide, spread.reduce(spread.binary("multiply", made, wide), {0, 1})});
    drows = group_rows(all_to_all(block_, step_.mesh, {MeshAxis::kExpert}, both[0]));
    HloFusion widen(block_, "loop_multiply_fusion");
    dweights = widen.finish(
        widen.binary("multiply", widen.in(routing.logits),
                     widen.broadcast(widen.in(both[1]), routing.logits.array.dims, {})));
  }
  const HloValue wo = expert_weight(path + "wo");
  const HloValue dh = product(block_, drows, wo, {.a_dim = 2, .b_dim = 2, .batch = 1});
  HloFusion fusion(block_, "loop_add_multiply_fusion");
  const HloValue dhidden = fusion.in(dh);
  const HloValue gate = read(fusion, stack("moe_mlpwi_0"), dh.array.dims);
  const HloValue up = read(fusion, stack("moe_mlpwi_1"), dh.array.dims);
  const HloValue sigmoid = fusion.unary("logistic", gate);
  const HloValue activated = fusion.binary("multiply", gate, sigmoid);
  const HloValue dactivated = fusion.binary("multiply", dhidden, up);
  const HloValues made = fusion.finish({fusion.binary("multiply", dactivated, sigmoid),
                                        fusion.binary("multiply", dhidden, activated),
                                        fusion.binary("multiply", activated, up)});
  const HloValue w1 = expert_weight(path + "wi_1");
  HloValue dx = product(block_, made[1], w1, {.a_dim = 2, .b_dim = 2, .batch = 1});
  const HloValue w0 = expert_weight(path + "wi_0");
  dx = product(block_, made[0], w0, {.a_dim = 2, .b_dim = 2, .batch = 1, .added = {dx}});
  const HloValue rows = to_experts(normed, routing);
  const ProductOptions over_rows{.a_dim = 1, .b_dim = 1, .batch = 1};
  set_gradient(path + "wi_0", product(block_, rows, made[0], over_rows));
  set_gradient(path + "wi_1", product(block_, rows, made[1], over_rows));
  set_gradient(path + "wo", product(block_, made[2], drows, over_rows));
  const HloValue back = from_experts(dx, routing);
  HloFusion slope(block_, "loop_multiply_fusion");
  HloValue through =
      slope.binary("multiply", slope.view(slope.in(dweights), routing.logits.array.dims),
                   slope.in(routing.logits));
  if (!routing.counts.ref.empty()) {  // where the lookup's gradient goes
    const HloValue mine = slope.slice(slope.in(routing.counts), 0, 0, b_);
    through = slope.binary("multiply", through,
                           slope.view(slope.convert(mine, type_), through.array.dims));
  }
  const HloValue dlogits = slope.finish(through);
  set_gradient(path + "gate/kernel", weight_gradient(normed, dlogits));
  bias_gradient(path + "gate", dlogits);
  HloValues added = {flat(back)};
  if (moe.shared > 0) {
    added = {mlp_backward(dy, "shared_experts", added)};
    mlp_weight_gradients(normed, dy, "shared_experts");
  }
  return product(block_, dlogits, weight(path + "gate/kernel"), {.b_dim = 1, .added = added});
}

}  // namespace spillway
