#include "model/log/out_of_memory.h"

#include <algorithm>

namespace spillway::log {
namespace {

struct Sentence {
  std::string_view words;
  FailedIn where;
};
constexpr Sentence kSentences[] = {
    {"Out of memory while trying to allocate ", FailedIn::kDevicePool},
    {"Out of memory allocating ", FailedIn::kDevicePool},
    {"Out of host memory while trying to allocate ", FailedIn::kHostPool},
    {"Failed to allocate request for ", FailedIn::kDevice},
    {"cuMemAllocAsync failed to allocate ", FailedIn::kDevice},
    {"could not allocate pinned host memory of size: ", FailedIn::kPinnedMemory},
};

std::optional<OutOfMemory> read(const Line& line) {
  for (const Sentence& sentence : kSentences) {
    auto rest = behind(line.text, sentence.words);
    if (!rest) continue;
    const auto requested = take_exact_bytes(*rest);
    if (!requested) continue;
    OutOfMemory found{line.number, sentence.where, *requested, "", 1};
    if (auto name = behind(*rest, "executable_name='"))
      found.executable = printable(name->substr(0, name->find('\'')));
    return found;
  }
  // "failed to allocate 73.30GiB (78702055168 bytes) from device", "failed to alloc N bytes on
  // host"
  for (const std::string_view words : {"failed to allocate ", "failed to alloc "}) {
    auto rest = behind(line.text, words);
    if (!rest) continue;
    const auto requested = take_exact_bytes(*rest);
    if (!requested) continue;
    const bool device = rest->starts_with(" from device");
    if (device || rest->starts_with(" on host"))
      return OutOfMemory{line.number, device ? FailedIn::kDevice : FailedIn::kPinnedMemory,
                         *requested, "", 1};
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(FailedIn where) {
  switch (where) {
    case FailedIn::kDevicePool:
      return "device pool";
    case FailedIn::kHostPool:
      return "host pool";
    case FailedIn::kDevice:
      return "device";
    case FailedIn::kPinnedMemory:
      return "pinned memory";
  }
  return "";
}

std::vector<OutOfMemory> find_out_of_memory(const std::vector<Line>& lines) {
  std::vector<OutOfMemory> found;
  for (const Line& line : lines) {
    const auto one = read(line);
    if (!one) continue;
    const auto same = std::ranges::find_if(found, [&one](const OutOfMemory& other) {
      return other.where == one->where && other.requested == one->requested &&
             other.executable == one->executable;
    });
    if (same != found.end())
      ++same->times;
    else
      found.push_back(*one);
  }
  return found;
}

std::vector<CudaMemory> find_cuda_memory(const std::vector<Line>& lines) {
  std::vector<CudaMemory> found;
  for (const Line& line : lines) {
    auto rest = behind(line.text, "Free memory/Total memory: ");
    if (!rest) continue;
    const auto free = take_integer(*rest);
    if (!free || !rest->starts_with('/')) continue;
    rest->remove_prefix(1);
    const auto total = take_integer(*rest);
    if (total && *free >= 0 && *total > 0 && *free <= *total)
      found.push_back({line.number, Bytes(*free), Bytes(*total)});
  }
  return found;
}

}  // namespace spillway::log
