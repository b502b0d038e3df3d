#include "model/spec/step_text.h"

#include <algorithm>

#include "model/spec/layer_text.h"
#include "model/spec/loss_text.h"
#include "model/spec/state_text.h"

namespace spillway {
namespace {

/// The layers of one group in both directions, in whatever block the microbatch is computed.
struct GroupLoops {
  int group = 0;
  std::int64_t layers = 0;
  std::vector<StackedWeight> weights;
  HloValues stacks;  ///< of `weights`
  HloValues saved;   ///< what the forward loop saved
};

/// Writes forward and backward of one microbatch.
class MicrobatchWriter {
 public:
  MicrobatchWriter(const StepSpec& step, const StepTextOptions& options, HloBlock& block,
                   const StepInputs& inputs)
      : step_(step), options_(options), block_(block), inputs_(inputs) {
    for (std::size_t g = 0; g < step.model.groups.size(); ++g) {
      GroupLoops loops;
      loops.group = static_cast<int>(g);
      loops.layers = step.model.groups[g].layers / step.mesh[MeshAxis::kStage];
      loops.weights = list_stacked_weights(step, loops.group);
      for (const StackedWeight& weight : loops.weights)
        loops.stacks.push_back(inputs.states.at(weight.array.path));
      groups_.push_back(std::move(loops));
    }
  }

  StepGradients write() {
    LossText loss(step_, options_, block_, inputs_);
    HloValue stream = loss.embed();
    for (GroupLoops& loops : groups_) stream = run_forward(loops, stream);
    LossText::Result head = loss.loss(stream);
    StepGradients result;
    result.loss = head.loss;
    HloValue gradient = head.gradient;
    for (std::size_t g = groups_.size(); g-- > 0;)
      gradient = run_backward(groups_[g], gradient, result);
    loss.embed_backward(gradient, result);
    return result;
  }

 private:
  HloValue zeros(const HloArray& array) {
    HloFusion fusion(block_, "loop_broadcast_fusion");
    return fusion.finish(fusion.broadcast(fusion.scalar(array.type, "0"), array.dims, {}));
  }

  HloValue zero_index() { return block_.copy(block_.constant({ElementType::kS32, {}}, "0")); }

  /// The counter, one further.
  static HloValue next(HloBlock& body, const HloValue& index) {
    HloFusion fusion(body, "loop_add_fusion");
    return fusion.finish(
        fusion.binary("add", fusion.in(index), fusion.scalar(ElementType::kS32, "1")));
  }

  std::vector<SavedTensor> tensors_of(int group) const {
    std::vector<SavedTensor> tensors;
    for (SavedTensor& tensor : list_saved_tensors(step_))
      if (tensor.group == group && tensor.is_needed) tensors.push_back(std::move(tensor));
    return tensors;
  }

  static std::vector<HloArray> arrays_of(const HloValues& values) {
    std::vector<HloArray> arrays;
    for (const HloValue& value : values) arrays.push_back(value.array);
    return arrays;
  }

  HloValue run_forward(GroupLoops& loops, const HloValue& stream) {
    const std::vector<SavedTensor> tensors = tensors_of(loops.group);
    HloValues carry = {zero_index(), stream};
    for (const SavedTensor& tensor : tensors) {
      std::vector<std::int64_t> dims = tensor.dims;
      dims.insert(dims.begin(), loops.layers);
      carry.push_back(zeros({tensor.type, dims}));
    }
    carry.insert(carry.end(), loops.stacks.begin(), loops.stacks.end());
    carry.push_back(inputs_.positions);
    HloText& module = block_.module();
    HloBlock body(module, module.unique("forward_layers"), "jit(train_step)/jvp()/while/body/");
    const HloValues in = body.tuple_parameter(arrays_of(carry));
    const std::size_t first_weight = 2 + tensors.size();
    for (std::size_t k = 0; k < loops.weights.size(); ++k)
      loops.weights[k].stack = in[first_weight + k];
    const HloValue index = body.copy(in[0]);
    LayerText layer(step_, loops.group, body, loops.weights, index, in.back(), false);
    const LayerText::Forward made = layer.forward(body.copy(in[1]));
    HloValues out = {next(body, index), made.output};
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      HloFusion fusion(body, "loop_dynamic_update_slice_fusion");
      const HloValue stack = fusion.in(in[2 + k]);
      const HloValue value = fusion.in(made.saved[k]);
      out.push_back(fusion.finish_async(fusion.set_row(stack, value, fusion.in(index), {})));
    }
    out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(first_weight), in.end());
    body.finish(out, true);
    const HloValues results = while_loop(block_, body.name(), carry, loops.layers);
    loops.saved.assign(results.begin() + 2,
                       results.begin() + static_cast<std::ptrdiff_t>(first_weight));
    turn_expert_stacks(loops, tensors);
    return results[1];
  }

