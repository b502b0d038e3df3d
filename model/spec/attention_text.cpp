// The attention part of LayerText: projections plain or latent, rotation by position, and the
// library's kernel in both directions.
#include <algorithm>

#include "model/spec/layer_text.h"

namespace spillway {
namespace {

std::string kernel_config(const StepSpec& step, const AttentionSpec& a, std::int64_t batch,
                          std::int64_t heads, std::int64_t sequence, bool backward) {
  const std::string window = std::to_string(a.window_period == 1 ? a.window : 0);
  const auto dims = [](const char* lb, const char* lc, const char* rb, const char* rc) {
    return std::string("{\"lhs_batch_dimensions\":[\"0\",\"") + lb +
           "\"],\"lhs_contracting_dimensions\":[\"" + lc +
           "\"],\"rhs_batch_dimensions\":[\"0\",\"" + rb +
           "\"],\"rhs_contracting_dimensions\":[\"" + rc + "\"]}";
  };
  std::string products;
  if (backward)
    products = "\"bmm1_grad_gemm1_dot_dimension_numbers\":" + dims("1", "2", "2", "1") +
               ",\"bmm1_grad_gemm2_dot_dimension_numbers\":" + dims("1", "3", "2", "1") +
               ",\"bmm2_grad_gemm1_dot_dimension_numbers\":" + dims("1", "2", "2", "1") +
               ",\"bmm2_grad_gemm2_dot_dimension_numbers\":" + dims("2", "3", "2", "3");
  else
    products = "\"bmm1_dot_dimension_numbers\":" + dims("2", "3", "2", "3") +
               ",\"bmm2_dot_dimension_numbers\":" + dims("1", "3", "2", "1");
  return ", backend_config={\"cudnn_fmha_backend_config\":{" + products +
         ",\"dropout_rate\":0.0,\"fmha_scale\":1.0,\"intermediate_tensor_shape\":{\"dimensions\":["
         "\"" +
         std::to_string(batch) + "\",\"" + std::to_string(heads) + "\",\"" +
         std::to_string(sequence) + "\",\"" + std::to_string(step.sequence) +
         "\"],\"element_type\":\"BF16\"},\"is_flash_attention\":true,\"mask_type\":\"CAUSAL\","
         "\"sliding_window_length\":" +
         window + "}}";
}

}  // namespace

/// Sines and cosines of the tokens' places.
HloValues LayerText::turns(std::int64_t dim) {
  HloFusion fusion(block_, "loop_cosine_sine_fusion");
  const HloValue place = fusion.convert(fusion.in(positions_), ElementType::kF32);
  const HloValue angle = fusion.broadcast(place, {b_, s_, dim}, {0, 1});
  return fusion.finish(HloValues{fusion.unary("cosine", angle), fusion.unary("sine", angle)});
}

/// Normed where the model does, then turned by its place.
HloValue LayerText::turn(const HloValue& value, const HloValues& angles, std::int64_t heads,
                         std::int64_t dim, const std::string& norm) {
  const std::vector<std::int64_t> dims = {b_, s_, heads, dim};
  HloFusion fusion(block_, "loop_convert_fusion");
  HloValue x = fusion.convert(fusion.view(fusion.in(value), dims), ElementType::kF32);
  if (!norm.empty()) {
    const HloValue sum = fusion.reduce(fusion.binary("multiply", x, x), {3});
    x = fusion.binary("multiply", x, fusion.broadcast(fusion.unary("rsqrt", sum), dims, {0, 1, 2}));
    const HloValue factor = fusion.convert(fusion.in(scale(norm)), ElementType::kF32);
    if (factor.array.dims.back() == dim)
      x = fusion.binary("multiply", x, fusion.broadcast(factor, dims, {3}));
  }
  const HloValue cosine = fusion.broadcast(fusion.in(angles[0]), dims, {0, 1, 3});
  const HloValue sine = fusion.broadcast(fusion.in(angles[1]), dims, {0, 1, 3});
  const HloValue turned = fusion.binary("add", fusion.binary("multiply", x, cosine),
                                        fusion.binary("multiply", x, sine));
  return fusion.finish(fusion.convert(turned, type_));
}

HloValue LayerText::turn_back(const HloValue& gradient, const HloValues& angles,
                              const HloValue& before, const std::string& norm, std::int64_t heads,
                              std::int64_t dim) {
  const HloValue turned = turn(gradient, angles, heads, dim, "");
  if (norm.empty()) return turned;
  return norm_backward({block_.view(before, {b_, s_, heads, dim})}, turned, norm, {}, nullptr);
}

/// {context [b, heads, s, value], statistics}.
HloValues LayerText::attention(const HloValue& q, const HloValue& k, const HloValue& v) {
  const AttentionSpec& a = layers_.attention;
  const std::int64_t heads = a.query_heads / tp_;
  const HloArray context{type_, {b_, heads, s_, a.value_dim}};
  if (step_.attention == AttentionKernel::kFlash) {
    const std::string text = "custom-call(" + join_refs({q, k, v}) +
                             "), custom_call_target=\"__cudnn$fmhaSoftmax\"" +
                             kernel_config(step_, a, b_, heads, s_, false);
    return block_.add_tuple(
        "dot_product_attention_fwd",
        {context, {ElementType::kF32, {b_, heads, s_}}, {ElementType::kU8, {0}}}, text);
  }
  // Plain: scores are an array of their own. One key/value head serves several query heads.
  const std::int64_t group = heads / (a.kv_heads / tp_);
  HloFusion keys(block_, "loop_broadcast_fusion");
  const std::int64_t kv = heads / group;
  const HloValue wide = keys.broadcast(keys.view(keys.in(k), {b_, s_, kv, a.head_dim}),
                                       {b_, s_, kv, group, a.head_dim}, {0, 1, 2, 4});
  const HloValue k_heads = block_.view(keys.finish(wide), {b_ * heads, s_, a.head_dim});
  HloFusion values(block_, "loop_broadcast_fusion");
  const HloValue wide_v = values.broadcast(values.view(values.in(v), {b_, s_, kv, a.value_dim}),
                                           {b_, s_, kv, group, a.value_dim}, {0, 1, 2, 4});
  const HloValue v_heads = block_.view(values.finish(wide_v), {b_ * heads, s_, a.value_dim});
  const HloValue scores = product(block_, block_.view(q, {b_ * heads, s_, a.head_dim}), k_heads,
                                  {.a_dim = 2, .b_dim = 2, .batch = 1});
  HloFusion softmax(block_, "input_exponential_reduce_fusion", "kInput");
  const HloValue x = softmax.unary("exponential", softmax.in(scores));
  const HloValue sum = softmax.reduce(softmax.convert(x, ElementType::kF32), {2});
  const HloValue weights = softmax.binary(
      "divide", x, softmax.broadcast(softmax.convert(sum, type_), scores.array.dims, {0, 1}));
  const HloValue probabilities = softmax.finish(weights);
  const HloValue out =
      product(block_, probabilities, v_heads, {.a_dim = 2, .b_dim = 1, .batch = 1});
  return {block_.view(out, context.dims), probabilities, k_heads, v_heads};
}

/// Gradients of q, k and v.
HloValues LayerText::attention_backward(const HloValue& q, const HloValue& k, const HloValue& v,
                                        const HloValues& forward, const HloValue& gradient) {
  const AttentionSpec& a = layers_.attention;
  const std::int64_t heads = a.query_heads / tp_, kv = a.kv_heads / tp_;
  if (step_.attention == AttentionKernel::kFlash) {
    const HloValue context = block_.view(forward[0], {b_, s_, heads, a.value_dim});
    const std::string text = "custom-call(" + join_refs({q, k, v, forward[1], gradient, context}) +
                             "), custom_call_target=\"__cudnn$fmhaSoftmaxBackward\"" +
                             kernel_config(step_, a, b_, heads, s_, true);
    HloValues all = block_.add_tuple("dot_product_attention_bwd",
                                     {{type_, {b_, heads, s_, a.head_dim}},
                                      {type_, {b_, kv, s_, a.head_dim}},
                                      {type_, {b_, kv, s_, a.value_dim}},
                                      {ElementType::kU8, {0}}},
                                     text);
    all.pop_back();
    return all;
  }
  const HloValue &probabilities = forward[1], &k_heads = forward[2], &v_heads = forward[3];
  const HloValue dout = block_.view(gradient, {b_ * heads, s_, a.value_dim});
  const HloValue dv = product(block_, probabilities, dout, {.a_dim = 1, .b_dim = 1, .batch = 1});
  const HloValue dp = product(block_, dout, v_heads, {.a_dim = 2, .b_dim = 2, .batch = 1});
  HloFusion fusion(block_, "input_multiply_reduce_fusion", "kInput");
  const HloValue p = fusion.in(probabilities), dpin = fusion.in(dp);
  const HloValue sum = fusion.reduce(fusion.binary("multiply", p, dpin), {2});
  const HloValue ds = fusion.finish(
      fusion.binary("multiply", p,
                    fusion.binary("subtract", dpin, fusion.broadcast(sum, dp.array.dims, {0, 1}))));
  const HloValue dq = product(block_, ds, k_heads, {.a_dim = 2, .b_dim = 1, .batch = 1});
  const HloValue dk = product(block_, ds, block_.view(q, {b_ * heads, s_, a.head_dim}),
                              {.a_dim = 1, .b_dim = 1, .batch = 1});
  const auto fold = [&](const HloValue& value, std::int64_t dim) {
    if (kv == heads) return value;
    HloFusion add(block_, "input_reduce_fusion", "kInput");
    const HloValue x = add.view(add.in(value), {b_, kv, heads / kv, s_, dim});
    return add.finish(add.reduce(x, {2}));
  };
  return {dq, fold(dk, a.head_dim), fold(dv, a.value_dim)};
}

void LayerText::project(const HloValue& normed) {
  const AttentionSpec& a = layers_.attention;
  const std::string path = "self_attention/";
  const std::int64_t heads = a.query_heads / tp_, kv = a.kv_heads / tp_;
  load({path + "query/kernel", path + "key/kernel", path + "value/kernel",
        path + "qkv_proj/kernel"});
  const HloValues angles = turns(a.head_dim);
  const auto columns = [&](const HloValue& w, std::int64_t count) {
    return block_.view(w, {d_, count});
  };
  HloValue q, k, v;
  if (a.fused_projection) {
    const HloValue all = product(block_, flat(normed),
                                 columns(weight(path + "qkv_proj/kernel"), 3 * heads * a.head_dim));
    const auto part = [&](std::int64_t which) {
      HloFusion fusion(block_, "loop_slice_fusion");
      const std::int64_t width = heads * a.head_dim;
      return fusion.finish(fusion.slice(fusion.in(all), 1, which * width, (which + 1) * width));
    };
    q = part(0), k = part(1), v = part(2);
  } else {
    q = product(block_, flat(normed), columns(weight(path + "query/kernel"), heads * a.head_dim));
    k = product(block_, flat(normed), columns(weight(path + "key/kernel"), kv * a.head_dim));
    const bool own_values = !a.keys_are_values;
    block_.set_source("value_proj");
    v = own_values ? product(block_, flat(normed),
                             columns(weight(path + "value/kernel"), kv * a.value_dim))
                   : k;
    block_.set_source("");
  }
  const bool norms = a.query_key_norm && !a.norm_over_heads;
  block_.set_source("query_proj");
  save("query_proj", turn(q, angles, heads, a.head_dim, norms ? path + "query_norm" : ""));
  block_.set_source("key_proj");
  save("key_proj", turn(k, angles, kv, a.head_dim, norms ? path + "key_norm" : ""));
  block_.set_source("");
  save("value_proj", block_.view(v, {b_, s_, kv, a.value_dim}));
}

void LayerText::project_latent(const HloValue& normed) {
  const AttentionSpec& a = layers_.attention;
  const AttentionSpec::Latent& latent = *a.latent;
  const std::string path = "self_attention/";
  const std::int64_t heads = a.query_heads / tp_;
  load({path + "wq_a/kernel", path + "query/kernel", path + "wkv_a/kernel"});
  HloValue q;
  if (latent.query_rank > 0) {
    block_.set_source("query_wa_proj");
    const HloValue down = shaped(product(block_, flat(normed), weight(path + "wq_a/kernel")));
    save("query_wa_proj", down);
    block_.set_source("mla_q");
    const HloValue rank = save("mla_q", normalise({down}, path + "q_norm"));
    block_.set_source("");
    load({path + "wq_b/kernel"});
    q = product(block_, flat(rank),
                block_.view(weight(path + "wq_b/kernel"), {latent.query_rank, heads * a.head_dim}));
  } else {
    q = product(block_, flat(normed),
                block_.view(weight(path + "query/kernel"), {d_, heads * a.head_dim}));
  }
  block_.set_source("kv_wa_proj");
  const HloValue down = shaped(product(block_, flat(normed), weight(path + "wkv_a/kernel")));
  save("kv_wa_proj", down);
  block_.set_source("mla_kv");
  HloFusion cut(block_, "loop_slice_fusion");
  const HloValue content = cut.finish(cut.slice(cut.in(down), 2, 0, latent.kv_rank));
  const HloValue rank = save("mla_kv", normalise({content}, path + "kv_norm"));
  block_.set_source("");
  load({path + "wkv_b/kernel"});
  const std::int64_t width = latent.content_dim + a.value_dim;
  const HloValue up =
      product(block_, flat(rank),
              block_.view(weight(path + "wkv_b/kernel"), {latent.kv_rank, heads * width}));
  const HloValues angles = turns(a.head_dim);
  block_.set_source("query_proj");
  save("query_proj", turn(q, angles, heads, a.head_dim, ""));
  block_.set_source("key_proj");
  HloFusion join(block_, "input_concatenate_fusion", "kInput");
  const HloValue up_in = join.view(join.in(up), {b_, s_, heads, width});
  const HloValue place =
      join.slice(join.in(down), 2, latent.kv_rank, latent.kv_rank + latent.position_dim);
  const HloValue key =
      join.concatenate({join.slice(up_in, 3, 0, latent.content_dim),
                        join.broadcast(place, {b_, s_, heads, latent.position_dim}, {0, 1, 3})},
                       3);
  save("key_proj", join.finish(key));
  block_.set_source("value_proj");
  HloFusion values(block_, "loop_slice_fusion");
  save("value_proj", values.finish(values.slice(values.view(values.in(up), {b_, s_, heads, width}),
                                                3, latent.content_dim, width)));
  block_.set_source("");
}

HloValue LayerText::attend(const HloValue& normed) {
  const AttentionSpec& a = layers_.attention;
  const std::int64_t heads = a.query_heads / tp_;
  if (a.latent)
    project_latent(normed);
  else
    project(normed);
  block_.set_source("context");
  const HloValue made =
      attention(saved_.at("query_proj"), saved_.at("key_proj"), saved_.at("value_proj")).front();
  const HloValue context = save("context", block_.view(made, {b_, s_, heads, a.value_dim}));
  block_.set_source("");
  const std::string path = "self_attention/out/kernel";
  load({path});
  block_.set_source("out_proj");
  const HloValue out =
      product(block_, flat(context), block_.view(weight(path), {heads * a.value_dim, d_}));
  const HloValue result = save("out_proj", shaped(scatter_features(out)));
  block_.set_source("");
  return result;
}

/// The gradient towards the layer's input. `gradient` has all features, `residual` this device's.
HloValue LayerText::attend_backward(const HloValue& gradient, const HloValue& residual) {
  const AttentionSpec& a = layers_.attention;
  const std::int64_t heads = a.query_heads / tp_;
  const std::string out = "self_attention/out/kernel";
  load({out});
  const HloValue q = saved_row("query_proj"), k = saved_row("key_proj"),
                 v = saved_row("value_proj");
  const HloValues forward = attention(q, k, v);
  const HloValue dcontext =
      block_.view(product(block_, flat(gradient),
                          block_.view(weight(out), {heads * a.value_dim, d_}), {.b_dim = 1}),
                  {b_, s_, heads, a.value_dim});
  const HloValues gradients = attention_backward(q, k, v, forward, dcontext);
  HloValue normed, back;
  HloValue result;
  const std::string norm = "pre_self_attention_layer_norm";
  const HloValues input = {stack("decoder_layer_input")};
  if (a.latent) {
    back = project_latent_backward(gradients);
    HloValue local;
    result = norm_backward(input, scatter_features(shaped(back)), norm, {residual}, &local);
    normed = gather_features(local);
    latent_weight_gradients(normed);
  } else {
    if (a.query_key_norm) normed = gather_features(normalise(input, norm));
    back = project_backward(gradients, normed);
    HloValue local;
    result = norm_backward(input, scatter_features(shaped(back)), norm, {residual}, &local);
    project_weight_gradients(gather_features(local));
  }
  const HloValue context = saved_row("context");
  set_gradient(out, weight_gradient(context, gradient));
  bias_gradient("self_attention/out", gradient);
  return result;
}

HloValue LayerText::project_backward(const HloValues& gradients, const HloValue& normed) {
  const AttentionSpec& a = layers_.attention;
  const std::string path = "self_attention/";
  const std::int64_t heads = a.query_heads / tp_, kv = a.kv_heads / tp_;
  const HloValues angles = turns(a.head_dim);
  load({path + "query/kernel", path + "key/kernel", path + "value/kernel",
        path + "qkv_proj/kernel"});
  HloValue q, k;  // before the norm: made again
  const bool norms = a.query_key_norm && !a.norm_over_heads;
  if (norms) {
    q = product(block_, flat(normed),
                block_.view(weight(path + "query/kernel"), {d_, heads * a.head_dim}));
    k = product(block_, flat(normed),
                block_.view(weight(path + "key/kernel"), {d_, kv * a.head_dim}));
  }
  const HloValue dq =
      flat(turn_back(gradients[0], angles, q, norms ? path + "query_norm" : "", heads, a.head_dim));
  HloValue dk =
      flat(turn_back(gradients[1], angles, k, norms ? path + "key_norm" : "", kv, a.head_dim));
  const HloValue dv = flat(gradients[2]);
  if (a.fused_projection) {
    HloFusion join(block_, "input_concatenate_fusion", "kInput");
    const HloValue all = join.finish(join.concatenate({join.in(dq), join.in(dk), join.in(dv)}, 1));
    waiting_["qkv"] = {all, all, all};
    return product(block_, all,
                   block_.view(weight(path + "qkv_proj/kernel"), {d_, 3 * heads * a.head_dim}),
                   {.b_dim = 1});
  }
  if (a.keys_are_values) {
    HloFusion add(block_, "loop_add_fusion");
    dk = add.finish(add.binary("add", add.in(dk), add.in(dv)));
  }
  waiting_["qkv"] = {dq, dk, dv};
  HloValue back =
      product(block_, dq, block_.view(weight(path + "query/kernel"), {d_, heads * a.head_dim}),
              {.b_dim = 1});
  back = product(block_, dk, block_.view(weight(path + "key/kernel"), {d_, kv * a.head_dim}),
                 {.b_dim = 1, .added = {back}});
  if (a.keys_are_values) return back;
  return product(block_, dv, block_.view(weight(path + "value/kernel"), {d_, kv * a.value_dim}),
                 {.b_dim = 1, .added = {back}});
}

void LayerText::project_weight_gradients(const HloValue& normed) {
  const std::string path = "self_attention/";
  const Three& g = waiting_.at("qkv");
  if (layers_.attention.fused_projection) {
    set_gradient(path + "qkv_proj/kernel", weight_gradient(normed, g.first));
    bias_gradient(path + "qkv_proj", g.first);
    return;
  }
  set_gradient(path + "query/kernel", weight_gradient(normed, g.first));
  set_gradient(path + "key/kernel", weight_gradient(normed, g.second));
  bias_gradient(path + "query", g.first);
  bias_gradient(path + "key", g.second);
  if (!layers_.attention.keys_are_values) {
    set_gradient(path + "value/kernel", weight_gradient(normed, g.third));
    bias_gradient(path + "value", g.third);
  }
}

HloValue LayerText::project_latent_backward(const HloValues& gradients) {
  const AttentionSpec& a = layers_.attention;
  const AttentionSpec::Latent& latent = *a.latent;
  const std::string path = "self_attention/";
  const std::int64_t heads = a.query_heads / tp_;
  const std::int64_t width = latent.content_dim + a.value_dim;
  const HloValues angles = turns(a.head_dim);
  load({path + "wkv_b/kernel"});
  // Keys and values come from one product; the keys' place is shared by all heads.
  HloFusion join(block_, "input_concatenate_fusion", "kInput");
  const HloValue dkey = join.view(join.in(gradients[1]), {b_, s_, heads, a.head_dim});
  const HloValue dup = flat(
      join.finish(join.concatenate({join.slice(dkey, 3, 0, latent.content_dim),
                                    join.view(join.in(gradients[2]), {b_, s_, heads, a.value_dim})},
                                   3)));
  HloFusion sum(block_, "input_reduce_fusion", "kInput");
  const HloValue dplace =
      sum.finish(sum.reduce(sum.slice(sum.view(sum.in(gradients[1]), {b_, s_, heads, a.head_dim}),
                                      3, latent.content_dim, a.head_dim),
                            {2}));
  const HloValue wkv_b =
      block_.view(weight(path + "wkv_b/kernel"), {latent.kv_rank, heads * width});
  const HloValue drank = shaped(product(block_, dup, wkv_b, {.b_dim = 1}));
  // The rank's part of what was projected, normed.
  HloFusion cut(block_, "loop_slice_fusion");
  const HloValue before = cut.finish(
      cut.slice(read(cut, stack("kv_wa_proj"), {b_, s_, latent.kv_rank + latent.position_dim}), 2,
                0, latent.kv_rank));
  const HloValue dcontent = norm_backward({before}, drank, path + "kv_norm", {}, nullptr);
  HloFusion both(block_, "input_concatenate_fusion", "kInput");
  const HloValue dkv_a =
      flat(both.finish(both.concatenate({both.in(dcontent), both.in(dplace)}, 2)));
  const HloValue mla_kv = saved_row("mla_kv");
  set_gradient(path + "wkv_b/kernel", weight_gradient(mla_kv, dup));
  const HloValue dq = flat(turn(gradients[0], angles, heads, a.head_dim, ""));
  HloValue dq_a;
  load({path + "wq_b/kernel", path + "query/kernel"});
  if (latent.query_rank > 0) {
    const HloValue wq_b =
        block_.view(weight(path + "wq_b/kernel"), {latent.query_rank, heads * a.head_dim});
    const HloValue dlow = shaped(product(block_, dq, wq_b, {.b_dim = 1}));
    dq_a = flat(norm_backward({stack("query_wa_proj")}, dlow, path + "q_norm", {}, nullptr));
    set_gradient(path + "wq_b/kernel", weight_gradient(saved_row("mla_q"), dq));
    load({path + "wq_a/kernel", path + "wkv_a/kernel"});
  } else {
    dq_a = dq;
    load({path + "wkv_a/kernel"});
  }
  waiting_["latent"] = {dq_a, dkv_a, {}};
  const HloValue wq = latent.query_rank > 0
                          ? weight(path + "wq_a/kernel")
                          : block_.view(weight(path + "query/kernel"), {d_, heads * a.head_dim});
  const HloValue back = product(block_, dq_a, wq, {.b_dim = 1});
  return product(block_, dkv_a, weight(path + "wkv_a/kernel"), {.b_dim = 1, .added = {back}});
}

void LayerText::latent_weight_gradients(const HloValue& normed) {
  const std::string path = "self_attention/";
  const Three& g = waiting_.at("latent");
  const bool low = layers_.attention.latent->query_rank > 0;
  set_gradient(path + (low ? "wq_a/kernel" : "query/kernel"), weight_gradient(normed, g.first));
  set_gradient(path + "wkv_a/kernel", weight_gradient(normed, g.second));
}

/// A bias's gradient is the sum over tokens.
void LayerText::bias_gradient(const std::string& path, const HloValue& gradient) {
  const auto found = std::ranges::find(weights_, path + "/bias", &StackedWeight::path);
  if (found == weights_.end()) return;
  HloFusion fusion(block_, "input_reduce_fusion", "kInput");
  const HloValue value = fusion.in(flat(gradient));
  set_gradient(path + "/bias", fusion.finish(fusion.reduce(value, {0})));
}

}  // namespace spillway
