#include "sim/planner/policy_bounds.h"

#include <algorithm>

#include "model/cost/host_rates.h"
#include "model/cost/run_time.h"
#include "model/program/call_graph.h"
#include "sim/planner/least_time.h"
#include "sim/rewrite/offload_state.h"
#include "sim/rewrite/recompute.h"

namespace spillway {
namespace {

/// So many sets of recomputed handles are looked at by themselves: each is a rewrite.
constexpr std::size_t kMostSets = 512;

/// Whether it takes as long whatever XLA fuses to it: a product or attention whose arithmetic
/// outlasts its memory traffic.
bool is_arithmetic(const Work& work, const Cost& cost) {
  return cost.uses_sms && cost.bound == Bound::kCompute &&
         work.ops.dot_flops + work.ops.attention_flops > Flops(0);
}

/// Computations that run inside the loops over layers, in one direction.
class LoopBodies {
 public:
  /// Of `program`, which was made of the compiled one and has its bodies at the same ids.
  LoopBodies(const Program& program, const Evaluator& evaluator, InstructionId Residual::*loop_of) {
    std::vector<ComputationId> open;
    for (const Residual& residual : evaluator.residuals().residuals)
      open.push_back(body_of(evaluator.program(), residual.*loop_of));
    while (!open.empty()) {
      const ComputationId id = open.back();
      open.pop_back();
      if (!inside_.insert(id).second) continue;
      const auto called = program[id].parts().called;
      open.insert(open.end(), called.begin(), called.end());
    }
  }
  bool contains(ComputationId id) const { return inside_.contains(id); }

 private:
  std::set<ComputationId> inside_;
};

/// What a kernel of the main stream takes. Nothing for what another order may do without or run
/// beside others: copies, collectives.
Seconds kernel_time(const Program& program, const CostTable& table, InstructionId id) {
  const Instruction& in = program[id];
  const Cost& cost = table.cost(id);
  const bool is_kernel = !is_async_start(in.opcode) && !is_async_done(in.opcode) &&
                         in.opcode != Opcode::kCopy && cost.kernel != KernelClass::kCollective &&
                         cost.uses_sms;
  return is_kernel ? cost.time : Seconds(0);
}

/// What a collective takes alone, where it starts.
Seconds collective_time(const Program& program, const CostTable& table, InstructionId id) {
  const bool is_done = is_async_done(program[id].opcode);
  const Cost& cost = table.cost(id);
  return !is_done && cost.kernel == KernelClass::kCollective ? cost.time : Seconds(0);
}

/// Kernels that read, write or make one of the program's stacks.
class StackKernels {
 public:
  explicit StackKernels(const Evaluator& evaluator) : evaluator_(evaluator) {
    for (const Residual& residual : evaluator.residuals().residuals) stacks_.insert(residual.stack);
    for (const Handle& handle : evaluator.handles())
      if (handle.state && handle.fixed_because.empty())
        stacks_.merge(stacks_of_state(evaluator.program(), evaluator.memory(), evaluator.state(),
                                      *handle.state));
  }

  bool contains(InstructionId id) const {
    const Program& program = evaluator_.program();
    const MemoryAssignment& memory = evaluator_.memory();
    const auto is_stack = [&](ValueId value) {
      return stacks_.contains(memory.liveness.buffer_of[value]);
    };
    for (ShapeNodeIndex node = 0; node < program[id].shape.node_count(); ++node)
      if (is_stack(memory.values.at(id, node))) return true;
    return std::ranges::any_of(program[id.computation].operands(id.instruction),
                               [&](const Operand& operand) {
                                 return is_stack(memory.values.at(id.computation, operand));
                               });
  }

 private:
  const Evaluator& evaluator_;
  std::set<BufferId> stacks_;
};

/// The same of a rewritten program, by shapes: kernels with an operand or a result that could be a
/// stack, or where state may be moved, a parameter or what the optimizer keeps.
class StackShapes {
 public:
  StackShapes(const Evaluator& evaluator, bool moves_state) {
    for (const Residual& residual : evaluator.residuals().residuals)
      sizes_.insert(residual.total_bytes);
    if (!moves_state) return;
    for (const StateArgument& argument : evaluator.state().arguments)
      sizes_.insert(argument.shape.bytes());
  }

  bool touches(const Program& program, InstructionId id) const {
    const Computation& computation = program[id.computation];
    return is_one(program[id].shape) ||
           std::ranges::any_of(computation.operands(id.instruction), [&](const Operand& operand) {
             return is_one(computation.shape_of(operand));
           });
  }

 private:
  /// Types may differ where XLA converts what it holds, so that sizes are compared.
  bool is_one(Shape shape) const {
    for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
      if (sizes_.contains(shape.at(node).bytes())) return true;
    return false;
  }

