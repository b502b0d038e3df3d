#include "model/log/compiler_messages.h"

#include <algorithm>
#include <charconv>

namespace spillway::log {
namespace {

constexpr struct {
  std::string_view words;
  Remark remark;
} kRemarks[] = {
    {"does device compute in host memory space", Remark::kHostCompute},
    {"Some donated buffers were not usable", Remark::kDonationUnused},
    {"Failed to serialize HLO module proto", Remark::kNoProto},
    {"HLO program serialization exceeds max supported", Remark::kNoProto},
    {"trying to instantiate command buffer", Remark::kCommandBuffer},
    {"HloLiveRange not available", Remark::kNoLiveRange},
    {"layout for this output is not set to host memory", Remark::kHostResult},
};

constexpr std::string_view kSettings[] = {"XLA_PYTHON_CLIENT_MEM_FRACTION",
                                          "XLA_CLIENT_MEM_FRACTION",
                                          "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB"};

std::optional<RematWarning> read_remat(const Line& line) {
  auto rest = behind(line.text, "t reduce memory use below ");
  if (!rest) return std::nullopt;
  RematWarning warning;
  warning.line = line.number;
  const auto limit = take_exact_bytes(*rest);
  auto reached = behind(*rest, "only reduced to ");
  if (!limit || !reached) return std::nullopt;
  const auto to = take_exact_bytes(*reached);
  if (!to) return std::nullopt;
  warning.limit = *limit;
  warning.reached = *to;
  if (auto original = behind(*reached, "down from "))
    warning.original = take_exact_bytes(*original);
  return warning;
}

/// "…arguments (86973087744) exceeds the base limit (81174881894)"
std::optional<SchedulerMemory> read_arguments(const Line& line) {
  auto rest = behind(line.text, "byte size of input/output arguments (");
  if (!rest) return std::nullopt;
  const auto bytes = take_bytes(*rest);
  auto limit = behind(*rest, "exceeds the base limit (");
  if (!bytes || !limit) return std::nullopt;
  const auto base = take_bytes(*limit);
  if (!base) return std::nullopt;
  return SchedulerMemory{line.number, SchedulerMessage::kArguments, bytes->value, base->value};
}

/// "LatencyHidingScheduler current memory usage: N bytes. Current limit: M", or "…, does not fit in
/// limit: M"
std::optional<SchedulerMemory> read_usage(const Line& line) {
  auto rest = behind(line.text, "LatencyHidingScheduler current memory usage: ");
  if (!rest) return std::nullopt;
  const auto bytes = take_bytes(*rest);
  if (!bytes) return std::nullopt;
  for (const std::string_view words :
       {"Current limit: ", "fit in limit: ", "fit in initial limit: "}) {
    auto limit = behind(*rest, words);
    if (!limit) continue;
    const auto value = take_bytes(*limit);
    if (value)
      return SchedulerMemory{line.number, SchedulerMessage::kUsage, bytes->value, value->value};
  }
  return std::nullopt;
}

}  // namespace

std::vector<RematWarning> find_remat_warnings(const std::vector<Line>& lines) {
  std::vector<RematWarning> found;
  for (const Line& line : lines) {
    const auto warning = read_remat(line);
    if (!warning) continue;
    const auto same = std::ranges::find_if(found, [&warning](const RematWarning& other) {
      return other.limit == warning->limit && other.reached == warning->reached &&
             other.original == warning->original;
    });
    if (same != found.end())
      ++same->times;
    else
      found.push_back(*warning);
  }
  return found;
}

std::vector<SchedulerMemory> find_scheduler_memory(const std::vector<Line>& lines) {
  std::vector<SchedulerMemory> found;
  for (const Line& line : lines) {
    auto message = read_arguments(line);
    if (!message) message = read_usage(line);
    if (message) found.push_back(*message);
  }
  return found;
}

std::vector<CompilerRemark> find_remarks(const std::vector<Line>& lines) {
  std::vector<CompilerRemark> found;
  for (const Line& line : lines) {
    for (const auto& [words, remark] : kRemarks) {
      if (line.text.find(words) == std::string_view::npos) continue;
      const auto same = std::ranges::find(found, remark, &CompilerRemark::remark);
      if (same != found.end())
        ++same->times;
      else
        found.push_back({line.number, remark, 1});
    }
  }
  return found;
}

std::vector<Setting> find_settings(const std::vector<Line>& lines) {
  std::vector<Setting> found;
  for (const Line& line : lines) {
    for (const std::string_view name : kSettings) {
      auto rest = behind(line.text, name);
      if (!rest) continue;
      const std::size_t at = rest->find_first_not_of("\"'] =:");
      if (at == std::string_view::npos || at == 0) continue;
      const std::string_view number = rest->substr(at);
      if (number[0] != '.' && (number[0] < '0' || number[0] > '9')) continue;
      double value = 0;
      if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc())
        continue;
      // Blanks alone are prose: "…LIMIT_GB 64".
      if (rest->substr(0, at).find_first_of("=:") == std::string_view::npos) continue;
      found.push_back({line.number, std::string(name), value});
    }
  }
  return found;
}

}  // namespace spillway::log
