#include "model/spec/state_text.h"

#include <algorithm>

namespace spillway {
namespace {

/// state['model']['decoder']['layers']['mlp']['wi_0']['kernel'].value
std::string state_name(std::string prefix, const std::string& path) {
  std::string name = std::move(prefix);
  std::size_t from = 0;
  while (from <= path.size()) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    name += "[\\'" + path.substr(from, slash - from) + "\\']";
    from = slash + 1;
  }
  return name + ".value";
}

bool needs_transpose(const WeightArray& array) {
  return array.layer_axis() > 0 && array.dims.size() > 2;
}

/// The permutation that takes layers in front, and the one back.
std::vector<std::int64_t> to_front(const WeightArray& array) {
  std::vector<std::int64_t> order = {array.layer_axis()};
  for (int i = 0; i < static_cast<int>(array.dims.size()); ++i)
    if (i != array.layer_axis()) order.push_back(i);
  return order;
}
std::vector<std::int64_t> from_front(const WeightArray& array) {
  const std::vector<std::int64_t> front = to_front(array);
  std::vector<std::int64_t> back(front.size());
  for (std::size_t i = 0; i < front.size(); ++i)
    back[static_cast<std::size_t>(front[i])] = static_cast<std::int64_t>(i);
  return back;
}

/// XLA has the gradients of these with their contracted dimensions in front, and turns them in a
/// kernel of its own wherever they are read.
bool is_turned_alone(const WeightArray& array) {
  return array.role == WeightRole::kMlpOut || array.role == WeightRole::kOut;
}

/// A gradient in the parameter's layout, inside a kernel.
HloValue in_layout(HloFusion& fusion, const WeightArray& array,
                   const std::vector<std::int64_t>& local, const HloValue& gradient,
                   bool in_parameter_layout) {
  const HloValue value = fusion.in(gradient);
  if (in_parameter_layout || !needs_transpose(array)) return fusion.view(value, local);
  return fusion.transpose(value, from_front(array));
}

std::int64_t product_of(const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

std::vector<std::int64_t> every_dim(const HloValue& value) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < value.array.dims.size(); ++i)
    dims.push_back(static_cast<std::int64_t>(i));
  return dims;
}

}  // namespace

HloValue StateText::argument(const HloArray& array, const std::string& name) {
  arguments_.push_back(array);
  return entry_.parameter(static_cast<int>(arguments_.size()) - 1, array, name);
}

std::vector<StateText::State::Moment> StateText::make_moments(const State& state) const {
  const Precision& precision = step_.precision;
  const auto moment = [&](const char* name, ElementType type, std::vector<std::int64_t> dims) {
    return State::Moment{name, {"", {type, std::move(dims)}}, {}};
  };
  switch (step_.optimizer) {
    case Optimizer::kAdamW:
      return {moment("mu", precision.first_moment, state.local),
              moment("nu", precision.second_moment, state.local)};
    case Optimizer::kMuon: {
      std::vector<State::Moment> moments = {moment("mu", precision.first_moment, state.local)};
      const bool is_matrix = state.array.dims.size() - (state.array.group >= 0 ? 1 : 0) >= 2;
      if (!is_matrix || state.array.role == WeightRole::kEmbedding ||
          state.array.role == WeightRole::kHead)
        moments.push_back(moment("nu", precision.second_moment, state.local));
      return moments;
    }
    case Optimizer::kAdafactor: {
      std::vector<std::int64_t> sizes = state.local;
      std::ranges::sort(sizes, std::greater());
      if (sizes.size() < 2 || sizes[1] < 128)
        return {moment("v", precision.second_moment, state.local)};
      const std::int64_t all = product_of(state.local);
      return {moment("v_row", precision.second_moment, {all / sizes[0]}),
              moment("v_col", precision.second_moment, {all / sizes[1]})};
    }
    case Optimizer::kSgd:
      return {};
  }
  return {};
}

/// A parameter as the loops read it: layers first, in memory of its own, as XLA has it.
HloValue StateText::layers_first(const State& state) {
  if (state.array.layer_axis() < 0 || !state.array.is_parameter) return state.value;
  if (!needs_transpose(state.array)) {
    std::vector<std::int64_t> dims;
    for (const std::int64_t axis : to_front(state.array))
      dims.push_back(state.local[static_cast<std::size_t>(axis)]);
    return entry_.view(state.value, dims);
  }
  HloFusion fusion(entry_, "wrapped_transpose");
  return fusion.finish(fusion.transpose(fusion.in(state.value), to_front(state.array)));
}

