// The named values of a layer: what each is, how large on one device, and in which layers. Bytes of
// host memory that a scanned step needs are sums of these, exactly.
//
// Source: where MaxText 0.2.5 calls checkpoint_name, as its compiled programs in the corpus show
// it. Later versions differ in `context` (SavedTensorOptions).
#pragma once

#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/spec/step_spec.h"

namespace spillway {

struct SavedTensor {
  std::vector<std::string> names;  ///< all on one value: {"mlpwi_0"} or {"mlpwi_0", "moe_mlpwi_0"}
  int group = 0;                   ///< into ModelSpec::groups
  std::vector<std::int64_t> dims;  ///< of one layer on one device
  ElementType type = ElementType::kBF16;
  /// Whether the backward pass reads it. What it does not read costs nothing to save.
  bool is_needed = true;
  Bytes also;  ///< saved under the same name beside it: attention's statistics

  Bytes bytes_per_layer() const;
};

/// What becomes of it: with two names, whichever saves it, and of those the host.
SaveChoice choice_of(const StepSpec& step, const SavedTensor& tensor);

struct SavedTensorOptions {
  /// From MaxText's source of August 2026 on, and in TransformerEngine's attention, `context` is
  /// given inside of the attention's own rule: its softmax statistics are saved with it.
  bool context_has_statistics = false;
};

/// In the order the layer makes them, group after group.
std::vector<SavedTensor> list_saved_tensors(const StepSpec& step, SavedTensorOptions options = {});

/// Rows that an expert layer computes on one device.
std::int64_t expert_rows(const StepSpec& step, const MoeSpec& moe);
/// Places an expert has for a sequence, where their number is fixed (Dispatch::kCapacity).
std::int64_t expert_capacity(const StepSpec& step, const MoeSpec& moe);

/// Bytes that the step's policy keeps on the device and on the host, of all layers.
struct SavedBytes {
  Bytes device, host;
};
SavedBytes count_saved(const StepSpec& step, SavedTensorOptions options = {});

}  // namespace spillway
