// The devices of a program that take part in one of its collectives together.
#pragma once

#include "model/cost/replica_groups.h"
#include "model/program/program.h"

namespace spillway {

/// Groups of ids of devices, where a device is replica x partitions + partition; a
/// collective-permute has a group for each pair of sender and receiver. What the listed ids stand
/// for depends on channel_id and use_global_device_ids, as XLA's GetCollectiveOpGroupMode has it.
/// Empty when the text is not understood, or names what the program has not.
std::optional<std::vector<IdGroup>> device_groups(const Program& program, InstructionId collective);

}  // namespace spillway
