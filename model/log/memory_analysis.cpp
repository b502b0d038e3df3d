#include "model/log/memory_analysis.h"

#include <algorithm>

namespace spillway::log {
namespace {

struct Field {
  std::string_view name;
  std::optional<std::int64_t> MemoryAnalysis::*value;
};
constexpr Field kFields[] = {
    {"generated_code_size_in_bytes", &MemoryAnalysis::generated_code},
    {"argument_size_in_bytes", &MemoryAnalysis::argument},
    {"output_size_in_bytes", &MemoryAnalysis::output},
    {"alias_size_in_bytes", &MemoryAnalysis::alias},
    {"temp_size_in_bytes", &MemoryAnalysis::temp},
    {"host_generated_code_size_in_bytes", &MemoryAnalysis::host_generated_code},
    {"host_argument_size_in_bytes", &MemoryAnalysis::host_argument},
    {"host_output_size_in_bytes", &MemoryAnalysis::host_output},
    {"host_alias_size_in_bytes", &MemoryAnalysis::host_alias},
    {"host_temp_size_in_bytes", &MemoryAnalysis::host_temp},
    {"peak_memory_in_bytes", &MemoryAnalysis::peak},
};
constexpr std::string_view kOpening = "CompiledMemoryStats(";

/// So many lines without a field may stand within a block.
constexpr std::size_t kPatience = 3;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Takes "=12", ": 12" or "': 12" behind a field's name.
std::optional<std::int64_t> take_value(std::string_view& rest) {
  std::string_view from = rest;
  if (!from.empty() && (from[0] == '\'' || from[0] == '"')) from.remove_prefix(1);
  while (!from.empty() && from[0] == ' ') from.remove_prefix(1);
  if (from.empty() || (from[0] != '=' && from[0] != ':')) return std::nullopt;
  from.remove_prefix(1);
  const auto value = take_integer(from);
  if (value) rest = from;
  return value;
}

class Reader {
 public:
  void read(const Line& line) {
    if (line.text.find("_in_bytes") == std::string_view::npos &&
        line.text.find(kOpening) == std::string_view::npos) {
      if (open_ && !bracketed_ && ++idle_ > kPatience) end(false);
      if (open_ && bracketed_ && line.text.find(')') != std::string_view::npos) end(false);
      return;
    }
    idle_ = 0;
    for (std::string_view rest = line.text; !rest.empty();) step(line.number, rest);
  }
  std::vector<MemoryAnalysis> finish() {
    end(bracketed_);
    return std::move(found_);
  }

 private:
  void begin(LineNumber line, bool bracketed) {
    end(bracketed_);
    found_.push_back({});
    found_.back().line = line;
    open_ = true;
    bracketed_ = bracketed;
    idle_ = 0;
  }
  void end(bool cut) {
    if (!open_) return;
    open_ = false;
    bracketed_ = false;
    found_.back().cut = cut;
    const MemoryAnalysis& block = found_.back();
    if (std::ranges::none_of(kFields, [&](const Field& f) { return (block.*f.value).has_value(); }))
      found_.pop_back();
  }

  /// One word, or one other character.
  void step(LineNumber line, std::string_view& rest) {
    if (rest.starts_with(kOpening)) {
      begin(line, true);
      rest.remove_prefix(kOpening.size());
      return;
    }
    std::size_t size = 0;
    while (size < rest.size() && is_name(rest[size])) ++size;
    if (size == 0) {
      if (rest[0] == ')' && bracketed_) end(false);
      rest.remove_prefix(1);
      return;
    }
    const std::string_view name = rest.substr(0, size);
    rest.remove_prefix(size);
    const auto field =
        std::ranges::find_if(kFields, [name](const Field& f) { return f.name == name; });
    if (field == std::end(kFields)) return;
    const auto value = take_value(rest);
    if (!value) return;
    if (!open_ || found_.back().*field->value) begin(line, false);
    found_.back().*field->value = *value;
  }

  std::vector<MemoryAnalysis> found_;
  bool open_ = false, bracketed_ = false;
  std::size_t idle_ = 0;
};

/// Sums four sizes, of which none may be negative and all together a size.
std::optional<Bytes> sum(std::int64_t argument, std::int64_t output, std::int64_t temp,
                         std::int64_t alias) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  for (const std::int64_t part : {argument, output, temp, alias})
    if (part < 0 || part > kMost) return std::nullopt;
  const std::int64_t total = argument + output + temp - alias;
  if (total < 0) return std::nullopt;
  return Bytes(total);
}

}  // namespace

bool MemoryAnalysis::available() const {
  return std::ranges::any_of(kFields, [this](const Field& field) {
    // Only the size of the code is known to versions that know nothing else.
    return field.value != &MemoryAnalysis::generated_code && (this->*field.value).value_or(0) > 0;
  });
}

std::optional<Bytes> MemoryAnalysis::device_total() const {
  if (!argument || !output || !temp) return std::nullopt;
  return sum(*argument, *output, *temp, alias.value_or(0));
}

std::optional<Bytes> MemoryAnalysis::host_total() const {
  return sum(host_argument.value_or(0), host_output.value_or(0), host_temp.value_or(0),
             host_alias.value_or(0));
}

std::vector<MemoryAnalysis> find_memory_analyses(const std::vector<Line>& lines) {
  Reader reader;
  for (const Line& line : lines) reader.read(line);
  return reader.finish();
}

}  // namespace spillway::log
