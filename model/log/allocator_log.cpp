#include "model/log/allocator_log.h"

#include <algorithm>

namespace spillway::log {
namespace {

struct Statistic {
  std::string_view words;
  std::optional<LoggedBytes> PoolDump::*field;
};
constexpr Statistic kStatistics[] = {
    {"Limit:", &PoolDump::limit},         {"InUse:", &PoolDump::in_use},
    {"MaxInUse:", &PoolDump::max_in_use}, {"MaxAllocSize:", &PoolDump::max_alloc},
    {"Reserved:", &PoolDump::reserved},
};

/// So many lines of others may stand within a dump.
constexpr std::size_t kPatience = 24;

/// What stands behind `words` where these begin a word: "InUse:" is not found in "MaxInUse:".
std::optional<std::string_view> behind_word(std::string_view line, std::string_view words) {
  for (std::size_t at = line.find(words); at != std::string_view::npos;
       at = line.find(words, at + 1)) {
    const char before = at == 0 ? ' ' : line[at - 1];
    const bool in_word = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                         before == '_' || before == '-';
    if (!in_word) return line.substr(at + words.size());
  }
  return std::nullopt;
}

class Reader {
 public:
  void read(const Line& line) {
    if (auto name = behind(line.text, "BFCAllocator dump for ")) {
      begin(line.number);
      PoolDump& dump = found_.back();
      dump.allocator = take_word(*name);
      dump.kind = pool_kind(dump.allocator);
      whole_dump_ = true;
      return;
    }
    if (read_statistic(line) || (open_ && read_dump_line(line.text)))
      idle_ = 0;
    else if (open_ && !trimmed(line.text).empty() && ++idle_ > kPatience)
      end();
  }
  std::vector<PoolDump> finish() {
    end();
    return std::move(found_);
  }

 private:
  void begin(LineNumber line) {
    end();
    found_.push_back({});
    found_.back().line = line;
    open_ = true;
    whole_dump_ = false;
    idle_ = 0;
  }
  void end() {
    if (!open_) return;
    open_ = false;
    PoolDump& dump = found_.back();
    dump.cut = !dump.limit || !dump.in_use;
    // Of a list that was cut the largest chunk may be missing.
    if (dump.cut) dump.largest_free.reset();
    const bool empty = !dump.limit && !dump.in_use && !dump.pool && dump.bins == 0;
    if (empty && !(whole_dump_ && dump.free_chunks > 0)) found_.pop_back();
  }

  bool read_statistic(const Line& line) {
    for (const Statistic& statistic : kStatistics) {
      auto rest = behind_word(line.text, statistic.words);
      if (!rest) continue;
      const auto bytes = take_bytes(*rest);
      if (!bytes || !trimmed(*rest).empty()) return false;
      const bool starts = statistic.field == &PoolDump::limit;
      if (!open_ && !starts) return false;
      if (!open_ || found_.back().*statistic.field) begin(line.number);
      found_.back().*statistic.field = *bytes;
      return true;
    }
    if (!open_) return false;
    if (auto rest = behind_word(line.text, "NumAllocs:")) {
      found_.back().allocations = take_integer(*rest);
      return true;
    }
    if (auto rest = behind_word(line.text, "LargestFreeBlock:")) {
      // Versions that do not fill it in print 0.
      const auto bytes = take_bytes(*rest);
      if (bytes && bytes->value > Bytes(0)) set_largest(*bytes);
      return true;
    }
    return false;
  }

