// What stands in front of the first computation: the line HloModule, and tables of source lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/hlo/cursor.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// An entry of input_output_alias={ {0}: (1, {}, may-alias) }; paths, since no shape is known yet.
struct AliasPaths {
  std::string_view at;  ///< where it stands
  std::vector<std::int64_t> output, parameter_path;
  std::uint32_t parameter = 0;
};

/// An entry of buffer_donor={ (0, {1}) }.
struct DonorPath {
  std::string_view at;
  std::vector<std::int64_t> parameter_path;
  std::uint32_t parameter = 0;
};

struct ModuleHeader {
  std::string name;
  bool is_scheduled = false;
  std::int64_t num_partitions = 1, replica_count = 1;
  std::vector<AliasPaths> aliases;
  std::vector<DonorPath> donors;
};

/// HloModule name, is_scheduled=true, … A text that begins with a computation has no header.
ModuleHeader read_module_header(Cursor& cursor);

/// The tables FileNames, FunctionNames, FileLocations and StackFrames; null where there are none.
std::shared_ptr<const StackFrames> read_stack_frames(Cursor& cursor);

/// Nodes for the paths, once the entry is known. Fails the cursor on paths that lead nowhere.
std::vector<InputOutputAlias> resolve_aliases(const std::vector<AliasPaths>& aliases,
                                              const Computation& entry, Cursor& cursor);
std::vector<BufferDonor> resolve_donors(const std::vector<DonorPath>& donors,
                                        const Computation& entry, Cursor& cursor);

}  // namespace spillway::hlo
