#include "sim/planner/policy_bounds.h"

#include <algorithm>

#include "model/cost/host_rates.h"
#include "model/cost/program_flops.h"
#include "model/cost/run_time.h"
#include "model/program/call_graph.h"
#include "sim/rewrite/recompute.h"

namespace spillway {
namespace {

/// Whether it takes as long whatever XLA fuses to it: a product or attention whose arithmetic
/// outlasts its memory traffic.
bool is_arithmetic(const Work& work, const Cost& cost) {
  return cost.uses_sms && cost.bound == Bound::kCompute &&
         work.ops.dot_flops + work.ops.attention_flops > Flops(0);
}

/// Computations that run inside the loops that `loop_of` tells of residuals.
std::set<ComputationId> bodies(const Program& program, const ResidualTable& table,
                               InstructionId Residual::*loop_of) {
  std::set<ComputationId> found;
  std::vector<ComputationId> open;
  for (const Residual& residual : table.residuals)
    open.push_back(body_of(program, residual.*loop_of));
  while (!open.empty()) {
    const ComputationId id = open.back();
    open.pop_back();
    if (!found.insert(id).second) continue;
    const auto called = program[id].parts().called;
    open.insert(open.end(), called.begin(), called.end());
  }
  return found;
}

/// Kernels that neither copy nor read, write or make one of the stacks.
class Untouched {
 public:
  explicit Untouched(const Evaluator& evaluator)
      : evaluator_(evaluator), stacks_(evaluator.touched_stacks()) {}

  bool contains(InstructionId id) const {
    const Program& program = evaluator_.program();
    const MemoryAssignment& memory = evaluator_.memory();
    const Instruction& in = program[id];
    if (is_async_start(in.opcode) || is_async_done(in.opcode) || in.opcode == Opcode::kCopy ||
        !evaluator_.cost_table().cost(id).uses_sms)
      return false;
    const auto is_stack = [&](ValueId value) {
      return stacks_.contains(memory.liveness.buffer_of[value]);
    };
    for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node)
      if (is_stack(memory.values.at(id, node))) return false;
    return std::ranges::none_of(program[id.computation].operands(id.instruction),
                                [&](const Operand& operand) {
                                  return is_stack(memory.values.at(id.computation, operand));
                                });
  }

 private:
  const Evaluator& evaluator_;
  std::set<BufferId> stacks_;
};

}  // namespace

PolicyBounds::PolicyBounds(const Evaluator& evaluator) : evaluator_(evaluator) {
  find_shares();
  find_kernels();
}

void PolicyBounds::find_shares() {
  const std::vector<Handle>& handles = evaluator_.handles();
  always_ = sum_totals(evaluator_.memory()).argument;
  std::set<BufferId> counted;
  shares_.resize(handles.size());
  for (std::size_t k = 0; k < handles.size(); ++k) {
    const Handle& handle = handles[k];
    if (handle.state && handle.fixed_because.empty()) {
      const Bytes host = host_bytes_of(evaluator_.state(), *handle.state);
      shares_[k].on_device = bytes_of(evaluator_.state(), *handle.state) - host;
      shares_[k].on_host = host;  // what else may go there is not counted
      always_ -= shares_[k].on_device;
    }
    add_stacks(k, counted);
    add_unrolled(k, counted);
    if (is_name(handle) && handle.saved_because.empty()) shares_[k].repeated = find_repeated(k);
  }
  for (const Residual& residual : evaluator_.residuals().residuals)
    if (residual.placement == Placement::kDevice && counted.insert(residual.stack).second)
      always_ += residual.total_bytes;
}

/// Each stack once, at the first handle that has it.
void PolicyBounds::add_stacks(std::size_t handle, std::set<BufferId>& counted) {
  const HostRates rates = host_rates(evaluator_.profile(), evaluator_.topology());
  const Multiplicity multiplicity = spillway::multiplicity(evaluator_.program());
  Share& share = shares_[handle];
  for (const ResidualId id : evaluator_.handles()[handle].residuals) {
    const Residual& residual = evaluator_.residuals().residuals[id];
    if (!counted.insert(residual.stack).second) continue;
    share.on_device += residual.total_bytes;
    share.on_host += residual.total_bytes;
    const auto runs = static_cast<double>(multiplicity.runs[residual.forward_loop.computation]);
    share.out += residual.total_bytes / rates.device_to_host * runs;
    share.in += residual.total_bytes / rates.host_to_device * runs;
  }
}