  bool read_dump_line(std::string_view text) {
    PoolDump& dump = found_.back();
    if (behind(text, "Bin (")) {
      ++dump.bins;
      return true;
    }
    if (auto rest = behind(text, "Free  at ")) return read_free_chunk(*rest);
    if (auto rest = behind(text, "Free at ")) return read_free_chunk(*rest);
    if (auto rest = behind(text, "total_region_allocated_bytes_: ")) return read_pool(*rest);
    if (auto rest = behind(text, "Total size in pool: ")) return read_pool(*rest);
    if (auto rest = behind(text, "Allocator memory summary: ")) {
      if (auto pool = behind(*rest, "pool size ")) read_pool(*pool);
      if (auto largest = behind(*rest, "largest free chunk usable by "))
        if (auto bytes = behind(*largest, " end "))
          if (const auto size = take_bytes(*bytes)) set_largest(*size);
      return true;
    }
    for (const std::string_view words :
         {"InUse at ", "Next region of size ", "Chunks of size ", "Sum Total of in-use chunks",
          "Summary of in-use Chunks", "Bin for ", "Stats:", "Allocator region growth hint"})
      if (text.find(words) != std::string_view::npos) return true;
    return false;
  }

  bool read_pool(std::string_view rest) {
    if (const auto bytes = take_bytes(rest)) found_.back().pool = *bytes;
    return true;
  }

  bool read_free_chunk(std::string_view rest) {
    auto size = behind(rest, " of size ");
    if (!size) return false;
    const auto bytes = take_bytes(*size);
    if (!bytes) return false;
    PoolDump& dump = found_.back();
    // No card has so much; and the sum of all stays a number.
    if (bytes->value > Bytes(std::int64_t{1} << 50) ||
        dump.free_in_chunks > Bytes(std::int64_t{1} << 60))
      return true;
    ++dump.free_chunks;
    dump.free_in_chunks += bytes->value;
    set_largest(*bytes);
    return true;
  }

  void set_largest(const LoggedBytes& bytes) {
    auto& largest = found_.back().largest_free;
    if (!largest || bytes.value > largest->value) largest = bytes;
  }

  std::vector<PoolDump> found_;
  bool open_ = false, whole_dump_ = false;
  std::size_t idle_ = 0;
};

}  // namespace

std::string_view name_of(PoolKind kind) {
  switch (kind) {
    case PoolKind::kDevice:
      return "device";
    case PoolKind::kCollective:
      return "collective";
    case PoolKind::kHost:
      return "host";
  }
  return "";
}

PoolKind pool_kind(std::string_view allocator) {
  if (allocator.find("ollective") != std::string_view::npos) return PoolKind::kCollective;
  if (allocator.find("host") != std::string_view::npos) return PoolKind::kHost;
  return PoolKind::kDevice;
}

std::vector<PoolSize> find_pool_sizes(const std::vector<Line>& lines) {
  std::vector<PoolSize> found;
  for (const Line& line : lines) {
    PoolSize size;
    size.line = line.number;
    auto rest = behind(line.text, "XLA backend allocating ");
    size.preallocated = rest.has_value();
    if (!rest) rest = behind(line.text, "XLA backend will use up to ");
    if (!rest) continue;
    const auto bytes = take_bytes(*rest);
    auto device = behind(*rest, "on device ");
    if (!bytes || !bytes->exact() || !device) continue;
    size.bytes = bytes->value;
    size.device = take_integer(*device).value_or(0);
    if (auto allocator = behind(*device, " for ")) size.kind = pool_kind(take_word(*allocator));
    found.push_back(size);
  }
  return found;
}

std::vector<FailedRequest> find_failed_requests(const std::vector<Line>& lines) {
  std::vector<FailedRequest> found;
  for (const Line& line : lines) {
    auto rest = behind(line.text, "Allocator (");
    if (!rest) continue;
    const std::string_view name = take_word(*rest);
    auto size = behind(*rest, "ran out of memory trying to allocate ");
    if (!size) continue;
    const auto requested = take_exact_bytes(*size);
    if (!requested) continue;
    const auto same = std::ranges::find_if(found, [&](const FailedRequest& other) {
      return other.allocator == name && other.requested == *requested;
    });
    if (same != found.end())
      ++same->times;
    else
      found.push_back({line.number, std::string(name), *requested, 1});
  }
  return found;
}

std::vector<PoolDump> find_pool_dumps(const std::vector<Line>& lines) {
  Reader reader;
  for (const Line& line : lines) reader.read(line);
  return reader.finish();
}

}  // namespace spillway::log
