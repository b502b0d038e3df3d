#include "model/run/nsys_tables.h"

#include <algorithm>
#include <cctype>

namespace spillway {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_version_suffix(std::string_view suffix) {
  return suffix.empty() ||
         (suffix.starts_with("_V") && suffix.size() > 2 &&
          std::ranges::all_of(suffix.substr(2), [](char c) { return c >= '0' && c <= '9'; }));
}

}  // namespace

std::vector<std::string> NsysTables::versions_of(std::string_view name) const {
  std::vector<std::string> found;
  for (const std::string& table : file_.tables())
    if (table.starts_with(name) && is_version_suffix(std::string_view(table).substr(name.size())))
      found.push_back(table);
  std::ranges::sort(found);
  return found;
}

std::string NsysTables::select(const std::string& table, std::initializer_list<const char*> columns,
                               std::vector<std::string>* lacks) const {
  const std::vector<std::string> there = file_.columns(table);
  std::string query = "SELECT ";
  for (const char* column : columns) {
    const bool is_there = std::ranges::find(there, column) != there.end();
    query += (query.size() > 7 ? ", " : "") + (is_there ? sql_name(column) : "NULL");
    if (!is_there && lacks != nullptr) lacks->push_back(column);
  }
  return query + " FROM " + sql_name(table);
}

std::map<std::int64_t, MemoryPlace> NsysTables::memory_places() const {
  std::map<std::int64_t, MemoryPlace> places = {
      {0, MemoryPlace::kPageable}, {1, MemoryPlace::kPinned},  {2, MemoryPlace::kDevice},
      {3, MemoryPlace::kDevice},   {4, MemoryPlace::kManaged}, {5, MemoryPlace::kDevice},
      {6, MemoryPlace::kManaged},  {7, MemoryPlace::kUnknown}};
  for (const std::string& table : versions_of("ENUM_CUDA_MEM_KIND"))
    (void)file_.each(select(table, {"id", "name", "label"}), [&](const SqliteRow& row) {
      const std::string name = lower(row.text(1)) + " " + lower(row.text(2));
      const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      const auto id = row.integer(0);
      if (!id) return;
      places[*id] = has("managed")                  ? MemoryPlace::kManaged
                    : has("pageable")               ? MemoryPlace::kPageable
                    : has("pinned")                 ? MemoryPlace::kPinned
                    : has("device") || has("array") ? MemoryPlace::kDevice
                                                    : MemoryPlace::kUnknown;
    });
  return places;
}

std::map<std::int64_t, CopyKind> NsysTables::copy_kinds() const {
  std::map<std::int64_t, CopyKind> kinds = {
      {1, CopyKind::kHostToDevice},  {2, CopyKind::kDeviceToHost}, {3, CopyKind::kHostToDevice},
      {4, CopyKind::kDeviceToHost},  {5, CopyKind::kWithinDevice}, {6, CopyKind::kWithinDevice},
      {7, CopyKind::kWithinDevice},  {8, CopyKind::kWithinDevice}, {10, CopyKind::kBetweenDevices},
      {11, CopyKind::kHostToDevice}, {12, CopyKind::kDeviceToHost}};
  for (const std::string& table : versions_of("ENUM_CUDA_MEMCPY_OPER"))
    (void)file_.each(select(table, {"id", "name", "label"}), [&](const SqliteRow& row) {
      const std::string name = lower(row.text(1)) + " " + lower(row.text(2));
      const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      const auto id = row.integer(0);
      if (!id) return;
      if (has("htod") || has("host-to-device")) kinds[*id] = CopyKind::kHostToDevice;
      if (has("dtoh") || has("device-to-host")) kinds[*id] = CopyKind::kDeviceToHost;
      if (has("dtod") || has("device-to-device")) kinds[*id] = CopyKind::kWithinDevice;
      if (has("ptop") || has("peer")) kinds[*id] = CopyKind::kBetweenDevices;
    });
  return kinds;
}

}  // namespace spillway