  /// What experts made is read with sequences outermost; XLA turns the whole stack between the
  /// loops.
  void turn_expert_stacks(GroupLoops& loops, const std::vector<SavedTensor>& tensors) {
    if (step_.dispatch != Dispatch::kCapacity) return;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      if (tensors[k].names.back() != "moe_mlpwo") continue;
      HloFusion fusion(block_, "wrapped_transpose", "kInput");
      const HloValue in = fusion.in(loops.saved[k]);
      loops.saved[k] = fusion.finish(fusion.transpose(in, {0, 2, 1, 3, 4}));
    }
  }

  HloValue run_backward(GroupLoops& loops, const HloValue& gradient, StepGradients& result) {
    HloValues carry = {zero_index(), gradient};
    std::vector<std::size_t> trained;
    for (std::size_t k = 0; k < loops.weights.size(); ++k) {
      if (!loops.weights[k].array.trained) continue;
      trained.push_back(k);
      carry.push_back(zeros({step_.precision.gradients, loops.weights[k].stacked()}));
    }
    carry.insert(carry.end(), loops.saved.begin(), loops.saved.end());
    carry.insert(carry.end(), loops.stacks.begin(), loops.stacks.end());
    carry.push_back(inputs_.positions);
    HloText& module = block_.module();
    HloBlock body(module, module.unique("backward_layers"),
                  "jit(train_step)/transpose(jvp())/while/body/checkpoint/");
    const HloValues in = body.tuple_parameter(arrays_of(carry));
    const std::size_t first_saved = 2 + trained.size();
    const std::size_t first_weight = first_saved + loops.saved.size();
    for (std::size_t k = 0; k < loops.weights.size(); ++k)
      loops.weights[k].stack = in[first_weight + k];
    const HloValue index = body.copy(in[0]);
    LayerText layer(step_, loops.group, body, loops.weights, index, in.back(), true);
    const HloValues stacks(in.begin() + static_cast<std::ptrdiff_t>(first_saved),
                           in.begin() + static_cast<std::ptrdiff_t>(first_weight));
    const LayerText::Backward made = layer.backward(body.copy(in[1]), stacks);
    HloValues out = {next(body, index), made.input_gradient};
    for (std::size_t k = 0; k < trained.size(); ++k) {
      const auto row = made.gradients.find(loops.weights[trained[k]].path);
      if (row == made.gradients.end()) {
        out.push_back(in[2 + k]);
        continue;
      }
      HloFusion fusion(body, "loop_dynamic_update_slice_fusion");
      const HloValue stack = fusion.in(in[2 + k]);
      const HloValue value = fusion.in(row->second);
      out.push_back(
          fusion.finish(fusion.set_row(stack, value, fusion.in(index), loops.layers - 1)));
    }
    out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(first_saved), in.end());
    body.finish(out, true);
    const HloValues results = while_loop(block_, body.name(), carry, loops.layers);
    for (std::size_t k = 0; k < trained.size(); ++k)
      result.gradients[loops.weights[trained[k]].array.path] = results[2 + k];
    return results[1];
  }

  const StepSpec& step_;
  const StepTextOptions& options_;
  HloBlock& block_;
  const StepInputs& inputs_;
  std::vector<GroupLoops> groups_;
};

