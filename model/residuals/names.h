// The names sidecar: what JAX's checkpoint_name called, which HLO does not carry. Written by
// spillway.jax.names (schema spillway.names/1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/jaxlib_version.h"
#include "model/base/result.h"
#include "model/program/shape.h"

namespace spillway {

struct CheckpointName {
  std::string name;
  std::vector<std::int64_t> shape;  ///< global, before partitioning
  ElementType type = ElementType::kOpaque;
  std::string source;       ///< "maxtext/models/llama2.py:164"
  std::int64_t layers = 1;  ///< product of the scans around it
};

struct NameList {
  std::vector<CheckpointName> names;  ///< in the order of the program
  std::int64_t devices = 1;
  std::optional<JaxlibVersion> jaxlib = {};  ///< that compiled the step, where said
};

/// Reads a sidecar. Errors carry the path, and line and column where the JSON is damaged.
Result<NameList> read_names(const std::string& path);

/// Whether a slice on one device can be a shard of a name: same type, each dimension a whole share,
/// and as many shares as divide the devices. `layers` is how many the stack of the slice holds; one
/// stack may hold a part of them, where scans are nested.
bool may_be_shard(const CheckpointName& name, Shape slice, std::int64_t layers,
                  std::int64_t devices);
/// The same where XLA has put the dimensions into another order.
bool may_be_transposed_shard(const CheckpointName& name, Shape slice, std::int64_t layers,
                             std::int64_t devices);

}  // namespace spillway
