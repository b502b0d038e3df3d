// How large a step is, where that is asked to be another than compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway {

/// Empty: as compiled.
struct StepSize {
  std::optional<double> batch, sequence;     ///< as the user counts them
  std::optional<std::int64_t> accumulation;  ///< micro batches a step
  friend bool operator==(const StepSize&, const StepSize&) = default;
};

/// "batch 4, accumulation 8"; empty for as compiled.
std::string size_text(const StepSize& size);

}  // namespace spillway
