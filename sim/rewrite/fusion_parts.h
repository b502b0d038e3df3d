// Pieces of fusions as computations of their own: what a rewrite needs to pull a slice out of a
// fusion, or to hand one in.
#pragma once

#include <memory>
#include <vector>

#include "sim/rewrite/editor.h"

namespace spillway {

/// A computation cut out of another, and which parameters of the other it still takes, in order.
/// What was cut at comes as further parameters behind these, in the order it was given.
struct FusionPart {
  std::shared_ptr<const Computation> computation;
  std::vector<std::uint32_t> parameters;
};

/// The part of `inner` that computes `root`, with the results of `cuts` handed in from outside. A
/// cut is an instruction and the shape in which its value arrives; several cuts may share one
/// parameter when they are given as one group.
struct Cut {
  std::vector<InstructionIndex> instructions;
  Shape shape;  ///< of the parameter; a bitcast follows where an instruction's own shape differs
};
FusionPart cut_fusion(const Computation& inner, Operand root, const std::vector<Cut>& cuts,
                      std::string_view name, const std::shared_ptr<RewriteStorage>& storage);

/// A copy of `inner` in which these parameters, and what is updated in place or renamed from them,
/// lie in `space`.
std::shared_ptr<const Computation> move_parameters(const Computation& inner,
                                                   const std::vector<std::uint32_t>& parameters,
                                                   MemorySpace space,
                                                   const std::shared_ptr<RewriteStorage>& storage);

}  // namespace spillway
