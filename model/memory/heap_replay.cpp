#include "model/memory/heap_replay.h"

#include <numeric>

namespace spillway {
namespace {

class HeapReplay {
 public:
  HeapReplay(const Program& program, const ValueTable& values, const Liveness& liveness,
             const std::vector<BufferId>& buffers, OperandSharing& sharing)
      : program_(program),
        values_(values),
        liveness_(liveness),
        sharing_(sharing),
        item_of_(liveness.buffers.size()),
        uses_(values.values().size()) {
    plan_.item_of.resize(values.values().size());
    std::vector<std::uint8_t> is_member(values.values().size(), 0);
    for (const BufferId id : buffers)
      for (const ValueId member : liveness.buffers[id].values) is_member[member.index] = 1;
    for (const ValueId id : ids(values.values()))
      if (is_member[id.index] != 0) by_end_.push_back(id);
    // By end, then by start: by start, of equals by end, of equals by number.
    sort_by([this](ValueId v) { return range(v).end; }, by_end_);
    by_start_ = by_end_;
    sort_by([this](ValueId v) { return range(v).start; }, by_start_);
    by_end_ = by_start_;
    sort_by([this](ValueId v) { return range(v).end; }, by_end_);
  }

  HeapPlan run() {
    auto dying = by_end_.begin();
    for (auto next = by_start_.begin(); next != by_start_.end();) {
      const LogicalTime now = range(*next).start;
      // What ended before now is gone; what ends now goes once everything that starts now is there.
      for (; dying != by_end_.end() && range(*dying).end < now; ++dying) free(*dying);
      for (; next != by_start_.end() && range(*next).start == now; ++next) define(*next, now);
    }
    for (; dying != by_end_.end(); ++dying) free(*dying);
    return std::move(plan_);
  }

 private:
  /// A value's use of its item, from its definition to its death.
  struct Use {
    std::uint32_t number = 0;  ///< of the item's uses
    bool ended = false;
  };

  /// Stable, in linear time.
  template <typename TimeOf>
  static void sort_by(TimeOf time_of, std::vector<ValueId>& ids) {
    std::vector<std::uint32_t> first;
    for (const ValueId id : ids) {
      const auto bucket = static_cast<std::size_t>(time_of(id).value()) + 1;
      if (bucket >= first.size()) first.resize(bucket + 1, 0);
      ++first[bucket];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<ValueId> sorted(ids.size());
    for (const ValueId id : ids)
      sorted[first[static_cast<std::size_t>(time_of(id).value())]++] = id;
    ids = std::move(sorted);
  }

  const LiveRange& range(ValueId id) const { return liveness_.ranges[id]; }
  const Buffer& buffer_of(ValueId id) const { return liveness_.buffers[liveness_.buffer_of[id]]; }

  void define(ValueId id, LogicalTime now) {
    const Buffer& buffer = buffer_of(id);
    if (buffer.size == Bytes(0)) return;
    auto& item = item_of_[liveness_.buffer_of[id]];
    if (!item) {
      const auto shared = buffer.values.size() == 1 ? find_dying_operand(id, now) : std::nullopt;
      if (shared) return add_use(*shared, id);
      item = static_cast<std::uint32_t>(plan_.items.size());
      plan_.items.push_back({{}, id.index});
    }
    add_use(*item, id);
  }

  void add_use(std::uint32_t item, ValueId id) {
    auto& uses = plan_.items[item].uses;
    plan_.item_of[id] = item;
    uses_[id] = {static_cast<std::uint32_t>(uses.size()), false};
    uses.push_back({clock_, clock_, buffer_of(id).size});
    ++clock_;
  }

  void free(ValueId id) {
    if (!plan_.item_of[id] || uses_[id].ended) return;
    plan_.items[*plan_.item_of[id]].uses[uses_[id].number].end = clock_;
    uses_[id].ended = true;
    ++clock_;
  }

  /// The item of an operand that dies right here and may be written over.
  std::optional<std::uint32_t> find_dying_operand(ValueId id, LogicalTime now) {
    const Position& at = values_[id].defined_at;
    const Computation& computation = program_[at.instruction.computation];
    const auto operands = computation.operands(at.instruction.instruction);
    for (std::uint32_t k = 0; k < operands.size(); ++k) {
      const ValueId operand = values_.at(at.instruction.computation, operands[k]);
      const bool dies =
          plan_.item_of[operand] && !uses_[operand].ended && range(operand).end == now;
      if (!dies || buffer_of(operand).values.size() > 1) continue;
      // The operand must be read where it is defined, not behind a bitcast or out of a tuple.
      const Operand source{values_[operand].defined_at.instruction.instruction,
                           values_[operand].defined_at.node};
      if (values_[operand].defined_at.instruction.computation != at.instruction.computation ||
          source != operands[k] || source.node != 0)
        continue;
      if (!sharing_.may_share(at.instruction, k, 0, at.node)) continue;
      free(operand);
      return plan_.item_of[operand];
    }
    return std::nullopt;
  }

  const Program& program_;
  const ValueTable& values_;
  const Liveness& liveness_;
  OperandSharing& sharing_;
  std::vector<ValueId> by_start_, by_end_;
  HeapPlan plan_;
  IdVector<BufferId, std::optional<std::uint32_t>> item_of_;  ///< of buffers with one of their own
  IdVector<ValueId, Use> uses_;
  std::int32_t clock_ = 0;
};

}  // namespace

HeapPlan replay_heap(const Program& program, const ValueTable& values, const Liveness& liveness,
                     const std::vector<BufferId>& buffers, OperandSharing& sharing) {
  return HeapReplay(program, values, liveness, buffers, sharing).run();
}

}  // namespace spillway
