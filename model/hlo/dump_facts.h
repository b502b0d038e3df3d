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

/// What the names of all files of one module begin with: "module_0007.jit_step" of
/// "module_0007.jit_step.sm_10.0a_gpu_after_optimizations.txt". Empty for a name of another kind.
std::string module_prefix(const std::string& file_name);

/// The compute capability that an optimised module was compiled for, as its file's name says it:
/// "10.0" of "….sm_10.0a_gpu_after_optimizations.txt". Empty where it does not.
std::string capability_in_name(const std::string& program_path);

/// Looks beside the optimised module at `program_path` for files of the same module. A file that
/// cannot be read says nothing.
DumpFacts read_dump_facts(const std::string& program_path);

/// Whether XLA's thunks give copies to and from the host a stream of their own each way, as the
/// dump's thunk sequence shows: false where it names streams and none of these. Empty where there
/// is no such file, or one that names no streams (jaxlib 0.8). Reads that file and no other.
std::optional<bool> thunks_have_copy_streams(const std::string& program_path);

}  // namespace spillway
