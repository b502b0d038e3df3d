#include "sim/schedule/recompute_fences.h"

#include <algorithm>
#include <utility>

#include "model/program/call_graph.h"
#include "model/program/host_transfer.h"

namespace spillway {
namespace {

class FenceFinder {
 public:
  FenceFinder(const Program& program, ComputationId id, const std::vector<LogicalTime>& position)
      : program_(program), id_(id), computation_(program[id]), position_(position) {
    kinds_.reserve(computation_.size());
    for (const InstructionIndex i : computation_.instructions()) kinds_.push_back(kind_of(i));
  }

  std::vector<Precedence> run() {
    std::vector<InstructionIndex> sources, gradients;
    std::vector<Precedence> fences;
    for (const InstructionIndex i : computation_.instructions())
      if (is_source(i)) sources.push_back(i);
    std::vector<InstructionIndex> without;
    for (const InstructionIndex source : sources) {
      const auto gradient = gradient_met_by(source);
      if (!gradient) {
        without.push_back(source);
        continue;
      }
      fences.push_back({*gradient, source});
      gradients.push_back(*gradient);
    }
    // Others of the same layer wait with them: for the last of these gradients before them.
    std::ranges::sort(gradients, {}, [this](InstructionIndex i) { return time(i); });
    for (const InstructionIndex source : without) {
      const auto later = std::ranges::upper_bound(gradients, time(source), {},
                                                  [this](InstructionIndex i) { return time(i); });
      if (later != gradients.begin()) fences.push_back({*(later - 1), source});
    }
    return fences;
  }

 private:
  enum class Kind : std::uint8_t { kOther, kAnew, kGradient, kPasses };

  LogicalTime time(InstructionIndex i) const { return position_[i.index]; }

  /// What is reloaded or computed anew; gradients; and what only hands either on.
  Kind kind_of(InstructionIndex i) const {
    const Instruction& in = computation_[i];
    if (in.opcode == Opcode::kParameter || in.opcode == Opcode::kConstant) return Kind::kOther;
    if (const auto transfer = host_transfer(program_, {id_, i}))
      return transfer->direction == TransferDirection::kHostToDevice ? Kind::kAnew : Kind::kOther;
    const std::string_view name = metadata_field(computation_, i, "op_name");
    if (name.find("rematted_computation") != std::string_view::npos) return Kind::kAnew;
    if (name.find("transpose(") != std::string_view::npos && !is_free(in)) return Kind::kGradient;
    const bool passes = is_free(in) || is_async_start(in.opcode) || is_async_done(in.opcode);
    return passes ? Kind::kPasses : Kind::kOther;
  }

  /// Whether nothing that it reads is itself computed anew.
  bool is_source(InstructionIndex i) {
    if (kinds_[i.index] != Kind::kAnew) return false;
    begin_walk();
    std::vector<InstructionIndex> stack = {i};
    while (!stack.empty()) {
      const InstructionIndex at = stack.back();
      stack.pop_back();
      for (const Operand& operand : computation_.operands(at)) {
        if (kinds_[operand.instruction.index] == Kind::kAnew) return false;
        if (kinds_[operand.instruction.index] == Kind::kPasses &&
            is_first_visit(operand.instruction))
          stack.push_back(operand.instruction);
      }
    }
    return true;
  }

  /// The gradient that is read beside what comes of the source, by the first that reads one which
  /// was there before the source.
  std::optional<InstructionIndex> gradient_met_by(InstructionIndex source) {
    std::vector<InstructionIndex> readers;
    begin_walk();
    std::vector<InstructionIndex> stack = {source};
    while (!stack.empty()) {
      const InstructionIndex at = stack.back();
      stack.pop_back();
      for (const Use& use : computation_.uses(at)) {
        if (!is_first_visit(use.user)) continue;
        const Kind kind = kinds_[use.user.index];
        if (kind == Kind::kGradient)
          readers.push_back(use.user);
        else if (kind != Kind::kOther)
          stack.push_back(use.user);
      }
    }
    std::ranges::sort(readers, {}, [this](InstructionIndex i) { return time(i); });
    for (const InstructionIndex reader : readers)
      if (const auto gradient = last_gradient_before(reader, time(source))) return gradient;
    return std::nullopt;
  }

  std::optional<InstructionIndex> last_gradient_before(InstructionIndex reader,
                                                       LogicalTime before) {
    std::optional<InstructionIndex> last;
    begin_walk();
    std::vector<InstructionIndex> stack = {reader};
    while (!stack.empty()) {
      const InstructionIndex at = stack.back();
      stack.pop_back();
      for (const Operand& operand : computation_.operands(at)) {
        const InstructionIndex i = operand.instruction;
        if (kinds_[i.index] == Kind::kPasses && is_first_visit(i)) stack.push_back(i);
        if (kinds_[i.index] != Kind::kGradient || time(i) > before) continue;
        if (!last || time(*last) < time(i)) last = i;
      }
    }
    return last;
  }

  void begin_walk() {
    visited_in_.resize(computation_.size());
    ++walk_;
  }
  bool is_first_visit(InstructionIndex i) {
    return std::exchange(visited_in_[i.index], walk_) != walk_;
  }

  const Program& program_;
  ComputationId id_;
  const Computation& computation_;
  const std::vector<LogicalTime>& position_;
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> visited_in_;  ///< of each instruction: the last walk that came by
  std::uint32_t walk_ = 0;
};

}  // namespace

IdVector<ComputationId, std::vector<Precedence>> find_recompute_fences(const Program& program,
                                                                       const Lifetimes& given) {
  IdVector<ComputationId, std::vector<Precedence>> found(program.computations.size());
  const auto in_loop = inside_loops(program);
  for (const ComputationId id : ids(program.computations)) {
    if (!given.schedule.reaches(id) || in_loop[id] != 0 || given.schedule.async_start[id]) continue;
    found[id] = FenceFinder(program, id, given.schedule.position[id]).run();
  }
  return found;
}

}  // namespace spillway
