#include "model/memory/assignment.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/memory/heap_replay.h"
#include "model/memory/latest_with_room.h"
#include "model/memory/residents.h"
#include "model/memory/thread_local.h"
#include "model/program/call_graph.h"

namespace spillway {
namespace {

/// Allocations once temporaries are joined, and where each has gone: into which, and how far.
struct Combined {
  IdVector<AllocationId, Allocation> allocations;
  IdVector<AllocationId, std::pair<AllocationId, Bytes>> moved;
};

/// Temporaries of one memory space become one block: they stand end to end, each start aligned.
Combined combine(const IdVector<AllocationId, Allocation>& allocations) {
  std::vector<AllocationId> order;
  for (const AllocationId id : ids(allocations)) order.push_back(id);
  // XLA moves temporaries behind the others with std::partition, whose order decides which of them
  // stands last and so is not padded.
  const auto first_temp = std::partition(
      order.begin(), order.end(), [&](AllocationId id) { return !allocations[id].is_temp(); });
  Combined result{{}, IdVector<AllocationId, std::pair<AllocationId, Bytes>>(allocations.size())};
  auto& [combined, moved] = result;
  std::map<MemorySpace, AllocationId> block;
  for (auto it = order.begin(); it != order.end(); ++it) {
    const Allocation& allocation = allocations[*it];
    const auto known = block.find(allocation.space);
    if (it < first_temp || known == block.end()) {
      const AllocationId id = combined.push(allocation);
      if (it >= first_temp) block[allocation.space] = id;
      moved[*it] = {id, Bytes(0)};
      continue;
    }
    Bytes& size = combined[known->second].size;
    const std::int64_t alignment = kHeapAlignment.value();
    const Bytes base((size.value() + alignment - 1) / alignment * alignment);
    size = base + allocation.size;
    moved[*it] = {known->second, base};
  }
  return result;
}

class Assigner {
 public:
  Assigner(const Program& program, Lifetimes lifetimes)
      : program_(program), in_place_(program), sharing_(program, in_place_) {
    static_cast<Lifetimes&>(out_) = std::move(lifetimes);
    out_.cell_of.resize(out_.values.values().size());
  }

  /// Empty where the device surely needs `limit` or more.
  std::optional<MemoryAssignment> run(std::optional<Bytes> limit) {
    assign_buffers();
    for (Heap& heap : heaps_) {
      heap.plan = replay_heap(program_, out_.values, out_.liveness, heap.buffers, sharing_);
      heap.allocation =
          out_.allocations.push({.size = Bytes(0), .space = heap.space, .parameter = {}});
    }
    for (const Allocation& allocation : thread_local_allocations(program_))
      out_.allocations.push(allocation);
    if (limit && least_total() >= *limit) return std::nullopt;
    for (const Heap& heap : heaps_) run_heap(heap);
    combine_temporaries();
    return std::move(out_);
  }

  /// Of all that may lie in a result's allocation, results come first: what is assigned before one
  /// of them is larger, or a result too, and a result only takes a place of its own size. So where
  /// results lie does not depend on temporaries.
  MemoryAssignment run_outside_heaps() {
    for (const BufferId id : sorted_buffers())
      if (!assign_special(id) && buffer(id).live_out && !assign_to_existing(id)) assign_new(id);
    return std::move(out_);
  }

 private:
  struct Heap {
    MemorySpace space = MemorySpace::kDevice;
    std::vector<BufferId> buffers{};
    HeapPlan plan{};
    AllocationId allocation{};
  };

  void assign_buffers() {
    for (const BufferId buffer : sorted_buffers())
      if (!assign_special(buffer) && !assign_to_existing(buffer)) assign_new(buffer);
  }
  std::vector<BufferId> sorted_buffers();
  bool assign_special(BufferId buffer);
  bool assign_to_existing(BufferId buffer);
  bool fits(AllocationId allocation, BufferId buffer);
  bool surely_interferes(AllocationId allocation, BufferId buffer) const;
  bool interferes(ValueId a, ValueId b);
  bool writes_over(ValueId user, ValueId operand);
  bool copies_from(ValueId copy, AllocationId source) const;
  void place(BufferId buffer, AllocationId allocation);
  void add_residents(AllocationId allocation, BufferId id);
  void add_reusable(AllocationId allocation, BufferId id);
  void assign_new(BufferId buffer);
  Heap& heap_of(MemorySpace space);
  AllocationId allocate(BufferId buffer);
  Bytes least_total();
  void run_heap(const Heap& heap);
  void combine_temporaries();

