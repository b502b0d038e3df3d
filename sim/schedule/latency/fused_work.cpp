#include "sim/schedule/latency/fused_work.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/cost/operand_shape.h"
#include "model/cost/window.h"
#include "model/program/call_graph.h"

namespace spillway {
namespace {

double elements_of(Shape shape) {
  double sum = 0;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    if (shape.at(node).is_array()) sum += static_cast<double>(shape.at(node).elements());
  return sum;
}

double bytes_of(Shape shape) { return static_cast<double>(shape.array_bytes().value()); }

/// Rounded means of what XLA measured for f32 and s32 on the device whose figures it takes where it
/// has none for the one at hand (on Hopper, too), a class of operations each; what it did not
/// measure it takes for 3.
double cycles_of(Opcode opcode, ElementType type) {
  constexpr double kOther = 3;
  const bool is_float = type == ElementType::kF32 || type == ElementType::kF16;
  switch (opcode) {
    case Opcode::kDivide:
      return type == ElementType::kS32 ? 300 : kOther;
    case Opcode::kRsqrt:
    case Opcode::kSqrt:
      return is_float ? 75 : kOther;
    case Opcode::kExp:
      return is_float ? 86 : kOther;
    case Opcode::kLogistic:
    case Opcode::kTanh:
      return is_float ? 180 : kOther;
    case Opcode::kLog:
    case Opcode::kLog1p:
      return is_float ? 250 : kOther;
    case Opcode::kExpm1:
      return is_float ? 380 : kOther;
    case Opcode::kCos:
    case Opcode::kSin:
      return is_float ? 662 : kOther;
    case Opcode::kCbrt:
    case Opcode::kPower:
      return is_float ? 900 : kOther;
    default:
      return kOther;
  }
}

double own_operations(const Program& program, InstructionId id);

double applied_operations(const Program& program, InstructionId id) {
  const ComputationId applied = called_by(program[id.computation], id.instruction);
  double sum = 0;
  for (const InstructionIndex i : program[applied].instructions())
    sum += own_operations(program, {applied, i});
  return sum;
}

/// A concatenation is a comparison and a branch for each element; XLA makes it dear where a warp
/// crosses from one operand to the next.
double concatenate_operations(const Computation& computation, InstructionIndex i) {
  constexpr double kBranch = 6, kBranchInWarp = 400;
  constexpr std::int64_t kWarp = 32;
  const auto dims = parse_integers(computation.attribute(i, "dimensions").value_or(""));
  const auto dim = static_cast<std::size_t>(dims.empty() ? 0 : dims[0]);
  bool crosses = false;
  for (std::size_t k = 0; dim != 0 && k < computation.operands(i).size(); ++k) {
    const auto sizes = operand_shape(computation, i, k).dims();
    crosses = crosses || (dim < sizes.size() && sizes[dim] % kWarp != 0);
  }
  return (crosses ? kBranchInWarp : kBranch) * elements_of(computation[i].shape);
}

/// What one run of an instruction costs, all its elements.
double own_operations(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const InstructionIndex i = id.instruction;
  const Instruction& in = computation[i];
  switch (in.opcode) {
    case Opcode::kReduce: {
      const Shape result = in.shape.is_tuple() ? in.shape.element(0) : in.shape;
      return applied_operations(program, id) *
             (elements_of(operand_shape(computation, i, 0)) - elements_of(result));
    }
    case Opcode::kConcatenate:
      return concatenate_operations(computation, i);
    default:
      break;
  }
  if (!is_elementwise(in.opcode) || in.opcode == Opcode::kCopy || !in.shape.is_array()) return 0;
  return cycles_of(in.opcode, in.shape.type()) * elements_of(in.shape);
}

/// How often an instruction reads an element of its operand, on average.
double times_read(const Computation& computation, InstructionIndex i, std::size_t k) {
  const Instruction& in = computation[i];
  if (k != 0) return 1;
  switch (in.opcode) {
    case Opcode::kBroadcast:
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
    case Opcode::kSlice:
      return elements_of(in.shape) / std::max(1.0, elements_of(operand_shape(computation, i, 0)));
    case Opcode::kReduceWindow: {
      double positions = 1;
      for (const WindowDimension& d : parse_window(computation.attribute(i, "window").value_or("")))
        positions *= static_cast<double>(d.size);
      return elements_of(in.shape) * positions /
             std::max(1.0, elements_of(operand_shape(computation, i, 0)));
    }
    case Opcode::kDynamicUpdateSlice:
      return 0;
    default:
      return 1;
  }
}

/// Bytes that a result of a fusion writes.
double written_by(const Computation& fused, InstructionIndex i) {
  const InstructionIndex source = behind_renamings(fused, {i, 0}).instruction;
  if (fused[source].opcode == Opcode::kDynamicUpdateSlice)
    return bytes_of(operand_shape(fused, source, 1));
  if (fused[i].opcode != Opcode::kTuple) return bytes_of(fused[i].shape);
  double sum = 0;
  for (const Operand& result : fused.operands(i)) sum += written_by(fused, result.instruction);
  return sum;
}

class Walk {
 public:
  Walk(const Program& program, ComputationId id)
      : program_(program), id_(id), fused_(program[id]) {}

