// The feed-forward part of LayerText: gated or not, dense or of experts that every token uses.
#include "model/spec/layer_text.h"

namespace spillway {
namespace {

/// Gated: silu(gate) * up; else the activation of the one input.
HloValue activate(HloFusion& fusion, const HloValue& gate, const HloValue* up) {
  const HloValue activated = fusion.binary("multiply", gate, fusion.unary("logistic", gate));
  return up ? fusion.binary("multiply", activated, *up) : activated;
}

}  // namespace

/// FP4 is for the feed-forward part's products alone; attention stays as it is.
void LayerText::quantise_feed_forward(bool begins) {
  if (step_.precision.quantization != Quantization::kNvfp4) return;
  block_.set_product_type(begins ? std::optional(ElementType::kF4E2M1FN) : std::nullopt);
}

HloValue LayerText::mlp(const HloValue& normed, const std::string& path,
                        const HloValues& residuals) {
  const bool gated = model_.gated;
  const std::string first = path + (gated ? "/wi_0/kernel" : "/wi/kernel");
  const std::string gate_name = gated ? "mlpwi_0" : "mlpwi";
  load({first, path + "/wi_1/kernel"});
  load({path + "/wo/kernel"});
  block_.set_source(gate_name);
  const HloValue gate = product(block_, flat(normed), weight(first));
  save(gate_name, block_.view(gate, {b_, s_, gate.array.dims[1]}));
  HloValue up;
  if (gated) {
    block_.set_source("mlpwi_1");
    up = product(block_, flat(normed), weight(path + "/wi_1/kernel"));
    save("mlpwi_1", block_.view(up, {b_, s_, up.array.dims[1]}));
  }
  block_.set_source("");
  HloFusion fusion(block_, "loop_multiply_fusion");
  const HloValue gate_in = fusion.in(gate);
  HloValue up_in;
  if (gated) up_in = fusion.in(up);
  const HloValue hidden = fusion.finish(activate(fusion, gate_in, gated ? &up_in : nullptr));
  block_.set_source("mlpwo");
  HloValue out = product(block_, hidden, weight(path + "/wo/kernel"));
  out = shaped(scatter_features(out));
  block_.set_source("");
  save("mlpwo", out);
  if (residuals.empty()) return out;
  HloValues parts = residuals;
  parts.push_back(has_post_norms() ? normalise({out}, "post_ffw_norm") : out);
  HloFusion add(block_, "loop_add_fusion");
  HloValue sum = add.in(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i)
    sum = add.binary("add", sum, add.view(add.in(parts[i]), sum.array.dims));
  return add.finish(sum);
}

/// The gradient towards the normalised input, `added` to it. Gradients of the weights follow once
/// that input is there again.
HloValue LayerText::mlp_backward(const HloValue& gradient, const std::string& path,
                                 const HloValues& added) {
  const bool gated = model_.gated;
  const std::string first = path + (gated ? "/wi_0/kernel" : "/wi/kernel");
  load({path + "/wo/kernel"});
  const HloValue dh = product(block_, flat(gradient), weight(path + "/wo/kernel"), {.b_dim = 1});
  HloFusion fusion(block_, "loop_add_multiply_fusion");
  const HloValue dhidden = fusion.in(dh);
  const HloValue gate = read(fusion, stack(gated ? "mlpwi_0" : "mlpwi"), dh.array.dims);
  HloValue up;
  if (gated) up = read(fusion, stack("mlpwi_1"), dh.array.dims);
  const HloValue sigmoid = fusion.unary("logistic", gate);
  const HloValue slope = fusion.binary("add", sigmoid, fusion.binary("multiply", gate, sigmoid));
  HloValue dgate = fusion.binary("multiply", dhidden, slope);
  if (gated) dgate = fusion.binary("multiply", dgate, up);
  const HloValue activated = fusion.binary("multiply", gate, sigmoid);
  HloValues results = {dgate};
  if (gated) results.push_back(fusion.binary("multiply", dhidden, activated));
  results.push_back(gated ? fusion.binary("multiply", activated, up) : activated);
  const HloValues made = fusion.finish(results);
  waiting_[path] = {made[0], gated ? made[1] : HloValue(), made.back()};
  load({first, path + "/wi_1/kernel"});
  HloValue back = product(block_, made[0], weight(first), {.b_dim = 1, .added = added});
  if (gated)
    back = product(block_, made[1], weight(path + "/wi_1/kernel"), {.b_dim = 1, .added = {back}});
  return back;
}

void LayerText::mlp_weight_gradients(const HloValue& normed, const HloValue& gradient,
                                     const std::string& path) {
  const Three& inner = waiting_.at(path);
  set_gradient(path + "/wo/kernel", weight_gradient(inner.third, gradient));
  bias_gradient(path + "/wo", gradient);
  const std::string first = path + (model_.gated ? "/wi_0" : "/wi");
  set_gradient(first + "/kernel", weight_gradient(normed, inner.first));
  bias_gradient(first, inner.first);
  if (!model_.gated) return;
  set_gradient(path + "/wi_1/kernel", weight_gradient(normed, inner.second));
  bias_gradient(path + "/wi_1", inner.second);
}

}  // namespace spillway
