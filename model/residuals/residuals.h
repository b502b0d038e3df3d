// Residuals: what the forward loop over layers saves and the backward loop reads again. In a
// scanned program each is one stacked array, written slice by slice in one loop and read slice by
// slice in a later one.
//
//   forward loop    … producer … write slice ─┐
//                                             stack [layers, …]   in HBM or in pinned host memory
//   backward loop   read slice … use … use  ──┘
#pragma once

#include <string>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/names.h"

namespace spillway {

using ResidualId = Id<struct ResidualTag>;

enum class Placement { kDevice, kPinnedHost };
std::string_view name_of(Placement placement);

/// How a name was found for a residual.
enum class NameEvidence {
  kNone,    ///< no names given, or none of this shape
  kShape,   ///< the only name with this shape and layer count
  kCarry,   ///< it is the layer's input, and so is the first name of that shape
  kSource,  ///< the name is given a few lines behind what produces it
  kOrder,   ///< several of this shape, as many names as residuals: matched in order
  kGuess,   ///< several of this shape, but not equally many: matched in order
};
std::string_view name_of(NameEvidence evidence);

/// Something that touches a stack: operand number `operand` of `instruction`, which stands in the
/// body of `loop` or in what a start there wraps.
struct StackAccess {
  InstructionId instruction;
  std::uint32_t operand = 0;
  InstructionId loop;
};

struct Residual {
  std::string id;  ///< "r0", "r1", … in the order the forward loop carries them
  std::vector<std::string> names;
  NameEvidence evidence = NameEvidence::kNone;
  std::string source;   ///< "llama2.py:164" of what produces it, where XLA tells it
  std::string op_name;  ///< JAX operation that produces it
  Shape slice;          ///< what one layer writes, a 1 for the layer included
  std::int64_t layers = 0;
  Bytes bytes_per_layer, total_bytes;
  Placement placement = Placement::kDevice;
  bool is_layer_input = false;
  /// XLA copies or transposes the whole stack between the loops, so that what is read is a second
  /// array; such a residual is reported but not moved.
  bool copied_between_loops = false;
  /// Slices are also read or written outside the loops: XLA has peeled an iteration off, to
  /// pipeline the copies.
  bool peeled = false;

  // Positions in the flattened schedule, of one iteration each.
  LogicalTime defined_at, last_forward_use, first_backward_use, last_use;

  // Where it lives in the program.
  BufferId stack;
  InstructionId forward_loop, backward_loop;
  StackAccess write;               ///< in the forward loop
  std::vector<StackAccess> reads;  ///< in the backward loop, and in later ones if there are any
};

/// "query_proj", or "a=b" for two names on one value; empty without a name.
std::string joined_names(const Residual& residual);

/// The same, or the id of a residual without a name.
std::string label_of(const Residual& residual);

struct ResidualTable {
  IdVector<ResidualId, Residual> residuals;
  std::vector<std::string> unmatched_names;  ///< names of the sidecar that no residual carries
};

/// Finds the residuals of a scanned program. Empty when no stack crosses from one loop to another.
ResidualTable find_residuals(const Program& program, const Lifetimes& memory,
                             const NameList& names);

}  // namespace spillway
