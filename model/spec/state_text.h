// The training state of a step as HLO: arguments, the stacks that loops read, and the optimizer's
// update behind the gradients' norm.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/spec/hlo_kernels.h"
#include "model/spec/stacked_weights.h"

namespace spillway {

/// What a microbatch reads.
struct StepInputs {
  std::map<std::string, HloValue> states;  ///< by WeightArray::path; layers first where stacked
  HloValue tokens, positions, targets, segments;
};

struct StepGradients {
  std::map<std::string, HloValue> gradients;  ///< by WeightArray::path
  HloValue loss;
  bool in_parameter_layout = false;  ///< else layers are first
};

class StateText {
 public:
  StateText(const StepSpec& step, HloBlock& entry) : step_(step), entry_(entry) {}

  StepInputs read();
  /// Of what is trained, as accumulated: in the parameters' layout.
  std::vector<std::pair<std::string, HloArray>> gradient_arrays() const;
  /// A microbatch's gradient added to those before it.
  HloValue add_gradient(HloBlock& block, const std::string& path, const HloValue& sum,
                        const HloValue& gradient) const;
  void update(const StepGradients& gradients);

  const HloValues& results() const { return results_; }
  std::string header() const;

 private:
  struct State {
    WeightArray array;
    std::vector<std::int64_t> local;
    HloValue value, updated;
    struct Moment {
      std::string name;
      HloValue value, updated;
    };
    std::vector<Moment> moments;
  };
  struct Scalars {
    HloValue norm, clips;
  };

  std::vector<State::Moment> make_moments(const State& state) const;
  HloValue argument(const HloArray& array, const std::string& name);
  HloValue layers_first(const State& state);
  HloValue gradient_norm(const std::vector<State*>& trained, const StepGradients& gradients);
  HloValue clipped(const State& state, const HloValue& gradient, const StepGradients& all,
                   const HloValue& norm);
  HloValue apply(State& state, const HloValue& gradient, const HloValue& rate);

  const StepSpec& step_;
  HloBlock& entry_;
  std::vector<State> states_;
  HloValues counters_;  ///< of optimizer and step
  HloValues results_;
  std::vector<HloArray> arguments_;
  std::size_t data_ = 0;  ///< arguments that are no state
};

}  // namespace spillway
