#include "model/spec/loss_text.h"

namespace spillway {

namespace {
constexpr const char* kTable = "token_embedder/embedding";
constexpr const char* kHead = "decoder/logits_dense/kernel";
constexpr const char* kNorm = "decoder/decoder_norm/scale";
constexpr const char* kPositions = "decoder/position_embedder/embedding";
/// XLA reduces long rows in two steps of this many.
constexpr std::int64_t kRow = 256;
}  // namespace

LossText::LossText(const StepSpec& step, const StepTextOptions& options, HloBlock& block,
                   const StepInputs& inputs)
    : step_(step),
      options_(options),
      block_(block),
      inputs_(inputs),
      b_(step.local_batch()),
      s_(step.local_sequence()),
      t_(step.local_tokens()),
      d_(step.model.embed),
      vocabulary_(step.model.vocabulary / step.mesh.tensor_shares()),
      type_(step.precision.activations) {
  for (const MeshAxis axis :
       {MeshAxis::kFsdp, MeshAxis::kFsdpTranspose, MeshAxis::kContext, MeshAxis::kExpert})
    if (step.mesh[axis] > 1) embed_axes_.push_back(axis);
  batch_axes_ = embed_axes_;
  if (step.mesh[MeshAxis::kData] > 1) batch_axes_.insert(batch_axes_.begin(), MeshAxis::kData);
}

/// A weight of the ends in the activations' type, put together.
HloValue LossText::gathered(const std::string& path, std::size_t dim) {
  const HloValue& value = inputs_.states.at(path);
  HloFusion fusion(block_, "wrapped_convert");
  const HloValue in = fusion.in(value);
  const HloValue local =
      value.array.type == type_ ? value : fusion.finish(fusion.convert(in, type_));
  return all_gather(block_, step_.mesh, embed_axes_, {local}, {dim}).front();
}

HloValue LossText::shared(const HloValue& gradient, std::size_t dim) {
  HloValue value = reduce_scatter(block_, step_.mesh, embed_axes_, {gradient}, {dim}).front();
  if (step_.mesh[MeshAxis::kData] > 1)
    value = all_reduce(block_, step_.mesh, {MeshAxis::kData}, value);
  return value;
}

/// Which token of the vocabulary each place has, [tokens, vocabulary]: computed where it is read,
/// or the array that was made once.
HloValue LossText::one_hot(HloFusion& fusion) {
  if (!mask_.ref.empty() && mask_.array.type == ElementType::kPred)
    return fusion.convert(fusion.in(mask_), type_);
  const HloValue at =
      fusion.broadcast(fusion.view(fusion.in(inputs_.tokens), {t_}), {t_, vocabulary_}, {0});
  const HloValue names = mask_.ref.empty() ? fusion.iota(ElementType::kS32, {t_, vocabulary_}, 1)
                                           : fusion.view(fusion.in(mask_), {t_, vocabulary_});
  return fusion.convert(fusion.select_equal(at, names), type_);
}

HloValue LossText::embed() {
  table_ = gathered(kTable, 1);
  HloValue out;
  if (step_.embeds_by_product) {
    if (step_.mesh[MeshAxis::kTensor] > 1) {
      // Each device's part of the vocabulary has its own numbers, in memory.
      HloFusion names(block_, "loop_add_fusion");
      mask_ = names.finish(names.iota(ElementType::kS32, {b_, s_, vocabulary_}, 2));
    } else if (b_ == 1) {
      // Without a dimension to fuse over XLA makes the comparison once.
      HloFusion equal(block_, "loop_compare_fusion");
      const HloValue at =
          equal.broadcast(equal.view(equal.in(inputs_.tokens), {t_}), {t_, vocabulary_}, {0});
      mask_ =
          equal.finish(equal.select_equal(at, equal.iota(ElementType::kS32, {t_, vocabulary_}, 1)));
    }
    HloFusion fusion(block_, "gemm_fusion_dot", "kCustom");
    const HloValue table = fusion.in(table_);
    out = fusion.finish(fusion.dot(one_hot(fusion), table, 1, 0));
  } else {
    HloFusion fusion(block_, "loop_gather_fusion");
    const HloValue table = fusion.in(table_);
    out = fusion.finish(fusion.rows(table, fusion.view(fusion.in(inputs_.tokens), {t_})));
  }
  if (step_.mesh[MeshAxis::kTensor] > 1)
    out = reduce_scatter(block_, step_.mesh, {MeshAxis::kTensor}, {block_.view(out, {b_, s_, d_})},
                         {2})
              .front();
  out = block_.view(out, {b_, s_, element_count(out.array) / t_});
  if (step_.model.trained_positions > 0) {
    const HloValue places = gathered(kPositions, 1);
    HloFusion add(block_, "loop_add_fusion");
    const HloValue rows = add.rows(add.in(places), add.view(add.in(inputs_.positions), {t_}));
    out = block_.view(add.finish(add.binary("add", add.view(add.in(out), {t_, d_}), rows)),
                      {b_, s_, d_});
  }
  return out;
}

LossText::Result LossText::loss(const HloValue& stream) {
  const std::vector<std::int64_t> dims = stream.array.dims;
  const bool split = dims.back() != d_;
  const bool tied = step_.model.tied_head;
  const HloValue head = tied ? table_ : gathered(kHead, 0);
  HloFusion scale_fusion(block_, "wrapped_convert");
  const HloValue scale_in = scale_fusion.in(inputs_.states.at(kNorm));
  const HloValue scale = inputs_.states.at(kNorm).array.type == type_
                             ? inputs_.states.at(kNorm)
                             : scale_fusion.finish(scale_fusion.convert(scale_in, type_));
  HloFusion squares(block_, "input_reduce_fusion", "kInput");
  const HloValue x = squares.convert(squares.in(stream), ElementType::kF32);
  HloValue sum = squares.finish(squares.reduce(squares.binary("multiply", x, x), {2}));
  if (split) sum = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, sum);
  HloFusion root_fusion(block_, "loop_rsqrt_fusion");
  const HloValue root = root_fusion.finish(root_fusion.unary("rsqrt", root_fusion.in(sum)));
  HloFusion norm(block_, "loop_multiply_fusion");
  const HloValue unit = norm.binary("multiply", norm.convert(norm.in(stream), ElementType::kF32),
                                    norm.broadcast(norm.in(root), dims, {0, 1}));
  HloValue normed = norm.finish(norm.binary("multiply", norm.convert(unit, type_),
                                            norm.broadcast(norm.in(scale), dims, {2})));
  if (split) normed = all_gather(block_, step_.mesh, {MeshAxis::kTensor}, {normed}, {2}).front();
  const HloValue flat = block_.view(normed, {t_, d_});
  const HloValue logits =
      product(block_, flat, head, {.b_dim = tied ? std::size_t{1} : std::size_t{0}});