/// Where layers are not scanned, copies to the host may be put off until a value is read again, so
/// that only what is kept tells anything.
void PolicyBounds::add_unrolled(std::size_t handle, std::set<BufferId>& counted) {
  const MemoryAssignment& memory = evaluator_.memory();
  const ComputationId entry = evaluator_.program().entry;
  for (const UnrolledId id : evaluator_.handles()[handle].unrolled)
    for (const UnrolledValue& layer : evaluator_.unrolled().residuals[id].layers) {
      const BufferId buffer = memory.liveness.buffer_of[memory.values.at(entry, layer.value)];
      if (counted.insert(buffer).second)
        shares_[handle].on_device += evaluator_.unrolled().residuals[id].bytes_per_layer();
    }
}

PolicyBounds::Repeated PolicyBounds::find_repeated(std::size_t handle) const {
  Policy policy = compiled_policy(evaluator_.handles());
  policy[handle] = Choice::kRecompute;
  const Program program = evaluator_.change(policy);
  const CostTable table =
      costs(program, evaluator_.profile(), evaluator_.topology(), evaluator_.cost_table());
  Repeated repeated;
  for (const auto& [id, runs] : executed_computations(program)) {
    if (!table.contains(id)) continue;
    for (const InstructionIndex i : program[id].instructions()) {
      const std::string_view name = program[id][i].name;
      const std::size_t suffix = name.find(kRecomputedSuffix);
      const Cost& cost = table.cost({id, i});
      if (suffix == std::string_view::npos || !is_arithmetic(table.work({id, i}), cost)) continue;
      repeated[std::string(name.substr(0, suffix))] = cost.time * static_cast<double>(runs);
    }
  }
  return repeated;
}

void PolicyBounds::find_kernels() {
  const Program& program = evaluator_.program();
  const CostTable& table = evaluator_.cost_table();
  const auto forward = bodies(program, evaluator_.residuals(), &Residual::forward_loop);
  const auto backward = bodies(program, evaluator_.residuals(), &Residual::backward_loop);
  const auto in_loop = inside_loops(program);
  const bool is_scanned = evaluator_.unrolled().residuals.empty();
  const Untouched untouched(evaluator_);
  const auto total = [&](const auto& counts) {
    const auto time_of = [&](InstructionId id) {
      if (!counts(id.computation)) return Seconds(0);
      const Cost& cost = table.cost(id);
      const bool same_everywhere = is_scanned && in_loop[id.computation] == 0
                                       ? untouched.contains(id)
                                       : is_arithmetic(table.work(id), cost);
      return same_everywhere ? cost.time : Seconds(0);
    };
    return run_times(program, table, BranchTaken::kShortest, time_of)[program.entry];
  };
  forward_ = total([&](ComputationId id) { return forward.contains(id); });
  backward_ = total([&](ComputationId id) { return backward.contains(id); });
  outside_ =
      total([&](ComputationId id) { return !forward.contains(id) && !backward.contains(id); });
}

BaselineFacts PolicyBounds::facts() const {
  BaselineFacts facts{evaluator_.handles(), {}, forward_, backward_};
  for (const Share& share : shares_) {
    HandleFacts& of = facts.of.emplace_back(HandleFacts{share.out, share.in, Seconds(0)});
    for (const auto& [name, time] : share.repeated) of.again += time;
  }
  return facts;
}

PolicyBound PolicyBounds::of(const PartialPolicy& policy) const {
  PolicyBound bound{always_, Bytes(0), Seconds(0)};
  Seconds out(0), in(0), again(0);
  std::map<std::string_view, Seconds> repeated;
  for (std::size_t k = 0; k < shares_.size(); ++k) {
    const Share& share = shares_[k];
    if (policy[k] == Choice::kKeep) bound.device += share.on_device;
    if (policy[k] == Choice::kOffload) {
      bound.host += share.on_host;
      out += share.out;
      in += share.in;
    }
    if (policy[k] != Choice::kRecompute) continue;
    for (const auto& [name, time] : share.repeated) {
      const auto [known, is_new] = repeated.emplace(name, time);
      if (!is_new) known->second = std::min(known->second, time);
    }
  }
  for (const auto& [name, time] : repeated) again += time;
  bound.step = outside_ + std::max(forward_, out) + std::max(backward_ + again, in);
  return bound;
}

}  // namespace spillway
