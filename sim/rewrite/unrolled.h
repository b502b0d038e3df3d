// Moves and recomputes what an unrolled step saves: (program, which, layer by layer) -> program.
//
//   keep        forward  q = f(x)                       backward  … g(q) …
//   offload     forward  q = f(x); host = copy(q)       backward  … g(copy(host)) …
//   recompute   forward  q = f(x)                       backward  … g(f(x)) …
//
// As jax.checkpoint's optimization barrier says, and as XLA obeys while it orders: what is reloaded
// or computed again, and all else of a layer's backward part, waits for the gradient that arrives
// at the layer and for the layer's copies to the host. That becomes control dependencies. The order
// of the text is right but nobody's: how much memory an unrolled step needs is decided by XLA's
// order (sim/schedule/reorder.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/plan/policy.h"
#include "model/residuals/step_parts.h"
#include "model/residuals/unrolled.h"
#include "sim/rewrite/value_keys.h"

namespace spillway {

struct UnrolledChange {
  UnrolledId residual;
  std::uint32_t layer = 0;
  Choice choice = Choice::kKeep;
};

class UnrolledRewrite {
 public:
  /// `table` is that of `program`; both must outlive it.
  UnrolledRewrite(const Program& program, const UnrolledTable& table);

  /// Why a residual cannot be recomputed; empty when it can.
  std::string why_not_recomputed(UnrolledId residual) const;

  /// The program with these changed; what is not listed stays as it is. Changes that ask for what
  /// is already so, or for what cannot be, do nothing.
  Program run(const std::vector<UnrolledChange>& changes) const;

 private:
  friend class UnrolledEdit;
  void find_known();

  const Program& program_;
  const UnrolledTable& table_;
  StepParts parts_;
  std::optional<ValueKeys> keys_;  ///< of the entry; empty where there is nothing to rewrite
  std::map<Operand, std::pair<UnrolledId, std::uint32_t>>
      saved_;  ///< what is saved, for which layer
  /// Forward values that the backward part reads and that belong to no layer.
  std::set<Operand> available_;
  /// Of each layer what its backward part computes again already, of forward values alone.
  std::vector<std::map<ValueKey, Operand>> known_;
};

}  // namespace spillway