  // The largest, then the sum of exponentials, each in two steps.
  const std::int64_t pieces = vocabulary_ % kRow == 0 ? vocabulary_ / kRow : 1;
  const std::int64_t piece = vocabulary_ / pieces;
  const std::vector<std::int64_t> wide = {t_, vocabulary_};
  HloFusion most(block_, "input_reduce_fusion", "kInput");
  const HloValue all =
      most.view(most.convert(most.in(logits), ElementType::kF32), {t_, pieces, piece});
  const HloValue largest_pieces = most.finish(most.reduce(all, {2}, "maximum"));
  HloFusion most_of(block_, "input_reduce_fusion", "kInput");
  HloValue largest = most_of.finish(most_of.reduce(most_of.in(largest_pieces), {1}, "maximum"));
  const bool splits_vocabulary = step_.mesh.tensor_shares() > 1;
  if (splits_vocabulary) largest = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, largest);
  const auto exponential = [&](HloFusion& fusion) {
    const HloValue l = fusion.convert(fusion.in(logits), ElementType::kF32);
    return fusion.unary(
        "exponential",
        fusion.binary("subtract", l, fusion.broadcast(fusion.in(largest), wide, {0})));
  };
  HloFusion exps(block_, "input_exponential_reduce_fusion", "kInput");
  const HloValue e = exponential(exps);
  HloValues exp_results = {exps.reduce(exps.view(e, {t_, pieces, piece}), {2})};
  if (options_.keeps_exponentials) exp_results.push_back(e);
  const HloValues made = exps.finish(exp_results);
  HloFusion total(block_, "input_reduce_fusion", "kInput");
  HloValue denominator = total.finish(total.reduce(total.in(made[0]), {1}));
  if (splits_vocabulary)
    denominator = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, denominator);
  HloFusion logs(block_, "loop_add_log_select_fusion");
  const HloValue counted =
      logs.convert(logs.view(logs.in(inputs_.segments), {t_}), ElementType::kF32);
  const HloValue log = logs.unary("log", logs.in(denominator));
  const HloValues weights = logs.finish({logs.binary("multiply", log, counted), counted});

  HloFusion back(block_, "input_convert_reduce_fusion", "kInput");
  const HloValue exp_again = options_.keeps_exponentials ? back.in(made[1]) : exponential(back);
  const HloValue share =
      back.binary("divide", exp_again, back.broadcast(back.in(denominator), wide, {0}));
  const HloValue target = back.broadcast(back.view(back.in(inputs_.targets), {t_}), wide, {0});
  const HloValue names = mask_.ref.empty() || mask_.array.type == ElementType::kPred
                             ? back.iota(ElementType::kS32, wide, 1)
                             : back.view(back.in(mask_), wide);
  const HloValue is_target = back.convert(back.select_equal(target, names), ElementType::kF32);
  const HloValue difference = back.binary("multiply", back.binary("subtract", share, is_target),
                                          back.broadcast(back.in(weights[1]), wide, {0}));
  const HloValue picked =
      back.binary("multiply", is_target, back.convert(back.in(logits), ElementType::kF32));
  const HloValues ends = back.finish(
      {back.reduce(back.view(picked, {t_, pieces, piece}), {2}), back.convert(difference, type_)});
  const HloValue& dlogits = ends[1];
  const HloValue weight =
      product(block_, flat, dlogits, {.a_dim = 0, .b_dim = 0});  // [d, vocabulary]
  HloValue dnormed =
      block_.view(product(block_, dlogits, head, {.b_dim = tied ? std::size_t{0} : std::size_t{1}}),
                  {b_, s_, d_});
  if (split)
    dnormed = reduce_scatter(block_, step_.mesh, {MeshAxis::kTensor}, {dnormed}, {2}).front();
  head_gradient_ = weight;

  HloFusion products(block_, "input_reduce_fusion", "kInput");
  const HloValue px = products.convert(products.in(stream), ElementType::kF32);
  const HloValue pg = products.convert(products.in(dnormed), ElementType::kF32);
  HloValue dot = products.finish(products.reduce(products.binary("multiply", px, pg), {2}));
  if (split) dot = all_reduce(block_, step_.mesh, {MeshAxis::kTensor}, dot);
  HloFusion through(block_, "input_convert_reduce_fusion", "kInput");
  const HloValue tx = through.convert(through.in(stream), ElementType::kF32);
  const HloValue tg = through.convert(through.in(dnormed), ElementType::kF32);
  const HloValue tr = through.broadcast(through.in(root), dims, {0, 1});
  const HloValue scaled = through.binary(
      "multiply", tg,
      through.broadcast(through.convert(through.in(scale), ElementType::kF32), dims, {2}));
  const HloValue dx = through.binary(
      "subtract", through.binary("multiply", scaled, tr),
      through.binary("multiply", tx, through.broadcast(through.in(dot), dims, {0, 1})));
  const HloValue partial = through.reduce(
      through.view(through.binary("multiply", through.binary("multiply", tx, tr), tg),
                   {t_, dims[2]}),
      {0});
  const HloValues norms =
      through.finish({through.convert(dx, type_), through.convert(partial, type_)});
  norm_gradient_ = all_reduce(block_, step_.mesh, batch_axes_, norms[1]);

  HloFusion loss(block_, "input_reduce_fusion", "kInput");
  const HloValue lost =
      loss.binary("subtract", loss.in(weights[0]), loss.reduce(loss.in(ends[0]), {1}));
  Result result;
  result.loss = loss.finish(loss.reduce(lost, {0}));
  result.gradient = norms[0];
  return result;
}

