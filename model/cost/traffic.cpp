#include "model/cost/traffic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/cost/fusion_demand.h"
#include "model/cost/library_call.h"
#include "model/cost/operand_shape.h"

namespace spillway {
namespace {

void add(Traffic& traffic, Shape array, Bytes bytes, bool writes) {
  if (!array.is_array()) return;
  Bytes& sum = is_host(array.space()) ? (writes ? traffic.host_written : traffic.host_read)
                                      : (writes ? traffic.hbm_written : traffic.hbm_read);
  sum += bytes;
}

void add_read(Traffic& traffic, Shape shape, double read) {
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    const Shape array = shape.at(node);
    if (!array.is_array()) continue;
    const double bytes = static_cast<double>(array.bytes().value()) * read;
    add(traffic, array, Bytes(std::llround(bytes)), false);
  }
}

void add_written(Traffic& traffic, Shape shape) {
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node)
    add(traffic, shape.at(node), shape.at(node).bytes(), true);
}

/// What operands add up to, each place that is read counted once.
class Reads {
 public:
  void add(Operand operand, double read) {
    const auto same = [operand](const Entry& entry) { return entry.operand == operand; };
    const auto found = std::ranges::find_if(entries_, same);
    if (found == entries_.end())
      entries_.push_back({operand, read});
    else
      found->read = std::min(1.0, found->read + read);
  }

  void add_to(Traffic& traffic, const Computation& computation) const {
    for (const Entry& entry : entries_)
      add_read(traffic, computation.shape_of(entry.operand), entry.read);
  }

 private:
  struct Entry {
    Operand operand;
    double read = 0;
  };
  std::vector<Entry> entries_;
};

/// What the fusion writes at one result: the update where it is in place, else the whole.
void add_result(Traffic& traffic, const Computation& fused, const FusionDemand& demand,
                Operand result, Shape written) {
  const InstructionIndex source = behind_renamings(fused, result).instruction;
  const bool in_place = std::ranges::find(demand.in_place(), source) != demand.in_place().end();
  if (in_place)
    add(traffic, written, update_of(fused, source)->bytes, true);
  else
    add_written(traffic, written);
}

Traffic fusion_traffic(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  const ComputationId fused_id = called_by(computation, id.instruction);
  const Computation& fused = program[fused_id];
  const FusionDemand demand(program, fused_id);
  Traffic traffic;
  Reads reads;
  const auto operands = computation.operands(id.instruction);
  check(operands.size() == fused.parameters().size(), "a fusion passes on other operands");
  for (std::size_t k = 0; k < operands.size(); ++k)
    reads.add(operands[k], demand.share_of(fused.parameters()[k]));
  reads.add_to(traffic, computation);

  const Shape shape = computation[id.instruction].shape;
  const InstructionIndex root = fused.root().instruction;
  if (fused[root].opcode != Opcode::kTuple || !shape.is_tuple()) {
    add_result(traffic, fused, demand, {root, 0}, shape);
    return traffic;
  }
  const auto results = fused.operands(root);
  for (std::uint32_t k = 0; k < shape.tuple_size(); ++k)
    add_result(traffic, fused, demand, results[k], shape.element(k));
  return traffic;
}

/// The part of an instruction's shape that it writes; starts also hold their operands.
Shape written_shape(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kCopyStart:
      return in.shape.element(0);
    case Opcode::kAllGatherStart:
    case Opcode::kAllToAllStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kReduceScatterStart:
      return in.shape.tuple_size() > 1 ? in.shape.element(1) : in.shape;
    default:
      return in.shape;
  }
}

Traffic plain_traffic(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  Traffic traffic;
  Reads reads;
  const auto operands = computation.operands(i);
  for (std::size_t k = 0; k < operands.size(); ++k)
    reads.add(operands[k], share_read(computation, i, k, true));
  reads.add_to(traffic, computation);
  if (const auto update = update_of(computation, i))
    add(traffic, in.shape, update->bytes, true);
  else
    add_written(traffic, written_shape(in));
  if (in.opcode == Opcode::kCustomCall)
    traffic.hbm_written = traffic.hbm_written - workspace_bytes(computation, i);
  return traffic;
}

bool moves_nothing(const Computation& computation, InstructionIndex i) {
  const Instruction& in = computation[i];
  if (is_free(in) || is_async_done(in.opcode)) return true;
  switch (in.opcode) {
    case Opcode::kAsyncUpdate:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kRecv:
    case Opcode::kWhile:
      return true;
    case Opcode::kCustomCall:
      return library_kernel(computation, i) == LibraryKernel::kNothing;
    default:
      return false;
  }
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  hbm_read += other.hbm_read;
  hbm_written += other.hbm_written;
  host_read += other.host_read;
  host_written += other.host_written;
  return *this;
}

Traffic count_traffic(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  if (moves_nothing(computation, id.instruction)) return {};
  switch (computation[id.instruction].opcode) {
    case Opcode::kFusion:
      return fusion_traffic(program, id);
    case Opcode::kAsyncStart: {
      Traffic sum;
      const ComputationId wrapped = called_by(computation, id.instruction);
      for (const InstructionIndex i : program[wrapped].instructions())
        sum += count_traffic(program, {wrapped, i});
      return sum;
    }
    default:
      return plain_traffic(computation, id.instruction);
  }
}

}  // namespace spillway
