#include "sim/planner/pgle_advice.h"

#include <algorithm>

namespace spillway {
namespace {

/// All but scalars and the like. With a higher threshold, even that of the smallest array that goes
/// to the host, the buffers between kept those arrays in HBM.
constexpr Bytes kFencedFrom{std::int64_t{1} << 20};

Setting profile_flag(const std::string& path) {
  return {"xla_gpu_pgle_profile_file_or_directory_path", path,
          "XLA takes the costs of the profile for its own"};
}

bool is_straight_line(const PgleCopy& copy) { return !copy.has_cost; }

Setting fencing_flag() {
  return {"xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes",
          std::to_string(kFencedFrom.value()),
          "what went to the host leaves HBM before its next use comes near"};
}

PgleAdvice advise_unrolled(bool link_bound, const std::string& path) {
  PgleAdvice advice;
  advice.flags = {fencing_flag()};
  if (link_bound) {
    advice.text =
        "Not recommended: the copies take longer than all kernels together. There memory fencing "
        "gained by itself, and the profile lost as often as it gained";
    return advice;
  }
  advice.recommended = true;
  advice.flags.push_back(profile_flag(path));
  advice.text =
      "Recommended together with memory fencing: the copies stand outside loops, and there the two "
      "made steps faster with less HBM. Fencing by itself takes least HBM; the profile by itself "
      "takes more than neither";
  return advice;
}

PgleAdvice advise_scanned(bool link_bound, const std::string& path) {
  if (link_bound)
    return {false,
            {},
            "Not recommended: the copies take longer than all kernels together. There steps became "
            "faster, but took more HBM"};
  return {true,
          {profile_flag(path)},
          "Recommended, without memory fencing: the copies are in loops, and there steps became "
          "faster, or stayed, without more HBM"};
}

}  // namespace

PgleAdvice advise_pgle(const PgleProfile& profile, const PgleSituation& situation,
                       const std::string& path) {
  if (!situation.is_planned)
    return {false,
            {},
            "Not recommended: it has the names of the program as compiled, and the plan makes "
            "another of it. Compile that first, and write the profile from its dump"};
  if (profile.copies.empty())
    return {false, {}, "Not recommended: the program copies nothing across the host link"};
  const bool link_bound = situation.link > situation.kernels;
  return std::ranges::any_of(profile.copies, is_straight_line) ? advise_unrolled(link_bound, path)
                                                               : advise_scanned(link_bound, path);
}

}  // namespace spillway
