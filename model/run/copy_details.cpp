#include "model/run/copy_details.h"

#include <charconv>

namespace spillway {
namespace {

/// The value of "key:value" among words; empty where there is none.
std::string_view field(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const bool begins_word = at == 0 || text[at - 1] == ' ';
    const std::size_t value = at + key.size();
    if (!begins_word || value >= text.size() || text[value] != ':') continue;
    return text.substr(value + 1, text.find(' ', value) - value - 1);
  }
  return {};
}

MemoryPlace place_of(std::string_view name) {
  if (name == "pageable" || name == "Pageable") return MemoryPlace::kPageable;
  if (name == "pinned" || name == "Pinned") return MemoryPlace::kPinned;
  if (name.starts_with("device") || name.starts_with("Device")) return MemoryPlace::kDevice;
  if (name.starts_with("managed")) return MemoryPlace::kManaged;
  return MemoryPlace::kUnknown;
}

bool is_host(MemoryPlace place) {
  return place == MemoryPlace::kPageable || place == MemoryPlace::kPinned;
}

CopyKind kind_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("H2D") || has("HostToDevice")) return CopyKind::kHostToDevice;
  if (has("D2H") || has("DeviceToHost")) return CopyKind::kDeviceToHost;
  if (has("D2D") || has("DeviceToDevice")) return CopyKind::kWithinDevice;
  if (has("P2P") || has("PeerToPeer")) return CopyKind::kBetweenDevices;
  return CopyKind::kOther;
}

CopyKind kind_of(MemoryPlace from, MemoryPlace to) {
  if (is_host(from) && to == MemoryPlace::kDevice) return CopyKind::kHostToDevice;
  if (from == MemoryPlace::kDevice && is_host(to)) return CopyKind::kDeviceToHost;
  if (from == MemoryPlace::kDevice && to == MemoryPlace::kDevice) return CopyKind::kWithinDevice;
  return CopyKind::kOther;
}

}  // namespace

bool is_copy_name(std::string_view name) {
  return name.starts_with("Memcpy") || name.starts_with("CopyDevice") ||
         name.starts_with("CopyHost");
}

bool is_fill_name(std::string_view name) { return name.starts_with("Memset"); }

bool read_copy_details(std::string_view name, std::string_view details, GpuEvent& copy) {
  copy.kind = GpuEvent::Kind::kCopy;
  copy.copy = kind_of(name);
  copy.from = place_of(field(details, "kind_src"));
  copy.to = place_of(field(details, "kind_dst"));
  // One kind alone is that of the end which is not the device's.
  if (const MemoryPlace host = place_of(field(details, "kind")); host != MemoryPlace::kUnknown) {
    copy.from = copy.copy == CopyKind::kHostToDevice ? host : MemoryPlace::kDevice;
    copy.to = copy.copy == CopyKind::kDeviceToHost ? host : MemoryPlace::kDevice;
  }
  if (copy.copy == CopyKind::kOther) copy.copy = kind_of(copy.from, copy.to);
  const std::string_view size = field(details, "size");
  std::int64_t bytes = 0;
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error != std::errc() || bytes < 0) return false;
  copy.bytes = Bytes(bytes);
  return true;
}

std::string_view innermost_name(std::string_view hlo_op) {
  const std::size_t at = hlo_op.rfind("::");
  return at == std::string_view::npos ? hlo_op : hlo_op.substr(at + 2);
}

}  // namespace spillway
