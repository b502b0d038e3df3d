#include "model/hlo/proto_assignment.h"

#include <fmt/format.h>

#include "model/hlo/id_table.h"
#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_values.h"

namespace spillway::hlo {
namespace {

/// Sums of a million of them fit 64 bits.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 43;
constexpr std::size_t kMostAllocations = 1'000'000;
/// Longer ones are cut: a file could have millions of buffers that name one of them.
constexpr std::size_t kLongestName = 256;
constexpr int kDeepestPath = 64;

bool is_size(std::int64_t bytes) { return bytes >= 0 && bytes <= kMostBytes; }

class AssignmentMaker {
 public:
  explicit AssignmentMaker(const pb::HloFile& file) : file_(file) {
    for (const pb::HloComputation& computation : file.module().computations())
      for (const pb::HloInstruction& in : computation.instructions())
        names_.insert(in.id(), &in.name());
    for (const pb::LogicalBuffer& buffer : file.buffer_assignment().buffers())
      buffers_.insert(buffer.id(), &buffer);
  }

  /// Returns what is wrong, or nothing.
  std::string run() {
    const auto& allocations = file_.buffer_assignment().allocations();
    if (static_cast<std::size_t>(allocations.size()) > kMostAllocations)
      return "has more allocations than any program";
    for (const pb::BufferAllocation& allocation : allocations) {
      if (!is_size(allocation.size()))
        return fmt::format("allocation {} has {} bytes", allocation.index(), allocation.size());
      if (allocation.color() < 0 || allocation.color() > 255)
        return fmt::format("allocation {} is in memory space {}", allocation.index(),
                           allocation.color());
      made.allocations.push_back(to_allocation(allocation));
      for (const pb::AssignedBuffer& assigned : allocation.assigned()) {
        const auto* const buffer = buffers_.find(assigned.buffer());
        if (buffer == nullptr)
          return fmt::format("allocation {} holds buffer {}, which is not there",
                             allocation.index(), assigned.buffer());
        if (!is_size(assigned.offset()) || !is_size(assigned.size()))
          return fmt::format("buffer {} has {} bytes at {}", assigned.buffer(), assigned.size(),
                             assigned.offset());
        made.allocations.back().buffers.push_back(
            {name_of(**buffer), Bytes(assigned.offset()), Bytes(assigned.size())});
      }
    }
    return "";
  }

  XlaBufferAssignment made;

 private:
  static XlaAllocation to_allocation(const pb::BufferAllocation& from) {
    XlaAllocation allocation;
    allocation.index = from.index();
    allocation.size = Bytes(from.size());
    allocation.space = static_cast<MemorySpace>(from.color());
    if (from.is_parameter()) allocation.parameter = from.parameter();
    allocation.constant = from.is_constant();
    allocation.thread_local_memory = from.is_thread_local();
    allocation.live_out = from.maybe_live_out();
    allocation.tuple_table = from.is_tuple();
    return allocation;
  }

  /// Protos before 2023 name the instruction instead of its id.
  std::string name_of(const pb::LogicalBuffer& buffer) {
    const pb::BufferLocation& at = buffer.defined_at();
    const auto* const named = names_.find(at.instruction_id());
    std::string name = (named == nullptr ? at.instruction_name() : **named).substr(0, kLongestName);
    if (at.path().empty() || at.path_size() > kDeepestPath) return name;
    name += '{';
    append_numbers(name, at.path());
    return name + '}';
  }

  const pb::HloFile& file_;
  IdTable<const std::string*> names_;
  IdTable<const pb::LogicalBuffer*> buffers_;
};

}  // namespace

Result<XlaBufferAssignment> make_xla_assignment(const pb::HloFile& file, const std::string& path) {
  AssignmentMaker maker(file);
  if (std::string problem = maker.run(); !problem.empty())
    return Error{ErrorKind::kInput,
                 "in XLA's buffer assignment, " + problem,
                 {path, {}, {}},
                 "",
                 "the file may be damaged"};
  return std::move(maker.made);
}

}  // namespace spillway::hlo
