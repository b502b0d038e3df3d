#include "calibration/probe/describe.h"

namespace spillway::probe {
namespace {

std::string of_copy(const CopyLoad& copy) {
  std::string text = std::to_string(copy.bytes) + " bytes ";
  text += copy.direction == Direction::kHostToDevice ? "host to device" : "device to host";
  if (copy.pages == Pages::kPageable) text += ", pageable";
  if (copy.pages == Pages::kRegistered) text += ", registered";
  if (copy.row_bytes > 0) text += ", rows of " + std::to_string(copy.row_bytes);
  if (copy.numa_node >= 0) text += ", node " + std::to_string(copy.numa_node);
  if (copy.by_kernel) text += ", by a kernel";
  return text;
}

std::string of_kernel(const KernelLoad& kernel) {
  switch (kernel.kernel) {
    case Kernel::kSpin:
      return "launches";
    case Kernel::kRead:
      return "reads of " + std::to_string(kernel.bytes) + " bytes";
    case Kernel::kWrite:
      return "writes of " + std::to_string(kernel.bytes) + " bytes";
    case Kernel::kCopy:
      return "copies on the device of " + std::to_string(kernel.bytes) + " bytes";
    case Kernel::kTriad:
      return "triads of " + std::to_string(kernel.bytes) + " bytes";
    case Kernel::kGemm:
      break;
  }
  return std::string(kernel.type == GemmType::kBf16 ? "bf16" : "f8") + " products " +
         std::to_string(kernel.m) + " x " + std::to_string(kernel.n) + " x " +
         std::to_string(kernel.k) + (kernel.zeros ? " of zeros" : "");
}

}  // namespace

std::string describe(const Point& point) {
  const auto* copy = std::get_if<CopyLoad>(&point.measured);
  std::string text =
      copy != nullptr ? of_copy(*copy) : of_kernel(std::get<KernelLoad>(point.measured));
  if (copy != nullptr) text += point.host_waits ? ", isolated" : ", queued";
  if (point.lasting) text += ", lasting";
  if (!point.beside.empty())
    text += ", beside " + std::to_string(point.beside.size()) + " other" +
            (point.beside.size() == 1 ? "" : "s");
  return text;
}

}  // namespace spillway::probe