  FusedWork run() {
    const InstructionIndex root = fused_.root().instruction;
    wanted_.assign(fused_.size(), 0);
    sources_.resize(fused_.size());
    wanted_[root.index] = 1;
    sources_[root.index].insert(root);
    FusedWork work;
    work.bytes_read.assign(fused_.parameters().size(), 0);
    std::vector<InstructionIndex> order = instruction_post_order(fused_);
    std::ranges::reverse(order);
    for (const InstructionIndex i : order) {
      double runs = 0;
      for (const InstructionIndex source : sources_[i.index]) runs += wanted_[source.index];
      work.operations += runs * own_operations(program_, {id_, i});
      if (fused_[i].opcode == Opcode::kParameter)
        work.bytes_read[parameter_number(fused_[i])] = runs * bytes_of(fused_[i].shape);
      for (std::size_t k = 0; k < fused_.operands(i).size(); ++k) pass_up(i, k, runs);
    }
    work.bytes_written = written_by(fused_, root);
    return work;
  }

 private:
  void pass_up(InstructionIndex i, std::size_t k, double runs) {
    const InstructionIndex operand = fused_.operands(i)[k].instruction;
    const Opcode opcode = fused_[i].opcode;
    if (is_elementwise(opcode) || opcode == Opcode::kTuple) {
      sources_[operand.index].insert(sources_[i.index].begin(), sources_[i.index].end());
      return;
    }
    sources_[operand.index].insert(operand);
    const double elements = elements_of(fused_[operand].shape);
    if (elements == 0) return;
    // Whole elements: an average may fall between them.
    const double wanted = std::ceil(runs * times_read(fused_, i, k) * elements - 1e-6);
    wanted_[operand.index] += wanted / elements;
  }

  const Program& program_;
  const ComputationId id_;
  const Computation& fused_;
  std::vector<double> wanted_;  ///< how often an element is, of those that begin a chain
  /// Of each instruction, the ends of the elementwise chains that it is part of.
  std::vector<std::set<InstructionIndex>> sources_;
};

FusedWork work_alone(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const InstructionIndex i = id.instruction;
  FusedWork work;
  work.operations = own_operations(program, id);
  for (std::size_t k = 0; k < computation.operands(i).size(); ++k)
    work.bytes_read.push_back(times_read(computation, i, k) *
                              bytes_of(operand_shape(computation, i, k)));
  work.bytes_written = written_by(computation, i);
  return work;
}

}  // namespace

FusedWork fused_work(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  if (computation[id.instruction].opcode != Opcode::kFusion) return work_alone(program, id);
  return Walk(program, called_by(computation, id.instruction)).run();
}

}  // namespace spillway
