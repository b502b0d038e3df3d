#include "sim/planner/pgle_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/hardware/xla_tables.h"

namespace spillway {
namespace {

/// Nothing smaller is worth a constraint in XLA's graph.
constexpr Bytes kFencedFrom{std::int64_t{1} << 20};

Setting profile_flag(const std::string& path) {
  return {"xla_gpu_pgle_profile_file_or_directory_path", path,
          "XLA takes the costs of the profile for its own"};
}

bool is_straight_line(const PgleCopy& copy) { return !copy.has_cost; }

/// From the smallest array that goes to the host: one that is not fenced stays in HBM.
Setting fencing_flag(const PgleProfile& profile) {
  std::optional<Bytes> from;
  for (const PgleCopy& copy : profile.copies)
    if (is_straight_line(copy)) from = std::min(from.value_or(copy.bytes), copy.bytes);
  return {"xla_gpu_experimental_scheduler_memory_fencing_threshold_bytes",
          std::to_string(std::max(kFencedFrom, *from).value()),
          "what went to the host leaves HBM before its next use comes near"};
}

PgleAdvice advise_unrolled(const PgleProfile& profile, bool link_bound, const std::string& path) {
  PgleAdvice advice;
  advice.flags = {fencing_flag(profile)};
  if (link_bound) {
    advice.text =
        "Not recommended: the copies take longer than all kernels together, and there memory "
        "fencing by itself gained as much";
    return advice;
  }
  advice.recommended = true;
  advice.flags.push_back(profile_flag(path));
  advice.text =
      "Recommended together with memory fencing, with which step and HBM both gained: the copies "
      "stand outside loops. Fencing by itself needs least HBM; the profile by itself takes more "
      "than neither";
  return advice;
}

PgleAdvice advise_scanned(bool link_bound, const Device& device, const std::string& path) {
  PgleAdvice advice;
  if (link_bound) {
    advice.text =
        "Not recommended: the copies take longer than all kernels together, and there HBM grew";
  } else if (xla_times_products(device)) {
    advice.text = fmt::format(
        "Not recommended: the copies are in loops, and XLA has times of its own for {}; there "
        "nothing was gained",
        device.xla_name);
  } else {
    advice.recommended = true;
    advice.flags = {profile_flag(path)};
    advice.text = fmt::format(
        "Recommended: XLA has no times of its own for {}, and with these the step gained without "
        "more HBM",
        device.xla_name);
  }
  return advice;
}

}  // namespace

PgleAdvice advise_pgle(const PgleProfile& profile, const PgleSituation& situation,
                       const Device& device, const std::string& path) {
  if (!situation.is_planned)
    return {false,
            {},
            "Not recommended: it has the names of the program as compiled, and the plan makes "
            "another of it. Compile that first, and write the profile from its dump"};
  if (profile.copies.empty())
    return {false, {}, "Not recommended: the program copies nothing across the host link"};
  const bool link_bound = situation.link > situation.kernels;
  return std::ranges::any_of(profile.copies, is_straight_line)
             ? advise_unrolled(profile, link_bound, path)
             : advise_scanned(link_bound, device, path);
}

}  // namespace spillway
