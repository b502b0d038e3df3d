#include "sim/schedule/memory_fences.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/program/control_predecessors.h"
#include "sim/rewrite/program_editor.h"

namespace spillway {
namespace {

/// Of each value who reads it, where it is seen, and whether it may be fenced at all.
struct ValueUses {
  std::vector<InstructionIndex> readers;  ///< in its own computation
  bool escapes = false;                   ///< another computation sees it, or its own returns it
};

IdVector<ValueId, ValueUses> find_uses(const Program& program, const Lifetimes& given) {
  const ValueTable& values = given.values;
  IdVector<ValueId, ValueUses> uses(values.values().size());
  const auto home = [&](ValueId v) { return values[v].defined_at.instruction.computation; };
  for (const InstructionId id : given.schedule.order) {
    const Computation& computation = program[id.computation];
    const Instruction& in = computation[id.instruction];
    for (ShapeNodeIndex node = 0; node < in.shape.node_count(); ++node) {
      const ValueId value = values.at(id, node);
      if (home(value) != id.computation || computation.root().instruction == id.instruction)
        uses[value].escapes = true;
    }
    if (in.opcode == Opcode::kTuple) continue;  // hands on what it gets
    for (const Operand& operand : computation.operands(id.instruction)) {
      const std::uint32_t inner =
          in.opcode == Opcode::kCopy ? 1 : computation.shape_of(operand).node_count();
      for (ShapeNodeIndex node = 0; node < inner; ++node) {
        ValueUses& found =
            uses[values.at(id.computation, {operand.instruction, operand.node + node})];
        if (found.readers.empty() || found.readers.back() != id.instruction)
          found.readers.push_back(id.instruction);
      }
    }
  }
  return uses;
}

/// The async windows of a computation, in the order of their starts.
class Windows {
 public:
  Windows(const Computation& computation, const std::vector<LogicalTime>& position)
      : computation_(computation), position_(position) {
    for (const InstructionIndex i : computation.instructions()) {
      if (!is_async_start(computation[i].opcode)) continue;
      const auto done = find_done(computation, i);
      windows_.push_back({i, position[i.index], position[(done ? *done : i).index]});
    }
    std::ranges::sort(windows_, {}, &Window::start);
    ControlPredecessors control(computation);
    for (const InstructionIndex i : computation.instructions()) control_.push_back(control.of(i));
  }

  /// The start before which everyone who reads a buffer must run.
  std::optional<InstructionIndex> fence(LogicalTime last_read, std::int32_t slack) const {
    // Dones follow no order of their own, so the first window that is still open is looked for one
    // by one, as XLA does.
    std::size_t k = 0;
    while (k < windows_.size() && windows_[k].done <= last_read) ++k;
    k += static_cast<std::size_t>(slack);
    while (k < windows_.size() && windows_[k].start <= last_read) ++k;
    if (k >= windows_.size()) return std::nullopt;
    return windows_[k].instruction;
  }

  /// Whether the program's own dependencies already put `first` before `then`.
  bool is_implied(InstructionIndex first, InstructionIndex then) {
    auto& above = above_[then.index];
    if (above.empty()) mark_above(then, above);
    return above[first.index];
  }

 private:
  struct Window {
    InstructionIndex instruction;
    LogicalTime start, done;
  };

  void mark_above(InstructionIndex i, std::vector<bool>& above) const {
    above.assign(computation_.size(), false);
    std::vector<InstructionIndex> stack{i};
    const auto visit = [&](InstructionIndex other) {
      if (above[other.index]) return;
      above[other.index] = true;
      stack.push_back(other);
    };
    while (!stack.empty()) {
      const InstructionIndex next = stack.back();
      stack.pop_back();
      for (const Operand& operand : computation_.operands(next)) visit(operand.instruction);
      for (const InstructionIndex other : control_[next.index]) visit(other);
    }
  }

  const Computation& computation_;
  const std::vector<LogicalTime>& position_;
  std::vector<Window> windows_;
  std::vector<std::vector<InstructionIndex>> control_;
  std::map<std::uint32_t, std::vector<bool>> above_;
};

/// Everyone who reads the buffer; empty where it must not be fenced.
std::vector<InstructionIndex> fenced_readers(const Program& program, const Lifetimes& given,
                                             const IdVector<ValueId, ValueUses>& uses,
                                             const Buffer& buffer) {
  std::vector<InstructionIndex> readers;
  const ComputationId home = given.values[buffer.values[0]].defined_at.instruction.computation;
  for (const ValueId value : buffer.values) {
    const InstructionId definer = given.values[value].defined_at.instruction;
    if (definer.computation != home || program[definer].opcode == Opcode::kParameter ||
        uses[value].escapes)
      return {};
    readers.insert(readers.end(), uses[value].readers.begin(), uses[value].readers.end());
  }
  std::ranges::sort(readers);
  readers.erase(std::ranges::unique(readers).begin(), readers.end());
  return readers;
}

}  // namespace

std::optional<Bytes> fencing_threshold(std::int64_t flag, Bytes scheduler_limit) {
  if (flag < 0) return std::nullopt;
  if (flag == 0) return scheduler_limit / 100;
  return std::min(Bytes(flag), scheduler_limit);
}

IdVector<ComputationId, std::vector<Precedence>> find_memory_fences(const Program& program,
                                                                    const Lifetimes& given,
                                                                    const FencingOptions& options) {
  const IdVector<ValueId, ValueUses> uses = find_uses(program, given);
  IdVector<ComputationId, std::vector<Precedence>> fences(program.computations.size());
  std::map<ComputationId, Windows> windows;
  std::set<std::pair<InstructionId, InstructionId>> known;
  for (const Buffer& buffer : given.liveness.buffers) {
    if (given.values[buffer.values[0]].shape.bytes() < options.threshold) continue;
    const auto readers = fenced_readers(program, given, uses, buffer);
    if (readers.empty()) continue;
    const ComputationId id = given.values[buffer.values[0]].defined_at.instruction.computation;
    const auto& position = given.schedule.position[id];
    Windows& async = windows.try_emplace(id, program[id], position).first->second;
    LogicalTime last_read{};
    for (const InstructionIndex reader : readers)
      last_read = std::max(last_read, position[reader.index]);
    const auto start = async.fence(last_read, options.slack_windows);
    if (!start) continue;
    for (const InstructionIndex reader : readers)
      if (!async.is_implied(reader, *start) && known.insert({{id, reader}, {id, *start}}).second)
        fences[id].push_back({reader, *start});
  }
  return fences;
}

Program with_control_dependencies(const Program& program,
                                  const IdVector<ComputationId, std::vector<Precedence>>& added) {
  ProgramEditor editor(program);
  for (const ComputationId id : ids(program.computations)) {
    if (added[id].empty()) continue;
    std::map<std::uint32_t, std::string> lists;
    for (const Precedence& p : added[id]) {
      std::string& list = lists[p.then.index];
      list += (list.empty() ? "%" : ", %") + std::string(program[id][p.first].name);
    }
    ComputationEditor& edited = editor.edit(id);
    for (const auto& [then, list] : lists) add_control_predecessors(editor, edited[then], list);
  }
  return editor.finish();
}

}  // namespace spillway