void LossText::embed_backward(const HloValue& gradient, StepGradients& result) {
  HloValue dx = gradient;
  if (step_.mesh[MeshAxis::kTensor] > 1)
    dx = all_gather(block_, step_.mesh, {MeshAxis::kTensor}, {dx}, {2}).front();
  dx = block_.view(dx, {t_, d_});
  HloValue table;
  if (step_.embeds_by_product) {
    HloFusion fusion(block_, "gemm_fusion_dot", "kCustom");
    const HloValue hot = one_hot(fusion);
    table = fusion.finish(fusion.dot(hot, fusion.in(dx), 0, 0));
  } else {
    HloFusion fusion(block_, "input_scatter_fusion", "kInput");
    const HloValue rows = fusion.in(dx);
    const HloValue at = fusion.view(fusion.in(inputs_.tokens), {t_});
    table = fusion.finish(fusion.sum_rows(rows, at, vocabulary_));
  }
  if (step_.model.tied_head) {
    HloFusion add(block_, "loop_add_fusion");
    table =
        add.finish(add.binary("add", add.in(table), add.transpose(add.in(head_gradient_), {1, 0})));
  } else {
    result.gradients[kHead] = shared(head_gradient_, 0);
  }
  result.gradients[kTable] = shared(table, 1);
  result.gradients[kNorm] = norm_gradient_;
  if (step_.model.norm_bias) result.gradients["decoder/decoder_norm/bias"] = norm_gradient_;
  if (step_.model.trained_positions > 0) {
    HloFusion fusion(block_, "input_scatter_fusion", "kInput");
    const HloValue rows = fusion.in(dx);
    const HloValue at = fusion.view(fusion.in(inputs_.tokens), {t_});
    result.gradients[kPositions] =
        shared(fusion.finish(fusion.sum_rows(rows, at, step_.model.trained_positions)), 1);
  }
}

}  // namespace spillway
