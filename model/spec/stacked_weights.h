// Weights of layers as the loops of a scanned step have them: stacked, layers first, of which each
// iteration reads one row and gathers it from the devices that share it.
#pragma once

#include <string>
#include <vector>

#include "model/spec/hlo_kernels.h"
#include "model/spec/weights.h"

namespace spillway {

struct StackedWeight {
  WeightArray array;
  std::string path;                 ///< within the layer: "mlp/wi_0/kernel"
  std::vector<std::int64_t> local;  ///< dimensions of a row on one device, without layers
  std::int64_t layers = 0;          ///< on one device
  HloValue stack;                   ///< where a loop's body finds it
  /// A dimension of the row, and over which axes of the mesh it is put together.
  struct Gather {
    std::size_t dim = 0;
    std::vector<MeshAxis> axes;
  };
  std::vector<Gather> gathers;

  /// Dimensions of the row when it is put together.
  std::vector<std::int64_t> whole(const Mesh& mesh) const;
  /// Of the stack.
  std::vector<std::int64_t> stacked() const;
};

/// The trained arrays of a group, and biases that are not.
std::vector<StackedWeight> list_stacked_weights(const StepSpec& step, int group);

}  // namespace spillway
