// A compiled program: shared immutable computations, an entry, and what the caller may donate.
//
// A program derived from another (a what-if) copies the table of computation pointers and replaces
// the few it changes; ids stay the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/base/result.h"
#include "model/program/computation.h"
#include "model/program/xla_assignment.h"

namespace spillway {

/// The caller allows the output at `output` to use the buffer of the parameter at `parameter_node`.
struct InputOutputAlias {
  ShapeNodeIndex output = 0;  ///< node of the entry root's shape
  std::uint32_t parameter = 0;
  ShapeNodeIndex parameter_node = 0;
};

/// The caller gives the parameter's buffer away, for whichever output XLA finds for it; without an
/// InputOutputAlias of the same piece none was found, and nothing is saved.
struct BufferDonor {
  std::uint32_t parameter = 0;
  ShapeNodeIndex parameter_node = 0;
};

/// Where a line of the user's program stands: tables that `stack_frame_id` in metadata refers to.
/// Ids start at 1 as in the text; 0 is none.
struct StackFrames {
  struct Location {
    std::uint32_t file = 0, line = 0;
  };
  struct Frame {
    std::uint32_t location = 0;
  };
  std::vector<std::string_view> files;
  std::vector<Location> locations;
  std::vector<Frame> frames;
};

struct Program {
  std::string name;
  std::string path;  ///< the file it was read from, empty when made in memory
  /// The text it was read from, which names and attributes are views into; null when made in
  /// memory or read from a proto.
  std::shared_ptr<const std::string> text;
  /// Whether text order is the order of execution.
  bool is_scheduled = false;
  std::int64_t num_partitions = 1;
  std::int64_t replica_count = 1;
  IdVector<ComputationId, std::shared_ptr<const Computation>> computations;
  ComputationId entry;
  std::vector<InputOutputAlias> aliases;
  std::vector<BufferDonor> donors;
  std::shared_ptr<const StackFrames> stack_frames;
  /// The text has get-tuple-element instructions, as XLA wrote before it printed %x#1 (July 2026).
  /// A proto always has them; there it says whether it is as old.
  bool has_explicit_elements = false;
  /// Modules that the dump folder held, of which this one was picked; 1 for a file.
  std::size_t modules_in_folder = 1;
  /// XLA's own assignment of memory to the program as it was read; null where the file has none.
  std::shared_ptr<const XlaBufferAssignment> xla_assignment;

  const Computation& operator[](ComputationId id) const { return *computations[id]; }
  const Instruction& operator[](InstructionId id) const {
    return (*computations[id.computation])[id.instruction];
  }
  const Computation& entry_computation() const { return *computations[entry]; }
  std::int64_t device_count() const { return num_partitions * replica_count; }
  std::size_t instruction_count() const;
};

/// An error about `piece`, a name or an attribute of the program: with line and column where it
/// stands in the program's text, without when a rewrite made it.
Error error_at(const Program& program, std::string_view piece, std::string text,
               std::string advice = "");

/// Trip count of a while that XLA knows, from its backend_config. One that does not fit 64 bits is
/// the largest number that does.
std::optional<std::int64_t> known_trip_count(const Computation& computation, InstructionIndex loop);

/// "file.py:164" of an instruction, the innermost user frame; empty when the text has none.
std::string source_line(const Program& program, InstructionId id);

/// Whether an instruction only renames or groups what others produced: parameter, tuple, bitcast,
/// constant, after-all, … These run nothing on the device.
bool is_free(const Instruction& instruction);

/// Whether XLA's rematerialisation made an instruction: its clones have a suffix in their names,
/// ".remat" or ".remat2".
bool is_remat_clone(const Instruction& instruction);

}  // namespace spillway
