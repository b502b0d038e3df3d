// Reads files of measurements of whatever kind, each once: its content decides, not its name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calibration/import/nvbandwidth.h"
#include "calibration/measurements.h"
#include "model/hardware/profile.h"

namespace spillway::calibration {

/// One of XLA's performance tables, which has several devices.
struct PerfTable {
  std::shared_ptr<const std::string> text;
};

/// A file as read: nothing of it is a machine's yet. Sums of nvbandwidth wait for the number of
/// GPUs, tables for the device.
struct Source {
  std::string path;
  std::variant<Measurements, BandwidthRun, PerfTable> content;
};

/// The probe's JSON, nvbandwidth's and bandwidthTest's output, nvidia-smi's, profiles of runs,
/// XLA's performance tables. An error: a kind that is not known, or nothing of use in it. Wall
/// times of device_put are refused: they are no link's.
Result<Source> read_source(const std::string& path);
/// An error: the first file that gives nothing, or one that is given twice.
Result<std::vector<Source>> read_sources(const std::vector<std::string>& paths);

/// The first that they name, as the driver says it; empty where none does.
std::string device_of(const std::vector<Source>& sources);

/// What all of them say of the machine that `base` is nearest to, one after the other, and what
/// they show together. `gpus` is what a sum over all GPUs is of, where its file does not say; GPUs
/// that one source counts hold for the others' sums.
Result<Measurements> to_measurements(const std::vector<Source>& sources,
                                     const HardwareProfile& base, std::optional<int> gpus = {});

}  // namespace spillway::calibration
