#include "model/cost/window.h"

#include "model/program/computation.h"

namespace spillway {
namespace {

/// The text behind `key=`, up to a blank or a brace.
std::string_view field(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool starts = at == 0 || text[at - 1] == '{' || text[at - 1] == ' ';
    const std::size_t end = at + key.size();
    if (!starts || end >= text.size() || text[end] != '=') continue;
    const std::string_view rest = text.substr(end + 1);
    return rest.substr(0, rest.find_first_of(" }"));
  }
  return {};
}

}  // namespace

std::vector<WindowDimension> parse_window(std::string_view text) {
  const std::vector<std::int64_t> sizes = parse_integers(field(text, "size"));
  const std::vector<std::int64_t> strides = parse_integers(field(text, "stride"));
  const std::vector<std::int64_t> pads = parse_integers(field(text, "pad"));
  const std::vector<std::int64_t> base = parse_integers(field(text, "lhs_dilate"));
  const std::vector<std::int64_t> window = parse_integers(field(text, "rhs_dilate"));
  std::vector<WindowDimension> dimensions(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    dimensions[d].size = sizes[d];
    if (d < strides.size()) dimensions[d].stride = strides[d];
    if (2 * d + 1 < pads.size()) {
      dimensions[d].pad_low = pads[2 * d];
      dimensions[d].pad_high = pads[2 * d + 1];
    }
    if (d < base.size()) dimensions[d].base_dilation = base[d];
    if (d < window.size()) dimensions[d].window_dilation = window[d];
  }
  return dimensions;
}

}  // namespace spillway
