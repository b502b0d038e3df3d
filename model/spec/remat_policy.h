// MaxText's remat_policy: which named values the backward pass finds saved, and where.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "model/spec/step_spec.h"

namespace spillway {

/// What a preset does to its names; all others are recomputed. Presets are those of MaxText at
/// e591f30, which 0.2.5 shares.
struct RematPreset {
  std::string_view name;
  std::span<const std::string_view> saved;
  SaveChoice where;
};

std::span<const RematPreset> remat_presets();

/// Null where there is no such preset; "custom" is none.
const RematPreset* find_remat_preset(std::string_view name);

/// The step with what a preset saves, and nothing else; a layer's input stays on the device,
/// whatever a preset says.
void apply_preset(StepSpec& step, const RematPreset& preset);

/// Every preset's name, with commas between them, for messages.
std::string remat_preset_names();

/// Names that only `custom` reaches, and those of the presets: every one that a MaxText layer
/// gives.
std::span<const std::string_view> remat_names();

/// What becomes of a name: its own choice; of a value with two names the one that saves it.
SaveChoice choice_of(const StepSpec& step, std::string_view name);

}  // namespace spillway