/// All microbatches: a loop around them that adds their gradients up.
StepGradients accumulate(const StepSpec& step, const StepTextOptions& options, HloBlock& entry,
                         const StateText& state, const StepInputs& inputs) {
  HloText& module = entry.module();
  HloValues carry = {entry.copy(entry.constant({ElementType::kS32, {}}, "0"))};
  std::vector<std::string> trained, others;
  HloFusion start(entry, "loop_broadcast_fusion");
  for (const auto& [path, array] : state.gradient_arrays()) {
    HloFusion fusion(entry, "loop_broadcast_fusion");
    carry.push_back(
        fusion.finish(fusion.broadcast(fusion.scalar(array.type, "0"), array.dims, {})));
    trained.push_back(path);
  }
  for (const auto& [path, value] : inputs.states) {
    carry.push_back(value);
    others.push_back(path);
  }
  for (const HloValue& data : {inputs.tokens, inputs.positions, inputs.targets, inputs.segments})
    carry.push_back(data);
  HloFusion zero(entry, "loop_broadcast_fusion");
  carry.push_back(zero.finish(zero.broadcast(zero.scalar(ElementType::kF32, "0"), {1}, {})));
  std::vector<HloArray> arrays;
  for (const HloValue& value : carry) arrays.push_back(value.array);
  HloBlock body(module, module.unique("microbatches"), "jit(train_step)/while/body/");
  const HloValues in = body.tuple_parameter(arrays);
  const HloValue index = body.copy(in[0]);
  StepInputs inner;
  std::size_t at = 1 + trained.size();
  for (const std::string& path : others) inner.states[path] = in[at++];
  const std::int64_t b = step.local_batch(), s = step.local_sequence();
  HloValue* const data[] = {&inner.tokens, &inner.positions, &inner.targets, &inner.segments};
  for (HloValue* value : data) {
    HloFusion fusion(body, "loop_dynamic_slice_fusion");
    const HloValue all = fusion.view(fusion.in(in[at++]), {step.accumulation, b * s});
    *value = body.view(fusion.finish(fusion.row(all, fusion.in(index), {})), {b, s});
  }
  StepGradients made = MicrobatchWriter(step, options, body, inner).write();
  HloFusion count(body, "loop_add_fusion");
  HloValues out = {
      count.finish(count.binary("add", count.in(index), count.scalar(ElementType::kS32, "1")))};
  for (std::size_t k = 0; k < trained.size(); ++k)
    out.push_back(state.add_gradient(body, trained[k], in[1 + k], made.gradients.at(trained[k])));
  out.insert(out.end(), in.begin() + 1 + static_cast<std::ptrdiff_t>(trained.size()), in.end() - 1);
  HloFusion total(body, "loop_add_fusion");
  out.push_back(
      total.finish(total.binary("add", total.in(in.back()), total.view(total.in(made.loss), {1}))));
  body.finish(out, true);
  const HloValues results = while_loop(entry, body.name(), carry, step.accumulation);
  StepGradients sum;
  sum.loss = entry.view(results.back(), {});
  for (std::size_t k = 0; k < trained.size(); ++k) sum.gradients[trained[k]] = results[1 + k];
  sum.in_parameter_layout = true;
  return sum;
}

}  // namespace

Result<std::string> write_step(const StepSpec& step, const StepTextOptions& options) {
  if (step.mesh[MeshAxis::kStage] > 1)
    return usage_error("a program of a pipeline is not made",
                       "the closed-form estimate has pipelines");
  if (step.vocabulary_tiles > 1)
    return usage_error("a program with a loss in pieces (num_vocab_tiling) is not made");
  if (const auto fits = count_state(step); !fits.ok()) return fits.error();
  HloText module;
  HloBlock entry(module, "main_spmd", "jit(train_step)/");
  StateText state(step, entry);
  const StepInputs inputs = state.read();
  const StepGradients gradients = step.accumulation > 1
                                      ? accumulate(step, options, entry, state, inputs)
                                      : MicrobatchWriter(step, options, entry, inputs).write();
  state.update(gradients);
  entry.finish(state.results(), true, true);
  return module.finish(state.header());
}

}  // namespace spillway
