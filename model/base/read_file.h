// The bytes of a file, unpacked when it is gzip (decided by its first bytes, not by its name).
#pragma once

#include <memory>
#include <string>

#include "model/base/result.h"
#include "model/base/units.h"

namespace spillway {

/// The largest text that is read, packed or not; more is refused with advice.
inline constexpr Bytes kMaxFileBytes{std::int64_t{2} << 30};

/// The content of `path`, a regular file: pipes and devices may never end. Errors: cannot be
/// opened, not a regular file, empty, damaged gzip, too large, or packed tighter than any HLO is.
Result<std::shared_ptr<const std::string>> read_file(const std::string& path);

}  // namespace spillway
