// The buffer assignment that a HloProto holds beside its module.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/program/xla_assignment.h"

namespace spillway::pb {
class HloFile;
}  // namespace spillway::pb

namespace spillway::hlo {

/// Sizes that no memory has, and buffers that are not there, are errors.
Result<XlaBufferAssignment> make_xla_assignment(const pb::HloFile& file, const std::string& path);

}  // namespace spillway::hlo
