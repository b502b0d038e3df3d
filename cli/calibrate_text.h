// What `calibrate` answers, as text and as JSON.
#pragma once

#include <string>

#include "calibration/fit/fit.h"

namespace spillway {

struct Calibration {
  HardwareProfile base;
  calibration::Measurements measurements;
  calibration::Fit fit;
};

/// Whether anything was determined.
bool has_fitted(const Calibration& calibration);

std::string calibrate_text(const Calibration& calibration);
/// Schema spillway.calibrate/1.
std::string calibrate_json(const Calibration& calibration);
/// The comment at the head of the profile: from what it was made.
std::string calibrate_comment(const Calibration& calibration);

}  // namespace spillway
