// The window of a convolution or a reduce-window: window={size=3x3 stride=2x2 pad=1_1x0_1}.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway {

struct WindowDimension {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t pad_low = 0, pad_high = 0;
  std::int64_t base_dilation = 1;    ///< HLO text: lhs_dilate
  std::int64_t window_dilation = 1;  ///< HLO text: rhs_dilate
};

/// Dimensions in the order of the text; none where the text holds none.
std::vector<WindowDimension> parse_window(std::string_view text);

}  // namespace spillway
