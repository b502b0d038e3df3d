// How much of its operands an operation reads, and a fusion of its parameters: slices at their
// size, updates in place at the size of the update.
#pragma once

#include <optional>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// An update of a part of an array, which can be made in place: dynamic-update-slice and scatter.
struct Update {
  Operand array;
  std::int64_t elements = 0;  ///< of the update
  Bytes bytes;
};
std::optional<Update> update_of(const Computation& computation, InstructionIndex i);

/// The share (0 to 1) of operand `k` that a whole result of `i` reads. An update that is made in
/// place does not read what it leaves as it is.
double share_read(const Computation& computation, InstructionIndex i, std::size_t k, bool in_place);

/// Follows backwards from the results of a fusion which share of each value is needed.
///
///   param 0   f32[126,8]   1/126   ^
///   slice     f32[1,8]     1       |   the root is needed whole; so is the slice; the parameter
///   multiply  f32[1,8]     1       |   only where the slice lies
///
/// Values read element by element are needed where their readers are, so that two readers of the
/// same elements count once; what is sliced out of a value in several places adds up.
class FusionDemand {
 public:
  FusionDemand(const Program& program, ComputationId fused);

  /// How much of a value is read, 0 to 1.
  double share_of(InstructionIndex i) const;

  /// The updates whose results the fusion writes into one of its parameters in place.
  const std::vector<InstructionIndex>& in_place() const { return in_place_; }

 private:
  struct Need {
    bool whole = false;
    double sliced = 0;  ///< what slices of this very value need, as a share
    /// Values element by element like this one of which only a share is needed, itself perhaps.
    std::vector<InstructionIndex> as_in;
  };

  void need_results();
  void find_in_place(Operand result);
  void propagate(InstructionIndex i);
  bool is_in_place(InstructionIndex i) const;
  bool reads_element_by_element(InstructionIndex i) const;
  std::vector<double> nested_shares(InstructionIndex i) const;
  void inherit(InstructionIndex operand, InstructionIndex reader);
  void add(InstructionIndex operand, double amount);

  const Program& program_;
  const Computation& computation_;
  std::vector<Need> needs_;
  std::vector<InstructionIndex> in_place_;
};

}  // namespace spillway