  const Value& value(ValueId id) const { return out_.values[id]; }
  const LiveRange& range(ValueId id) const { return out_.liveness.ranges[id]; }
  const Buffer& buffer(BufferId id) const { return out_.liveness.buffers[id]; }
  const Instruction& definer(ValueId id) const {
    return program_[value(id).defined_at.instruction];
  }

  const Program& program_;
  InPlacePairs in_place_;
  OperandSharing sharing_;
  MemoryAssignment out_;
  /// Allocations that may house further values, oldest first: donated parameters and results.
  std::vector<AllocationId> reusable_;
  LatestWithRoom free_;  ///< of each of these, how long it is free at a stretch
  IdVector<AllocationId, std::optional<std::uint32_t>> number_in_reusable_;
  /// Those of one allocation never overlap. Empty where no other buffer may lie.
  IdVector<AllocationId, std::optional<Residents>> residents_;
  IdVector<AllocationId, CellId> whole_;  ///< the cell of each allocation that stands alone
  std::vector<Heap> heaps_;               ///< by memory space
};

/// Largest first, then results, then in the order of XLA's walk over callers before callees.
std::vector<BufferId> Assigner::sorted_buffers() {
  IdVector<ComputationId, std::uint32_t> first(program_.computations.size(), 0);
  IdVector<ComputationId, std::vector<std::uint32_t>> rank(program_.computations.size());
  std::vector<ComputationId> order = computation_post_order(program_);
  std::ranges::reverse(order);
  std::uint32_t next = 0;
  for (const ComputationId id : order) {
    if (!out_.schedule.reaches(id)) continue;
    rank[id].resize(program_[id].size());
    for (const InstructionIndex i : instruction_post_order(program_[id]))
      rank[id][i.index] = next++;
  }
  struct Key {
    std::int64_t size;
    bool live_out;
    std::uint32_t rank;
    BufferId id;
  };
  std::vector<Key> keys;
  for (const BufferId id : ids(out_.liveness.buffers)) {
    std::uint32_t earliest = ~0u;
    for (const ValueId member : buffer(id).values) {
      const InstructionId at = value(member).defined_at.instruction;
      earliest = std::min(earliest, rank[at.computation][at.instruction.index]);
    }
    keys.push_back({buffer(id).size.value(), buffer(id).live_out, earliest, id});
  }
  std::ranges::sort(keys, [](const Key& a, const Key& b) {
    return std::tuple(-a.size, !a.live_out, a.rank, a.id.index) <
           std::tuple(-b.size, !b.live_out, b.rank, b.id.index);
  });
  std::vector<BufferId> sorted;
  for (const Key& key : keys) sorted.push_back(key.id);
  return sorted;
}

AllocationId Assigner::allocate(BufferId id) {
  const AllocationId allocation =
      out_.allocations.push({.size = buffer(id).size, .space = buffer(id).space, .parameter = {}});
  whole_.push(out_.cells.push({allocation, Bytes(0), buffer(id).size}));
  residents_.push({});
  number_in_reusable_.push({});
  place(id, allocation);
  return allocation;
}

void Assigner::place(BufferId id, AllocationId allocation) {
  for (const ValueId member : buffer(id).values) out_.cell_of[member] = whole_[allocation];
  out_.allocations[allocation].live_out |= buffer(id).live_out;
  if (const auto number = number_in_reusable_[allocation]) {
    add_residents(allocation, id);
    free_.set(*number, residents_[allocation]->longest_gap());
  }
}

void Assigner::add_residents(AllocationId allocation, BufferId id) {
  for (const ValueId member : buffer(id).values) residents_[allocation]->add(member, range(member));
}

/// `id` is what lies there.
void Assigner::add_reusable(AllocationId allocation, BufferId id) {
  residents_[allocation].emplace(out_.schedule.end());
  add_residents(allocation, id);
  number_in_reusable_[allocation] = static_cast<std::uint32_t>(reusable_.size());
  reusable_.push_back(allocation);
  free_.push(residents_[allocation]->longest_gap());
}

/// A quick answer for the many allocations that are in use all the time.
bool Assigner::surely_interferes(AllocationId allocation, BufferId id) const {
  return std::ranges::any_of(buffer(id).values, [&](ValueId member) {
    return residents_[allocation]->surely_overlap(range(member));
  });
}

/// Constants, parameters of the entry and tuple tables have allocations of their own.
bool Assigner::assign_special(BufferId id) {
  for (const ValueId member : buffer(id).values) {
    const Opcode opcode = definer(member).opcode;
    const Position& at = value(member).defined_at;
    if (opcode == Opcode::kConstant) {
      out_.allocations[allocate(id)].constant = true;
      return true;
    }
    if (opcode == Opcode::kParameter && at.instruction.computation == program_.entry) {
      const AllocationId allocation = allocate(id);
      Allocation& parameter = out_.allocations[allocation];
      parameter.parameter = parameter_number(definer(member));
      parameter.parameter_node = at.node;
      parameter.aliased = out_.liveness.donated.contains(member);
      if (parameter.aliased) add_reusable(allocation, id);
      return true;
    }
  }
  for (const ValueId member : buffer(id).values) {
    if (!value(member).shape.is_tuple()) continue;
    out_.allocations[allocate(id)].tuple_table = true;
    return true;
  }
  return false;
}

/// First an allocation that an operand lies in, then the youngest that fits.
bool Assigner::assign_to_existing(BufferId id) {
  for (const ValueId member : buffer(id).values) {
    const Position& at = value(member).defined_at;
    if (at.node != 0) continue;
    const Computation& computation = program_[at.instruction.computation];
    for (const Operand& operand : computation.operands(at.instruction.instruction)) {
      const auto cell = out_.cell_of[out_.values.at(at.instruction.computation, operand)];
      if (!cell || !fits(out_.cells[*cell].allocation, id)) continue;
      place(id, out_.cells[*cell].allocation);
      return true;
    }
  }
  std::int32_t longest = 0;
  for (const ValueId member : buffer(id).values)
    longest = std::max(longest, (range(member).end - range(member).start).value());
  for (auto k = free_.find(reusable_.size(), longest); k; k = free_.find(*k, longest)) {
    ++out_.effort.allocations;
    if (surely_interferes(reusable_[*k], id) || !fits(reusable_[*k], id)) continue;
    place(id, reusable_[*k]);
    return true;
  }
  return false;
}

bool Assigner::fits(AllocationId allocation_id, BufferId id) {
  const Allocation& allocation = out_.allocations[allocation_id];
  const Buffer& wanted = buffer(id);
  if (wanted.space != allocation.space || wanted.size > allocation.size) return false;
  if ((allocation.parameter && !allocation.aliased) || allocation.constant ||
      allocation.tuple_table)
    return false;
  if (wanted.live_out && wanted.size != allocation.size) return false;
  // Residents are disjoint but for shared ends, so those around the wanted range are enough.
  const auto& residents = residents_[allocation_id]->by_start();
  for (const ValueId member : wanted.values) {
    for (auto at = residents.upper_bound(range(member).end); at != residents.begin();) {
      const ValueId resident = (--at)->second;
      ++out_.effort.residents;
      if (interferes(member, resident)) return false;
      if (range(resident).end < range(member).start && range(resident).start < range(resident).end)
        break;
    }
    if (definer(member).opcode == Opcode::kCopy && copies_from(member, allocation_id)) return false;
  }
  return true;
}

bool Assigner::interferes(ValueId a, ValueId b) {
  const LiveRange& x = range(a);
  const LiveRange& y = range(b);
  if (x.start > y.end || y.start > x.end) return false;
  if (x.end == y.start) return !writes_over(b, a);
  if (y.end == x.start) return !writes_over(a, b);
  return true;
}

/// Whether `user` may be written over `operand`, which dies where `user` is made.
bool Assigner::writes_over(ValueId user, ValueId operand) {
  const Position& at = value(user).defined_at;
  const Computation& computation = program_[at.instruction.computation];
  const auto operands = computation.operands(at.instruction.instruction);
  for (std::uint32_t k = 0; k < operands.size(); ++k) {
    const std::uint32_t nodes = computation.shape_of(operands[k]).node_count();
    for (ShapeNodeIndex node = 0; node < nodes; ++node) {
      const Operand element{operands[k].instruction, operands[k].node + node};
      if (out_.values.at(at.instruction.computation, element) == operand &&
          sharing_.may_share(at.instruction, k, node, at.node))
        return true;
    }
  }
  return false;
}

/// Whether a copy reads what lies in the allocation.
bool Assigner::copies_from(ValueId copy, AllocationId source) const {
  const Position& at = value(copy).defined_at;
  return std::ranges::any_of(
      program_[at.instruction.computation].operands(at.instruction.instruction),
      [&](const Operand& operand) {
        const auto cell = out_.cell_of[out_.values.at(at.instruction.computation, operand)];
        return cell && out_.cells[*cell].allocation == source;
      });
}

/// Results get allocations of their own, temporaries wait for the heap.
void Assigner::assign_new(BufferId id) {
  if (buffer(id).live_out)
    add_reusable(allocate(id), id);
  else
    heap_of(buffer(id).space).buffers.push_back(id);
}

Assigner::Heap& Assigner::heap_of(MemorySpace space) {
  const auto at = std::ranges::lower_bound(heaps_, space, {}, &Heap::space);
  if (at != heaps_.end() && at->space == space) return *at;
  return *heaps_.insert(at, Heap{.space = space});
}

/// What the device needs if no heap has a gap.
Bytes Assigner::least_total() {
  for (const Heap& heap : heaps_)
    out_.allocations[heap.allocation].size = smallest_heap(heap.plan.items);
  Bytes total(0);
  for (const Allocation& allocation : combine(out_.allocations).allocations)
    if (!is_host(allocation.space)) total += allocation.size;
  return total;
}

void Assigner::run_heap(const Heap& heap) {
  const HeapPlan& plan = heap.plan;
  const HeapResult packed = pack_heap(plan.items);
  out_.heaps.push_back({heap.space, packed.size});
  out_.effort.heap_ranges += packed.ranges_seen;
  out_.allocations[heap.allocation].size = packed.size;
  const std::size_t first_cell = out_.cells.size();
  for (std::size_t i = 0; i < plan.items.size(); ++i)
    out_.cells.push({heap.allocation, packed.offsets[i], largest_use(plan.items[i])});
  for (const BufferId id : heap.buffers)
    for (const ValueId member : buffer(id).values)
      if (const auto item = plan.item_of[member]) out_.cell_of[member] = CellId(first_cell + *item);
}

void Assigner::combine_temporaries() {
  Combined combined = combine(out_.allocations);
  for (Cell& cell : out_.cells) {
    const auto [id, base] = combined.moved[cell.allocation];
    cell = {id, cell.offset + base, cell.size};
  }
  out_.allocations = std::move(combined.allocations);
}

}  // namespace

MemoryAssignment assign_memory(const Program& program, const Schedule& schedule) {
  return assign_memory(program, find_lifetimes(program, schedule));
}

MemoryAssignment assign_memory(const Program& program, Lifetimes lifetimes) {
  return *Assigner(program, std::move(lifetimes)).run(std::nullopt);
}

MemoryAssignment assign_outside_heaps(const Program& program, Lifetimes lifetimes) {
  return Assigner(program, std::move(lifetimes)).run_outside_heaps();
}

std::optional<MemoryAssignment> assign_memory_below(const Program& program,
                                                    const Schedule& schedule, Bytes limit) {
  return Assigner(program, find_lifetimes(program, schedule)).run(limit);
}

}  // namespace spillway
