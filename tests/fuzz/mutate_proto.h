// Damages a serialised HloProto: its fields, as another writer would fill them, and its bytes.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::testing {

/// `bytes` with one to four things changed: operands, ids, operations, shapes, calls, schedules,
/// allocations exchanged or made up, bytes flipped, the end cut off. The same seed, the same
/// result.
std::string mutate_proto(const std::string& bytes, std::uint32_t seed);

}  // namespace spillway::testing
