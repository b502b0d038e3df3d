// Residuals of a step whose layers are not scanned: plain values that the forward part of the entry
// makes and the backward part of a jax.checkpoint reads again, one a layer.
//
//   forward    x0 … q0 … x1 … q1 … loss
//   backward                            … reads x1, q1 …  … reads x0, q0 …
//   residuals  x: {x0, x1}   q: {q0, q1}
#pragma once

#include <string>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"

namespace spillway {

using UnrolledId = Id<struct UnrolledTag>;

/// The value of one layer.
struct UnrolledValue {
  Operand value;  ///< an array of the entry, as the forward part makes it
  struct Read {
    InstructionIndex reader;
    std::uint32_t operand = 0;  ///< which is the value, renamed or brought back from the host
  };
  std::vector<Read> reads;  ///< in the backward part, in the order of the text
  // Positions in the flattened schedule.
  LogicalTime defined_at, last_forward_use, first_backward_use, last_use;
};

struct UnrolledResidual {
  std::string id;  ///< "u0", "u1", … in the order of the forward part
  std::vector<std::string> names;
  NameEvidence evidence = NameEvidence::kNone;
  std::string source, op_name;  ///< of what makes it in the last layer
  Shape shape;                  ///< of one layer; under the renaming that fits a name, if one does
  Placement placement = Placement::kDevice;
  bool is_layer_input = false;
  std::vector<UnrolledValue> layers;

  Bytes bytes_per_layer() const { return shape.bytes(); }
  Bytes total_bytes() const;
};

/// What jax.checkpoint's optimization barrier says of the backward part of one layer: everything in
/// it waits for the gradient that arrives at the layer.
struct UnrolledLayer {
  std::vector<InstructionIndex> gradients;  ///< that arrive
  std::vector<InstructionIndex> first;      ///< instructions that read nothing that the layer made
};

struct UnrolledTable {
  IdVector<UnrolledId, UnrolledResidual> residuals;
  std::vector<UnrolledLayer> layers;
  /// Of each instruction of the entry: the layer whose backward part it belongs to.
  std::vector<std::optional<std::uint32_t>> layer_of;
  std::vector<std::string> unmatched_names;  ///< names of the sidecar that no residual carries
};

/// Finds the residuals of an unrolled program; empty where no values cross layer by layer, as in a
/// scanned one.
UnrolledTable find_unrolled_residuals(const Program& program, const Lifetimes& memory,
                                      const NameList& names);

}  // namespace spillway