StepInputs StateText::read() {
  for (const WeightArray& array : list_weights(step_)) {
    State state;
    state.array = array;
    state.local = local_dims(array, step_.mesh).value();
    state.value = argument({array.type, state.local}, state_name("state[\\'model\\']", array.path));
    if (array.trained) state.moments = make_moments(state);
    states_.push_back(std::move(state));
  }
  counters_.push_back(argument({ElementType::kS32, {}},
                               "state[\\'optimizer\\'][\\'opt_state\\'][0][\\'count\\'].value"));
  std::size_t most = 0;
  for (const State& state : states_) most = std::max(most, state.moments.size());
  for (std::size_t m = 0; m < most; ++m)
    for (State& state : states_) {
      if (m >= state.moments.size()) continue;
      State::Moment& moment = state.moments[m];
      moment.value = argument(
          moment.value.array,
          state_name("state[\\'optimizer\\'][\\'opt_state\\'][0][\\'" + moment.name + "\\']",
                     state.array.path));
    }
  counters_.push_back(argument({ElementType::kS32, {}},
                               "state[\\'optimizer\\'][\\'opt_state\\'][2][\\'count\\'].value"));
  counters_.push_back(
      argument({ElementType::kU32, {}}, "state[\\'optimizer\\'][\\'step\\'].value"));
  StepInputs inputs;
  const HloArray data{ElementType::kS32,
                      {step_.local_batch() * step_.accumulation, step_.local_sequence()}};
  inputs.tokens = argument(data, "data[\\'inputs\\']");
  inputs.positions = argument(data, "data[\\'inputs_position\\']");
  inputs.targets = argument(data, "data[\\'targets\\']");
  inputs.segments = argument(data, "data[\\'targets_segmentation\\']");
  data_ = 4;
  for (const State& state : states_)
    if (state.array.is_parameter) inputs.states[state.array.path] = layers_first(state);
  return inputs;
}

std::vector<std::pair<std::string, HloArray>> StateText::gradient_arrays() const {
  std::vector<std::pair<std::string, HloArray>> arrays;
  for (const State& state : states_)
    if (state.array.trained)
      arrays.push_back({state.array.path, {step_.precision.gradients, state.local}});
  return arrays;
}

HloValue StateText::add_gradient(HloBlock& block, const std::string& path, const HloValue& sum,
                                 const HloValue& gradient) const {
  const auto state =
      std::ranges::find_if(states_, [&path](const State& s) { return s.array.path == path; });
  HloFusion fusion(block, "loop_add_fusion");
  const HloValue before = fusion.in(sum);
  const HloValue more = fusion.convert(
      in_layout(fusion, state->array, state->local, gradient, false), sum.array.type);
  return fusion.finish(fusion.binary("add", before, more));
}

/// The root of the sum of all squares: piece by piece here, then over all devices.
HloValue StateText::gradient_norm(const std::vector<State*>& trained,
                                  const StepGradients& gradients) {
  HloValues sums;
  for (const State* state : trained) {
    HloValue gradient = gradients.gradients.at(state->array.path);
    if (is_turned_alone(state->array) && needs_transpose(state->array) &&
        !gradients.in_parameter_layout) {
      HloFusion turn(entry_, "input_transpose_fusion", "kInput");
      const HloValue x = in_layout(turn, state->array, state->local, gradient, false);
      gradient = turn.finish(turn.binary("multiply", x, x));
    }
    HloFusion fusion(entry_, "input_reduce_fusion", "kInput");
    const HloValue x = fusion.convert(fusion.in(gradient), ElementType::kF32);
    sums.push_back(fusion.finish(fusion.reduce(fusion.binary("multiply", x, x), every_dim(x))));
  }
  HloFusion join(entry_, "wrapped_concatenate");
  HloValues parts;
  for (const HloValue& sum : sums) parts.push_back(join.view(join.in(sum), {1}));
  HloValue all = join.finish(join.concatenate(parts, 0));
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < kMeshAxes; ++i)
    if (const auto axis = static_cast<MeshAxis>(i); step_.mesh[axis] > 1) axes.push_back(axis);
  all = all_reduce(entry_, step_.mesh, axes, all);
  HloFusion root(entry_, "loop_sqrt_fusion");
  return root.finish(root.unary("sqrt", root.reduce(root.in(all), {0})));
}

/// The gradient in the parameter's layout, cut to the norm.
HloValue StateText::clipped(const State& state, const HloValue& gradient, const StepGradients& all,
                            const HloValue& norm) {
  if (!step_.clips_gradients) return gradient;
  const bool alone =
      is_turned_alone(state.array) && needs_transpose(state.array) && !all.in_parameter_layout;
  HloFusion fusion(entry_, alone ? "input_transpose_fusion" : "loop_select_fusion",
                   alone ? "kInput" : "kLoop");
  const HloValue x = in_layout(fusion, state.array, state.local, gradient, all.in_parameter_layout);
  const HloValue by =
      fusion.broadcast(fusion.convert(fusion.in(norm), x.array.type), state.local, {});
  const HloValue divided = fusion.finish(fusion.binary("divide", x, by));
  if (!alone) return divided;
  HloFusion select(entry_, "input_transpose_fusion", "kInput");
  const HloValue before = in_layout(select, state.array, state.local, gradient, false);
  return select.finish(select.binary("maximum", select.in(divided), before));
}

