// What was read from measurements, in words that a table can hold.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "calibration/import/read_source.h"

namespace spillway::testing {

/// What files say of a machine.
inline Result<calibration::Measurements> read_measurements(const std::vector<std::string>& paths,
                                                           const HardwareProfile& base,
                                                           std::optional<int> gpus = {}) {
  const auto sources = calibration::read_sources(paths);
  if (!sources.ok()) return sources.error();
  return calibration::to_measurements(*sources, base, gpus);
}

/// "h2d both ways of 4 by kernel 512 B 55.37 gpu 0 node 1": one line a sample, in GB/s.
inline std::string describe_copies(const calibration::Measurements& measurements) {
  using namespace calibration;
  std::string text;
  for (const CopySample& copy : measurements.copies) {
    text += copy.direction == CopyDirection::kHostToDevice ? "h2d" : "d2h";
    if (copy.both_ways) text += " both ways";
    if (copy.gpus_at_once != 1) text += fmt::format(" of {}", copy.gpus_at_once);
    if (copy.by == CopiedBy::kKernel) text += " by kernel";
    if (copy.pages != HostPages::kPinned) text += fmt::format(" {}", name_of(copy.pages));
    if (copy.beside != Beside::kNothing) text += " beside work";
    if (copy.bytes) text += fmt::format(" {} B", copy.bytes->value());
    text += fmt::format(" {:.2f}", copy.rate.value() / 1e9);
    if (copy.gpu) text += fmt::format(" gpu {}", *copy.gpu);
    if (copy.numa_node) text += fmt::format(" node {}", *copy.numa_node);
    text += "\n";
  }
  return text;
}

inline std::string describe_warnings(const std::vector<calibration::Warning>& warnings) {
  std::string text;
  for (const auto& warning : warnings) text += warning.code + ": " + warning.text + "\n";
  return text;
}

inline std::string describe_skipped(const calibration::Measurements& measurements) {
  std::string text;
  for (const auto& skipped : measurements.skipped) text += skipped.what + ": " + skipped.why + "\n";
  return text;
}

inline std::string describe_caps(const calibration::Measurements& measurements) {
  std::string text;
  for (const auto& cap : measurements.link_caps)
    text += fmt::format("{:.1f} GB/s {}{}\n", cap.cap.value() / 1e9, cap.text,
                        cap.under_load ? "" : ", idle");
  return text;
}

}  // namespace spillway::testing
