#include "model/cost/device_groups.h"

#include <numeric>

namespace spillway {
namespace {

/// What the ids of a collective are ids of.
enum class GroupMode { kReplicas, kPartitions, kReplicasWithAllPartitions, kDevices };

GroupMode group_mode(const Computation& computation, InstructionIndex i) {
  const bool has_channel = computation.attribute(i, "channel_id").has_value();
  if (has_attribute(computation, i, "use_global_device_ids", "true")) return GroupMode::kDevices;
  if (!has_channel) return GroupMode::kReplicas;
  switch (computation[i].opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kReduceScatter:
    case Opcode::kReduceScatterStart:
      return GroupMode::kReplicasWithAllPartitions;
    default:
      return GroupMode::kPartitions;
  }
}

std::vector<IdGroup> to_devices(const std::vector<IdGroup>& groups, GroupMode mode,
                                std::int64_t replicas, std::int64_t partitions) {
  std::vector<IdGroup> devices;
  switch (mode) {
    case GroupMode::kDevices:
      return groups;
    case GroupMode::kReplicas:
      for (const IdGroup& group : groups)
        for (std::int64_t partition = 0; partition < partitions; ++partition) {
          IdGroup& out = devices.emplace_back();
          for (const std::int64_t replica : group) out.push_back(replica * partitions + partition);
        }
      return devices;
    case GroupMode::kPartitions:
      for (const IdGroup& group : groups)
        for (std::int64_t replica = 0; replica < replicas; ++replica) {
          IdGroup& out = devices.emplace_back();
          for (const std::int64_t partition : group)
            out.push_back(replica * partitions + partition);
        }
      return devices;
    case GroupMode::kReplicasWithAllPartitions:
      break;
  }
  for (const IdGroup& group : groups) {
    IdGroup& out = devices.emplace_back();
    for (const std::int64_t replica : group)
      for (std::int64_t partition = 0; partition < partitions; ++partition)
        out.push_back(replica * partitions + partition);
  }
  return devices;
}

/// Ids of a mode are 0, 1, … below this.
std::int64_t number_of_ids(GroupMode mode, std::int64_t replicas, std::int64_t partitions) {
  switch (mode) {
    case GroupMode::kReplicas:
    case GroupMode::kReplicasWithAllPartitions:
      return replicas;
    case GroupMode::kPartitions:
      return partitions;
    case GroupMode::kDevices:
      break;
  }
  return replicas * partitions;
}

/// Whether groups hold something, all ids are there, and none comes more often than once, or than
/// twice where groups are pairs of sender and receiver: so that groups hold no more than the
/// program.
bool are_ids(const std::vector<IdGroup>& groups, std::int64_t count, std::size_t most_often) {
  std::size_t listed = 0;
  for (const IdGroup& group : groups) {
    if (group.empty()) return false;
    listed += group.size();
    for (const std::int64_t id : group)
      if (id < 0 || id >= count) return false;
  }
  return listed <= most_often * static_cast<std::size_t>(count);
}

IdGroup everybody(std::int64_t count) {
  IdGroup all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::optional<std::vector<IdGroup>> device_groups(const Program& program,
                                                  InstructionId collective) {
  const Computation& computation = program[collective.computation];
  const InstructionIndex i = collective.instruction;
  const GroupMode mode = group_mode(computation, i);
  const auto pairs = computation.attribute(i, "source_target_pairs");
  auto groups =
      pairs ? parse_source_target_pairs(*pairs)
            : parse_replica_groups(computation.attribute(i, "replica_groups").value_or("{}"));
  if (!groups) return std::nullopt;
  const bool together = groups->empty() || (groups->size() == 1 && groups->front().empty());
  const std::int64_t count = number_of_ids(mode, program.replica_count, program.num_partitions);
  if (together && !pairs) groups = {everybody(count)};
  if (!are_ids(*groups, count, pairs ? 2 : 1)) return std::nullopt;
  return to_devices(*groups, mode, program.replica_count, program.num_partitions);
}

}  // namespace spillway