HloValue StateText::apply(State& state, const HloValue& gradient, const HloValue& rate) {
  HloFusion fusion(entry_, "input_add_reduce_fusion", "kInput");
  const HloValue g =
      fusion.convert(fusion.view(fusion.in(gradient), state.local), ElementType::kF32);
  HloValue step = fusion.binary("multiply", g, fusion.broadcast(fusion.in(rate), state.local, {}));
  HloValues results;
  std::vector<State::Moment*> whole;
  for (State::Moment& moment : state.moments) {
    if (moment.value.array.dims != state.local) continue;
    const HloValue before = fusion.convert(fusion.in(moment.value), ElementType::kF32);
    const HloValue seen = moment.name == "mu" ? g : fusion.binary("multiply", g, g);
    const HloValue now = fusion.binary("add", fusion.binary("multiply", before, before), seen);
    step = fusion.binary(moment.name == "mu" ? "multiply" : "divide", step, now);
    results.push_back(fusion.convert(now, moment.value.array.type));
    whole.push_back(&moment);
  }
  const HloValue before = fusion.convert(fusion.in(state.value), ElementType::kF32);
  const HloValue after = fusion.binary("subtract", before, step);
  results.push_back(fusion.convert(after, state.array.type));
  results.push_back(fusion.reduce(fusion.binary("multiply", after, after), every_dim(after)));
  const HloValues made = fusion.finish(results);
  for (std::size_t m = 0; m < whole.size(); ++m) whole[m]->updated = made[m];
  state.updated = made[whole.size()];
  for (State::Moment& moment : state.moments) {
    if (!moment.updated.ref.empty()) continue;  // sums over rows or columns
    HloFusion sums(entry_, "input_add_reduce_fusion", "kInput");
    const std::int64_t size = element_count(moment.value.array);
    const HloValue x = sums.convert(sums.in(gradient), ElementType::kF32);
    const HloValue square =
        sums.view(sums.binary("multiply", x, x), {size, product_of(state.local) / size});
    const HloValue sum = sums.convert(sums.reduce(square, {1}), moment.value.array.type);
    moment.updated = sums.finish(sums.binary("add", sums.view(sums.in(moment.value), {size}), sum));
  }
  return made.back();
}

void StateText::update(const StepGradients& gradients) {
  std::vector<State*> trained;
  for (State& state : states_)
    if (state.array.trained && gradients.gradients.contains(state.array.path))
      trained.push_back(&state);
  const HloValue norm = gradient_norm(trained, gradients);
  HloFusion rate_fusion(entry_, "loop_multiply_fusion");
  const HloValue rate =
      rate_fusion.finish(rate_fusion.convert(rate_fusion.in(counters_[1]), ElementType::kF32));
  HloValues sums;
  for (State* state : trained)
    sums.push_back(apply(
        *state, clipped(*state, gradients.gradients.at(state->array.path), gradients, norm), rate));
  HloValues counted;
  for (const HloValue& counter : counters_) {
    HloFusion fusion(entry_, "loop_add_fusion");
    counted.push_back(fusion.finish(
        fusion.binary("add", fusion.in(counter), fusion.scalar(counter.array.type, "1"))));
  }
  for (const State& state : states_)
    results_.push_back(state.updated.ref.empty() ? state.value : state.updated);
  results_.push_back(counted[0]);
  std::size_t most = 0;
  for (const State& state : states_) most = std::max(most, state.moments.size());
  for (std::size_t m = 0; m < most; ++m)
    for (const State& state : states_)
      if (m < state.moments.size())
        results_.push_back(state.moments[m].updated.ref.empty() ? state.moments[m].value
                                                                : state.moments[m].updated);
  results_.push_back(counted[1]);
  results_.push_back(counted[2]);
  // MaxText reports eleven numbers: norms, loss, learning rate, …
  HloFusion squares(entry_, "loop_sqrt_fusion");
  HloValue total = squares.in(sums.front());
  for (std::size_t i = 1; i < sums.size(); ++i)
    total = squares.binary("add", total, squares.in(sums[i]));
  const HloValue parameter_norm = squares.finish(squares.unary("sqrt", total));
  constexpr int kMetrics = 11;
  for (int i = 0; i < kMetrics; ++i) {
    const HloValue& of = i == 0 ? gradients.loss : i == 1 ? norm : i == 2 ? parameter_norm : rate;
    HloFusion fusion(entry_, "loop_divide_fusion");
    results_.push_back(fusion.finish(fusion.unary("negate", fusion.in(of))));
  }
}

std::string StateText::header() const {
  std::string alias, arguments, results;
  const std::size_t donated = arguments_.size() - data_;
  for (std::size_t i = 0; i < donated; ++i)
    alias +=
        (i ? ", {" : "{") + std::to_string(i) + "}: (" + std::to_string(i) + ", {}, may-alias)";
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    arguments += (i ? ", " : "") + to_text(arguments_[i]);
  for (std::size_t i = 0; i < results_.size(); ++i)
    results += (i ? ", " : "") + to_text(results_[i].array);
  return "HloModule jit_train_step, is_scheduled=true, input_output_alias={ " + alias +
         " }, entry_computation_layout={(" + arguments + ")->(" + results +
         ")}, num_partitions=" + std::to_string(step_.mesh.devices());
}

}  // namespace spillway
