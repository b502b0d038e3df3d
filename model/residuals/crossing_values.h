// Values that the forward part of an unrolled step makes and the backward part of a jax.checkpoint
// reads, sorted into layers.
#pragma once

#include <map>
#include <vector>

#include "model/residuals/step_parts.h"
#include "model/residuals/unrolled.h"

namespace spillway {

/// The same value of every layer.
struct CrossingGroup {
  std::vector<Operand> layers;
  bool is_layer_input = false;
};

/// Groups in the order of the forward part. A value is made alike in every layer: by the same JAX
/// operation and line, in the same size. The input of the first layer is made otherwise, and comes
/// to its group by its size and place. Values that do not have one a layer are left out.
std::vector<CrossingGroup> find_crossing_groups(const Program& program, const StepParts& parts);

/// Who reads a value in the backward part of a jax.checkpoint, also under other names and behind a
/// stay on the host.
std::vector<UnrolledValue::Read> backward_reads(const Program& program, const StepParts& parts,
                                                Operand value);

/// Of each instruction of the forward part the last layer whose input it depends on; empty where it
/// depends on none, as weights and what is made of them.
std::vector<std::optional<std::uint32_t>> forward_layers(const Program& program,
                                                         const StepParts& parts,
                                                         const std::vector<Operand>& inputs);

/// Numbers of the entry's parameters that a value hangs on; of a result of a combined collective,
/// only those of its own operand. For values near the parameters: weights, and what is made of
/// them.
class ParameterSets {
 public:
  explicit ParameterSets(const Program& program)
      : program_(program), entry_(program.entry_computation()) {}
  /// Sorted.
  const std::vector<std::uint32_t>& of(Operand value);

 private:
  std::optional<Operand> own_operand(Operand value) const;

  const Program& program_;
  const Computation& entry_;
  std::map<Operand, std::vector<std::uint32_t>> known_;
};

}  // namespace spillway
