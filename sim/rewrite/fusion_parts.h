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

/// `inner` without output number `output` of its tuple, and without what only that needed. The
/// root is a tuple no longer when one output is left.
FusionPart drop_output(const Computation& inner, std::uint32_t output, std::string_view name,
                       const std::shared_ptr<RewriteStorage>& storage);

/// `inner` with what its parameter number `parameter` stood for computed inside: by `slice`, whose
/// own parameters come behind those that are left.
std::shared_ptr<const Computation> compute_parameter(
    const Computation& inner, std::uint32_t parameter, const Computation& slice,
    std::string_view name, const std::shared_ptr<RewriteStorage>& storage);

/// A slice update that makes one of a fusion's outputs, behind renamings.
struct FusedUpdate {
  std::uint32_t output = 0;      ///< its number; 0 where the fusion has but one
  InstructionIndex instruction;  ///< the update
};
/// The one that updates a parameter in place, if there is one.
std::optional<FusedUpdate> find_update(const Computation& fused, std::uint32_t parameter);

/// The slices of one parameter that a fusion computes with, behind renamings; empty when it
/// computes nothing with them, reads anything else of it, or slices of different places or sizes.
std::vector<InstructionIndex> find_slices(const Computation& fused, std::uint32_t parameter);

/// A copy of `inner` in which these parameters, and what is updated in place or renamed from them,
/// lie in `space`.
std::shared_ptr<const Computation> move_parameters(const Computation& inner,
                                                   const std::vector<std::uint32_t>& parameters,
                                                   MemorySpace space,
                                                   const std::shared_ptr<RewriteStorage>& storage);

}  // namespace spillway
