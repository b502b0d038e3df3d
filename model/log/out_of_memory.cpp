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

/// What stands behind the size tells whose memory it was.
constexpr Sentence kEndings[] = {
    {" from device", FailedIn::kDevice},
    {" of unified memory", FailedIn::kDevice},
    {" on host", FailedIn::kPinnedMemory},
    {" of pinned host memory", FailedIn::kPinnedMemory},
    {" of host memory pinned", FailedIn::kPinnedMemory},
};

/// "failed to allocate 73.30GiB (78702055168 bytes) from device", "failed to alloc N bytes on
/// host", "Failed to allocate a N-byte pinned host staging buffer"
std::optional<OutOfMemory> read_driver(const Line& line) {
  for (const std::string_view words :
       {"ailed to allocate a ", "ailed to allocate ", "ailed to alloc "}) {
    auto rest = behind(line.text, words);
    if (!rest) continue;
    std::string_view staging = *rest;
    const auto bytes = take_integer(staging);
    if (bytes && *bytes > 0 && *bytes <= std::int64_t{1} << 60 &&
        staging.starts_with("-byte pinned host"))
      return OutOfMemory{line.number, FailedIn::kHostPool, {Bytes(*bytes)}, "", 1};
    const auto requested = take_exact_bytes(*rest);
    if (!requested) continue;
    for (const Sentence& ending : kEndings)
      if (rest->starts_with(ending.words))
        return OutOfMemory{line.number, ending.where, *requested, "", 1};
  }
  return std::nullopt;
}

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
  return read_driver(line);
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
