// Turns saved residuals into recomputed ones: (program, which) -> program. What the forward loop
// saved, the backward loop computes again from what is still saved, the layer's input and the
// parameters, as jax.checkpoint does.
//
//   before   forward   q = f(x);  stack[i] = q          backward  … g(stack[i]) …
//   after    forward   q = f(x)                         backward  … g(f(x)) …     x from its own
//   stack
//
// The closure of producers is copied as XLA had compiled it for the forward loop, collectives among
// it; what the backward loop computes already is not computed twice, and what nobody needs any more
// goes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/memory/assignment.h"
#include "model/residuals/residuals.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {

/// What names of instructions that compute something again end with.
inline constexpr std::string_view kRecomputedSuffix = ".recompute";
/// Whether a rewrite put an instruction here to compute something again.
bool is_recomputed(const Instruction& instruction);

class RecomputeRewrite {
 public:
  /// `memory` and `residuals` are those of `program`; all three must outlive it.
  RecomputeRewrite(const Program& program, const Lifetimes& memory, const ResidualTable& residuals);

  /// Why a residual cannot be recomputed; empty when it can, whatever else is recomputed too.
  const std::string& why_not(ResidualId residual) const { return why_not_[residual]; }

  /// The program with these recomputed. Those that cannot be stay saved.
  Program run(const std::vector<ResidualId>& recomputed) const;

 private:
  friend class LayerRecomputation;
  /// A forward loop, the backward loop that reads what it saves, and what that is.
  struct Layers {
    InstructionId forward, backward;
    ValueKeys keys;  ///< of the forward body
    std::vector<ResidualId> residuals;
    std::map<ResidualId, ValueKey> key_of = {};  ///< of what each saves
    std::map<ValueKey, ResidualId> saved = {};   ///< the first that saves it
    /// What the forward loop's counter is, in terms of the backward loop's: offset + factor x it.
    std::int64_t offset = 0, factor = 1;
  };

  void find_layers();
  std::string find_reason(const Layers& layers, ResidualId residual) const;

  const Program& program_;
  const Lifetimes& memory_;
  const ResidualTable& residuals_;
  std::vector<Layers> layers_;
  IdVector<ResidualId, std::string> why_not_;
};

}  // namespace spillway
