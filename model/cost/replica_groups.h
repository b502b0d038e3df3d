// Who takes part in a collective together, out of every form that HLO text has for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway {

/// Ids of devices, replicas or partitions that exchange data with each other.
using IdGroup = std::vector<std::int64_t>;

/// The groups of a replica_groups attribute, in any of its forms:
///   {{0,1},{2,3}}                                    listed
///   [2,4]<=[8]        [8,16]<=[16,8]T(1,0)           a reshaped and transposed count
///   mesh['x'=16,'y'=8] {'x'}                         along axes of a mesh; also 'x':(2)4, a part
///   of mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}       an axis, and with devices out of
///   order
///   {}                                               no groups: everybody together
/// Empty when the text is none of these, or names a device twice.
std::optional<std::vector<IdGroup>> parse_replica_groups(std::string_view text);

/// {{0,1},{1,0}}: who sends to whom, as groups of two.
std::optional<std::vector<IdGroup>> parse_source_target_pairs(std::string_view text);

}  // namespace spillway
