// Device memory as XLA's latency-hiding scheduler counts it: buffers of space 0 alone, walking
// backwards through the order. What it knows is not what is allocated (model/memory).
#pragma once

#include <span>
#include <vector>

#include "model/memory/live_range.h"
#include "sim/schedule/latency_hiding/schedule_graph.h"

namespace spillway {

/// Of every buffer, what the count needs to know.
class CountedBuffers {
 public:
  /// All must outlive it.
  CountedBuffers(const Program& program, const FlatSchedule& flat, const ValueTable& values,
                 const Liveness& liveness);

  std::size_t size() const { return counted_.size(); }
  std::int64_t bytes(BufferId buffer) const { return counted_[buffer].bytes; }
  /// Whether its bytes are there before who reads it is scheduled: not those of other memory
  /// spaces, and not those of the entry's parameters, which are there throughout.
  bool begins(BufferId buffer) const {
    return counted_[buffer].is_counted && !counted_[buffer].is_argument;
  }
  /// Whether an instruction, or something that it runs, is the first to show the buffer.
  bool ends_with(BufferId buffer, InstructionId id) const;

  const Program& program() const { return program_; }
  BufferId at(InstructionId id, ShapeNodeIndex node) const {
    return liveness_.buffer_of[values_.at(id, node)];
  }

 private:
  struct Counted {
    std::int64_t bytes = 0;
    InstructionId first;  ///< to show it
    bool is_counted = false, is_argument = false;
    bool is_made_by_first = false;  ///< rather than handed on by it
  };
  const Program& program_;
  const FlatSchedule& flat_;
  const ValueTable& values_;
  const Liveness& liveness_;
  IdVector<BufferId, Counted> counted_;
};

/// Which buffers begin with each node, on the way backwards, and which end.
class NodeBuffers {
 public:
  NodeBuffers(const CountedBuffers& buffers, ComputationId id, const ElementOrder& nodes);

  /// A buffer that a node reads twice is there twice, and XLA counts it twice.
  std::span<const BufferId> begun(NodeIndex node) const { return part(2 * node); }
  std::span<const BufferId> ended(NodeIndex node) const { return part(2 * node + 1); }

 private:
  std::span<const BufferId> part(std::size_t number) const {
    return std::span(ids_).subspan(first_[number], first_[number + 1] - first_[number]);
  }
  std::vector<BufferId> ids_;
  std::vector<std::uint32_t> first_;
};

/// The count on the way through one computation.
class MemoryPressure {
 public:
  /// What a node would do to it.
  struct Change {
    std::int64_t net = 0;
    std::int64_t peak = 0;  ///< on the way, more than before
  };

  /// `around` are the buffers that live when the computation ends. The counted ones must outlive
  /// it.
  MemoryPressure(const CountedBuffers& buffers, const std::vector<BufferId>& around);

  /// Bytes that live now.
  std::int64_t usage() const { return around_ + within_; }
  /// The most so far, without what lives around the computation.
  std::int64_t peak() const { return peak_; }

  /// `inner` is the peak of what the node runs, by itself.
  Change change(const NodeBuffers& of_nodes, NodeIndex node, std::int64_t inner) const;
  void add(const NodeBuffers& of_nodes, NodeIndex node, std::int64_t inner);

  std::vector<BufferId> live() const;

 private:
  const CountedBuffers* buffers_;
  IdVector<BufferId, std::uint8_t> is_live_;
  std::int64_t around_ = 0, within_ = 0, peak_ = 0;
};

/// Of each computation what lives around it and the most that lives in it, in an order of
/// execution.
struct ProgramPressure {
  IdVector<ComputationId, std::vector<BufferId>> around;
  IdVector<ComputationId, std::int64_t> peak;

  /// The most that what an instruction runs needs by itself.
  std::int64_t inner_peak(const Computation& computation, InstructionIndex i) const;
};
ProgramPressure find_pressure(const CountedBuffers& buffers,
                              const IdVector<ComputationId, ElementOrder>& orders);

}  // namespace spillway
