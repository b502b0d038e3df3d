// The probe's file: schema spillway.probe/1, one JSON object with the machine, the method and every
// sample as it was taken. calibration/read_probe.h reads it.
#pragma once

#include <string>

#include "calibration/probe/probe.h"

namespace spillway::probe {

/// `date` as "2026-11-30".
std::string to_json(const ProbeRun& run, const std::string& date);

}  // namespace spillway::probe
