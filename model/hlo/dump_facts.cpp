#include "model/hlo/dump_facts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string_view>

#include "model/base/read_file.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

std::int64_t count(std::string_view text, std::string_view piece) {
  std::int64_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string_view::npos;
       at = text.find(piece, at + piece.size()))
    ++found;
  return found;
}

/// JAX's own annotation, or the internal one that XLA turns it into.
std::int64_t count_host_placements(std::string_view hlo) {
  return count(hlo, "_xla_buffer_placement=\"pinned_host\"") +
         count(hlo, "custom_call_target=\"MoveToHost\"");
}

std::optional<Bytes> device_memory(std::string_view target_config) {
  constexpr std::string_view kField = "device_memory_size:";
  const std::size_t at = target_config.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = target_config.substr(at + kField.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  if (error != std::errc() || bytes <= 0) return std::nullopt;
  return Bytes(bytes);
}

/// The content of a file of the dump, packed or not; null where there is none.
std::shared_ptr<const std::string> read_sibling(const fs::path& folder, const std::string& name) {
  for (const char* packing : {"", ".gz"}) {
    const fs::path path = folder / (name + packing);
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) continue;
    if (const auto content = read_file(path.string()); content.ok()) return *content;
  }
  return nullptr;
}

}  // namespace

std::string module_prefix(const std::string& file_name) {
  const std::size_t stage = file_name.find("after_optimizations");
  if (stage == std::string::npos) return "";
  const std::size_t target = std::min(file_name.find(".sm_"), file_name.find(".gfx"));
  if (target < stage) return file_name.substr(0, target);
  return stage > 0 ? file_name.substr(0, stage - 1) : "";
}

std::string capability_in_name(const std::string& program_path) {
  constexpr std::string_view kMark = ".sm_";
  const std::string name = fs::path(program_path).filename().string();
  const std::size_t at = name.find(kMark);
  if (at == std::string::npos || name.find("after_optimizations", at) == std::string::npos)
    return "";
  const std::size_t from = at + kMark.size();
  const std::size_t end = std::min(name.find_first_not_of("0123456789.", from), name.size());
  return name.substr(from, end - from);
}

DumpFacts read_dump_facts(const std::string& program_path) {
  DumpFacts facts;
  const fs::path path(program_path);
  const std::string prefix = module_prefix(path.filename().string());
  if (prefix.empty()) return facts;
  const fs::path folder = path.parent_path();
  if (const auto before = read_sibling(folder, prefix + ".before_optimizations.txt"))
    facts.host_placements_asked = count_host_placements(*before);
  if (const auto target = read_sibling(folder, prefix + ".gpu_target_config.pbtxt"))
    facts.compiled_for_hbm = device_memory(*target);
  return facts;
}

std::optional<bool> thunks_have_copy_streams(const std::string& program_path) {
  const fs::path path(program_path);
  const std::string prefix = module_prefix(path.filename().string());
  if (prefix.empty()) return std::nullopt;
  const auto thunks = read_sibling(path.parent_path(), prefix + ".thunk_sequence.txt");
  if (thunks == nullptr || thunks->find("stream=") == std::string::npos) return std::nullopt;
  return thunks->find("stream=memcpy_") != std::string::npos;
}

}  // namespace spillway
