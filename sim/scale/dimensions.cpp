#include "sim/scale/dimensions.h"

namespace spillway {

Dimensions::Dimensions(const Program& program) : first_node_(program.computations.size()) {
  for (const ComputationId id : ids(program.computations)) {
    const Computation& computation = program[id];
    for (const InstructionIndex i : computation.instructions()) {
      first_node_[id].push_back(static_cast<std::uint32_t>(first_.size()));
      const Shape shape = computation[i].shape;
      for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
        first_.push_back(static_cast<std::uint32_t>(sizes_.size()));
        for (const std::int64_t size : shape.at(node).dims()) sizes_.push(size);
      }
    }
  }
  parent_.reserve(sizes_.size());
  for (const DimensionId d : ids(sizes_)) parent_.push(d);
}

DimensionId Dimensions::representative(DimensionId d) const {
  while (parent_[d] != d) {
    parent_[d] = parent_[parent_[d]];
    d = parent_[d];
  }
  return d;
}

void Dimensions::join(DimensionId a, DimensionId b) {
  if (sizes_[a] != sizes_[b]) return;
  a = representative(a);
  b = representative(b);
  if (a < b)
    parent_[b] = a;
  else
    parent_[a] = b;
}

}  // namespace spillway