  std::set<Bytes> sizes_;
};

}  // namespace

PolicyBounds::PolicyBounds(const Evaluator& evaluator) : evaluator_(evaluator) {
  find_shares();
  kernels_ = kernels_whatever_is_recomputed();
}

void PolicyBounds::find_shares() {
  const std::vector<Handle>& handles = evaluator_.handles();
  always_ = sum_totals(evaluator_.memory()).argument;
  const Multiplicity multiplicity = spillway::multiplicity(evaluator_.program());
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
    add_stacks(k, multiplicity, counted);
    add_unrolled(k, counted);
    if (!is_name(handle) || !handle.saved_because.empty()) continue;
    recomputable_.insert(k);
    shares_[k].repeated = find_repeated(k);
  }
  for (const Residual& residual : evaluator_.residuals().residuals)
    if (residual.placement == Placement::kDevice && counted.insert(residual.stack).second)
      always_ += residual.total_bytes;
}

/// Each stack once, at the first handle that has it.
void PolicyBounds::add_stacks(std::size_t handle, const Multiplicity& multiplicity,
                              std::set<BufferId>& counted) {
  const HostRates rates = host_rates(evaluator_.profile(), evaluator_.topology());
  Share& share = shares_[handle];
  for (const ResidualId id : evaluator_.handles()[handle].residuals) {
    const Residual& residual = evaluator_.residuals().residuals[id];
    if (!counted.insert(residual.stack).second) continue;
    share.on_device += residual.total_bytes;
    share.on_host += residual.total_bytes;
    // Pipelined copies also run outside of the loops.
    if (residual.peeled) continue;
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
  const Handle& of = evaluator_.handles()[handle];
  for (const UnrolledId id : of.unrolled)
    for (const std::uint32_t layer : layers_of(of, evaluator_.unrolled())) {
      const Operand value = evaluator_.unrolled().residuals[id].layers[layer].value;
      const BufferId buffer = memory.liveness.buffer_of[memory.values.at(entry, value)];
      if (counted.insert(buffer).second)
        shares_[handle].on_device += evaluator_.unrolled().residuals[id].bytes_per_layer();
    }
}

PolicyBounds::Repeated PolicyBounds::find_repeated(std::size_t handle) const {
  Policy policy = compiled_policy(evaluator_.handles());
  policy[handle] = Choice::kRecompute;
  const Program program = evaluator_.change(policy);
  const CostTable table =
      costs(program, evaluator_.profile(), evaluator_.topology(), evaluator_.least_costs());
  // What stands in a branch need not run.
  const Multiplicity sure =
      multiplicity(program, [](Opcode opcode) { return opcode != Opcode::kConditional; });
  Repeated repeated;
  for (const ComputationId id : ids(program.computations)) {
    if (sure.runs[id] == 0 || !table.contains(id)) continue;
    for (const InstructionIndex i : program[id].instructions()) {
      const std::string_view name = program[id][i].name;
      const std::size_t suffix = name.find(kRecomputedSuffix);
      const Cost& cost = table.cost({id, i});
      if (suffix == std::string_view::npos || !is_arithmetic(table.work({id, i}), cost)) continue;
      repeated[std::string(name.substr(0, suffix))] =
          cost.time * static_cast<double>(sure.runs[id]);
    }
  }
  return repeated;
}

/// `kernel` and `collective` say what an instruction counts; collectives inside the loops alone,
/// what stands around them may run beside them.
template <typename KernelTime, typename CollectiveTime>
PolicyBounds::Kernels PolicyBounds::add_up(const Program& program, const CostTable& table,
                                           const KernelTime& kernel,
                                           const CollectiveTime& collective) const {
  const LoopBodies forward(program, evaluator_, &Residual::forward_loop);
  const LoopBodies backward(program, evaluator_, &Residual::backward_loop);
  const std::vector<ComputationId> order = computation_post_order(program);
  const auto total = [&](const auto& counts, bool is_loop) {
    IdVector<ComputationId, Seconds> times(program.computations.size());
    for (const ComputationId id : order) {
      if (!table.contains(id)) continue;
      std::vector<Seconds> kernels(program[id].size()), collectives(program[id].size());
      for (const InstructionIndex i : program[id].instructions()) {
        if (is_control_flow(program[id][i].opcode)) {
          kernels[i.index] = time_of_called(program, {id, i}, times, BranchTaken::kShortest);
        } else if (counts(id)) {
          kernels[i.index] = kernel(InstructionId{id, i});
          if (is_loop) collectives[i.index] = collective(InstructionId{id, i});
        }
      }
      times[id] = least_time(program[id], kernels, collectives);
    }
    return times[program.entry];
  };
  const auto is_outside = [&](ComputationId id) {
    return !forward.contains(id) && !backward.contains(id);
  };
  return {total(is_outside, false),
          total([&](ComputationId id) { return forward.contains(id); }, true),
          total([&](ComputationId id) { return backward.contains(id); }, true)};
}

PolicyBounds::Kernels PolicyBounds::kernels_whatever_is_recomputed() const {
  const Program& program = evaluator_.program();
  const CostTable& table = evaluator_.least_costs();
  const auto in_loop = inside_loops(program);
  const bool is_scanned = evaluator_.unrolled().residuals.empty();
  const StackKernels stacks(evaluator_);
  const auto kernel = [&](InstructionId id) {
    const bool counts = is_scanned && in_loop[id.computation] == 0
                            ? !stacks.contains(id)
                            : is_arithmetic(table.work(id), table.cost(id));
    return counts ? kernel_time(program, table, id) : Seconds(0);
  };
  return add_up(program, table, kernel, [](InstructionId) { return Seconds(0); });
}

const PolicyBounds::Kernels& PolicyBounds::kernels_with(const std::vector<std::size_t>& recomputed,
                                                        bool moves_state) {
  const auto [found, is_new] = kernels_with_.try_emplace({recomputed, moves_state});
  if (!is_new) return found->second;
  Policy policy = compiled_policy(evaluator_.handles());
  for (std::size_t k = 0; k < policy.size(); ++k) {
    const Handle& handle = evaluator_.handles()[k];
    if (is_name(handle) && handle.fixed_because.empty()) policy[k] = Choice::kKeep;
  }
  for (const std::size_t k : recomputed) policy[k] = Choice::kRecompute;
  const Program program = evaluator_.change(policy);
  const CostTable table =
      costs(program, evaluator_.profile(), evaluator_.topology(), evaluator_.least_costs());
  const StackShapes stacks(evaluator_, moves_state);
  found->second = add_up(
      program, table,
      [&](InstructionId id) {
        const bool counts =
            is_arithmetic(table.work(id), table.cost(id)) || !stacks.touches(program, id);
        return counts ? kernel_time(program, table, id) : Seconds(0);
      },
      [&](InstructionId id) { return collective_time(program, table, id); });
  return found->second;
}

BaselineFacts PolicyBounds::facts() const {
  BaselineFacts facts{evaluator_.handles(), {}, kernels_.forward, kernels_.backward};
  for (const Share& share : shares_) {
    HandleFacts& of = facts.of.emplace_back(HandleFacts{share.out, share.in, Seconds(0)});
    for (const auto& [name, time] : share.repeated) of.again += time;
  }
  return facts;
}

/// What is computed again for handles that are decided to be, whatever becomes of the others.
Seconds PolicyBounds::repeated(const OpenPolicy& policy) const {
  std::map<std::string_view, Seconds> kernels;
  for (const std::size_t k : recomputable_) {
    if (!policy[k].is_only(Choice::kRecompute)) continue;
    for (const auto& [name, time] : shares_[k].repeated) {
      const auto [known, is_new] = kernels.emplace(name, time);
      if (!is_new) known->second = std::min(known->second, time);
    }
  }
  Seconds sum(0);
  for (const auto& [name, time] : kernels) sum += time;
  return sum;
}

PolicyBound PolicyBounds::of(const OpenPolicy& policy) {
  PolicyBound bound{always_, Bytes(0), Bytes(0), Seconds(0)};
  Seconds out(0), in(0);
  bool moves_state = false, knows_recomputed = true;
  std::vector<std::size_t> recomputed;
  for (std::size_t k = 0; k < shares_.size(); ++k) {
    const Share& share = shares_[k];
    const OpenChoices& open = policy[k];
    if (open.is_only(Choice::kKeep)) {
      bound.device += share.on_device;
    } else if (open.is_only(Choice::kOffload)) {
      bound.host += share.on_host;
      out += share.out;
      in += share.in;
    } else if (!open.has(Choice::kRecompute)) {
      bound.either += std::min(share.on_device, share.on_host);
    }
    const Handle& handle = evaluator_.handles()[k];
    if (handle.state) moves_state |= !open.is_only(handle.as_compiled);
    if (!recomputable_.contains(k)) continue;
    if (open.is_only(Choice::kRecompute)) recomputed.push_back(k);
    knows_recomputed &= open.is_only(Choice::kRecompute) || !open.has(Choice::kRecompute);
  }
  const auto step = [&](const Kernels& kernels, Seconds again) {
    return kernels.outside + std::max(kernels.forward, out) +
           std::max(kernels.backward + again, in);
  };
  bound.step = step(kernels_, repeated(policy));
  const bool may_find_out =
      kernels_with_.size() < kMostSets || kernels_with_.contains({recomputed, moves_state});
  if (knows_recomputed && may_find_out)
    bound.step = std::max(bound.step, step(kernels_with(recomputed, moves_state), Seconds(0)));
  return bound;
}

}  // namespace spillway
