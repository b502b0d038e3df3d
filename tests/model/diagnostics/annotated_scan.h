// A scanned step whose copies back from the host carry XLA's annotation of where they go.
#pragma once

#include <string>

#include "tests/model/diagnostics/diagnose.h"
#include "tests/model/residuals/toy_scan.h"

namespace spillway::testing {

/// An annotation as XLA wrote it up to 0.11: from byte `offset` on, `stride` further each time.
inline std::string walk(std::int64_t offset, std::int64_t stride) {
  return "{\"byte_offset\":\"" + std::to_string(offset) + "\",\"byte_stride\":\"" +
         std::to_string(stride) + "\",\"loop_index\":\"0\"}";
}

/// Stack `a` is on the host, and its copies back are annotated with `walk`. The backward loop reads
/// layer 3 - i of 256 bytes; or what the lines of `index` make %k.
inline std::string annotated(const std::string& walk, const std::string& index = "") {
  const std::string slice = "dynamic-slice(%d0a, %d1a, %d2a), dynamic_slice_sizes={1,64}";
  std::string text = replaced(ToyScan{.a = kOffloaded}.text(), slice,
                              slice + ", backend_config={\"dynamic_slice_config\":" + walk + "}");
  if (!index.empty()) text = replaced(text, "  %k = s32[] subtract(%three, %i2)\n", index);
  return replaced(
      text, "body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"}}",
      "body=%backward, backend_config={\"known_trip_count\":{\"n\":\"4\"},\"known_init_step\":{"
      "\"init\":\"0\",\"step\":\"1\"},\"known_induction_variable\":{\"tuple_index\":\"0\"}}");
}

}  // namespace spillway::testing
