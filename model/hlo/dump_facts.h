// What else a dump folder tells about a program than the optimised module: what was asked for
// before XLA went to work, and for which device it was compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/units.h"

namespace spillway {

/// Each is empty where the dump has no such file.
struct DumpFacts {
  /// Values that the step asked to have in pinned host memory: annotations in the module before
  /// optimisation.
  std::optional<std::int64_t> host_placements_asked;
  /// device_memory_size of the device that XLA compiled for.
  std::optional<Bytes> compiled_for_hbm;
};

/// Looks beside the optimised module at `program_path` for files of the same module. A file that
/// cannot be read says nothing.
DumpFacts read_dump_facts(const std::string& program_path);

}  // namespace spillway
