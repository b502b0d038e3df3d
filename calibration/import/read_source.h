// Reads a file of measurements of whatever kind: its content decides, not its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

struct SourceOptions {
  /// How many GPUs a sum over all of them is of, where the file does not say.
  std::optional<int> gpus = {};
};

/// The probe's JSON, nvbandwidth's and bandwidthTest's output, nvidia-smi's, profiles of runs,
/// XLA's performance tables. `base` says which device of a table is meant. An error: a kind that is
/// not known, or nothing of use in it. Wall times of device_put are refused: they are no link's.
Result<Measurements> read_source(const std::string& path, const HardwareProfile& base,
                                 const SourceOptions& options = {});

/// All of them, one after the other, and what they show together. GPUs that one source counts hold
/// for the others' sums. An error: the first file that gives nothing.
Result<Measurements> read_sources(const std::vector<std::string>& paths,
                                  const HardwareProfile& base, const SourceOptions& options = {});

}  // namespace spillway::calibration
